//! Files as a whole: bytes, taking away, moving.

use std::fs;

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
fn what_is_outside_is_neither_removed_nor_moved() {
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
