//! Files as a whole: bytes, taking away, moving.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use attache_host::files::{FileError, Jail};

use crate::kit::Scratch;

#[test]
fn bytes_are_as_they_are_up_to_a_limit() {
    let scratch = Scratch::new();
    let path = scratch.file("a.bin", [0, 159, 146, 150]);
    let jail = Jail::new([scratch.path()]);
    assert_eq!(jail.bytes(&path, 4).unwrap(), [0, 159, 146, 150]);
    assert!(matches!(jail.bytes(&path, 3), Err(FileError::TooLarge(..))));
    assert!(matches!(jail.bytes(&scratch.join("none"), 3), Err(FileError::NotFound(_))));
}

#[test]
fn files_outside_are_neither_removed_nor_moved() {
    // shows ROOT-17, ROOT-18
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let outside = other.file("kept", "kept");
    let link = scratch.link("link", &outside);
    let inside = scratch.file("a", "a");
    let jail = Jail::new([scratch.path()]);
    assert!(matches!(jail.remove(&outside), Err(FileError::Outside(_))));
    assert!(matches!(jail.remove(&link), Err(FileError::Outside(_))));
    assert!(matches!(jail.rename(&link, &scratch.join("b")), Err(FileError::Outside(_))));
    assert!(matches!(jail.rename(&inside, &other.join("b")), Err(FileError::Outside(_))));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "a");
}

#[test]
fn files_are_removed_and_moved_to_free_places_only() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.file("a", "a"), scratch.file("b", "b"));
    let dir = scratch.dir("dir");
    let jail = Jail::new([scratch.path()]);
    assert!(matches!(jail.rename(&a, &b), Err(FileError::Io(..))), "nothing is overwritten");
    assert!(matches!(jail.rename(&a, &dir), Err(FileError::NotAFile(..))));
    assert!(matches!(jail.remove(&dir), Err(FileError::NotAFile(..))));
    jail.rename(&a, &scratch.join("new/place/a")).unwrap();
    assert_eq!(fs::read_to_string(scratch.join("new/place/a")).unwrap(), "a");
    assert!(!a.exists());
    jail.remove(&b).unwrap();
    assert!(!b.exists());
    assert!(matches!(jail.remove(&b), Err(FileError::NotFound(_))));
}

#[test]
fn a_jail_without_links_refuses_them_everywhere() {
    let scratch = Scratch::new();
    let file = scratch.file("real/dir/file", "text");
    scratch.link("real/link", scratch.join("real/dir"));
    scratch.link("real/dir/alias", &file);
    let jail = Jail::without_links();
    assert_eq!(jail.bytes(&file, 10).unwrap(), b"text");
    for path in ["real/link/file", "real/dir/alias", "real/link/new", "real/link/new/file"] {
        let path = scratch.join(path);
        assert!(matches!(jail.bytes(&path, 10), Err(FileError::Link(_))), "{}", path.display());
        assert!(matches!(jail.restore(&path, b"x", 0o644), Err(FileError::Link(_))));
        assert!(matches!(jail.remove(&path), Err(FileError::Link(_))));
        assert!(matches!(jail.remove_dir(&path), Err(FileError::Link(_))));
    }
    assert_eq!(fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_file_is_restored_to_the_byte() {
    let scratch = Scratch::new();
    let file = scratch.file("a", "line\r\n");
    let other = scratch.join("other");
    fs::hard_link(&file, &other).unwrap();
    let jail = Jail::new([scratch.path()]);
    // Neither line ends nor what is text are looked at.
    jail.restore(&file, b"a\n\xff", 0o4750).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"a\n\xff");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(fs::read(&other).unwrap(), b"line\r\n");
    let made = scratch.join("new/deep/b");
    jail.restore(&made, b"b", 0o600).unwrap();
    assert!(jail.restore(&scratch.join("new"), b"b", 0o600).is_err());
    assert!(jail.remove_dir(&scratch.join("new/deep")).is_err(), "it is not empty");
    assert!(jail.remove_dir(&made).is_err(), "it is no directory");
    jail.remove(&made).unwrap();
    jail.remove_dir(&scratch.join("new/deep")).unwrap();
    assert!(!scratch.join("new/deep").exists() && scratch.join("new").exists());
    assert!(matches!(jail.remove_dir(&scratch.join("new/deep")), Err(FileError::NotFound(_))));
}
