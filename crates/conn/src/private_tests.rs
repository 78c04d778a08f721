#![allow(clippy::unwrap_used)]

use std::fs::Permissions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_and_its_parents_are_made_private() {
    let temp = TempDir::new("attache-private").unwrap();
    let inner = temp.path().join("a/b/c");
    create_directory(&inner).unwrap();
    for dir in ["a", "a/b", "a/b/c"] {
        assert_eq!(mode(&temp.path().join(dir)), 0o700, "{dir}");
    }
    create_directory(&inner).unwrap();
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let temp = TempDir::new("attache-private").unwrap();
    let dir = temp.path().join("dir");
    fs::create_dir(&dir).unwrap();
    for loose in [0o777, 0o770, 0o720, 0o702, 0o1777] {
        set_mode(&dir, loose);
        let error = create_directory(&dir).unwrap_err().to_string();
        assert!(error.contains("chmod 700"), "{loose:o}: {error}");
    }
    for fine in [0o700, 0o755, 0o711] {
        set_mode(&dir, fine);
        create_directory(&dir).unwrap();
    }
}

#[test]
fn a_link_or_a_file_in_its_place_is_refused() {
    let temp = TempDir::new("attache-private").unwrap();
    let (real, link, file) = (temp.path().join("real"), temp.path().join("link"), temp.path().join("file"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    fs::write(&file, "").unwrap();
    for path in [link.clone(), temp.path().join("link/")] {
        let error = create_directory(&path).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
    symlink(temp.path().join("nowhere"), temp.path().join("dangling")).unwrap();
    assert!(create_directory(&temp.path().join("dangling")).is_err());
    assert!(!temp.path().join("nowhere").exists());
    let error = create_directory(&file).unwrap_err().to_string();
    assert!(error.contains("not a directory"), "{error}");
}

#[test]
fn a_shared_parent_must_be_sticky() {
    let temp = TempDir::new("attache-private").unwrap();
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o777);
    let error = create_directory(&shared.join("own")).unwrap_err().to_string();
    assert!(error.contains("not sticky"), "{error}");
    assert!(TempDir::within(&shared, "x").unwrap_err().to_string().contains("not sticky"));
    set_mode(&shared, 0o1777);
    create_directory(&shared.join("own")).unwrap();
    TempDir::within(&shared, "x").unwrap();
}

#[test]
fn temporary_directories_differ_and_go_away() {
    let (one, two) = (TempDir::new("attache-private").unwrap(), TempDir::new("attache-private").unwrap());
    assert_ne!(one.path(), two.path());
    assert_eq!(mode(one.path()), 0o700);
    // The target of a link in it stays.
    fs::write(two.path().join("kept"), "").unwrap();
    symlink(two.path(), one.path().join("link")).unwrap();
    let path = one.path().to_owned();
    drop(one);
    assert!(!path.exists());
    assert!(two.path().join("kept").exists());
}

#[test]
fn files_are_created_once_and_private() {
    let temp = TempDir::new("attache-private").unwrap();
    let path = temp.path().join("file");
    create(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let (target, link) = (temp.path().join("target"), temp.path().join("link"));
    symlink(&target, &link).unwrap();
    assert!(create(&link).is_err() && create_log(&link).is_err());
    assert!(!target.exists());
}

#[test]
fn appending_follows_no_link_and_makes_a_file_private() {
    let temp = TempDir::new("attache-private").unwrap();
    let (path, link) = (temp.path().join("log"), temp.path().join("link"));
    fs::write(&path, "one\n").unwrap();
    set_mode(&path, 0o644);
    append(&path).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    assert_eq!(mode(&path), 0o600);
    symlink(&path, &link).unwrap();
    for refused in [append(&link), open_or_create(&link)] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
    // Devices are opened as they are, also through a link, and so are descriptors.
    symlink("/dev/null", temp.path().join("null")).unwrap();
    append(&temp.path().join("null")).unwrap();
    let open = File::options().append(true).open(&path).unwrap();
    append(&PathBuf::from(format!("/dev/fd/{}", open.as_raw_fd()))).unwrap().write_all(b"three\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn replacing_keeps_links_and_devices_safe() {
    let temp = TempDir::new("attache-private").unwrap();
    let (path, link) = (temp.path().join("file"), temp.path().join("link"));
    fs::write(&path, "old").unwrap();
    symlink(&path, &link).unwrap();
    replace(&link, b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    assert_eq!(mode(&link), 0o600);
    symlink("/dev/null", temp.path().join("null")).unwrap();
    write(&temp.path().join("null"), b"gone").unwrap();
    assert!(temp.path().join("null").is_symlink());
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 3, "a temporary file was left");
}

#[test]
fn secrets_that_others_can_read_are_not_read() {
    let temp = TempDir::new("attache-private").unwrap();
    let path = temp.path().join("secret");
    assert!(read_secret(&path).unwrap().is_none());
    fs::write(&path, "key").unwrap();
    for loose in [0o644, 0o640, 0o604, 0o620] {
        set_mode(&path, loose);
        let error = read_secret(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("key"), "{error}");
    }
    set_mode(&path, 0o600);
    assert_eq!(read_secret(&path).unwrap().as_deref(), Some("key"));
    let link = temp.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(read_secret(&link).is_err());
    let large = create(&temp.path().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    assert!(read_secret(&temp.path().join("large")).unwrap_err().to_string().contains("larger than"));
}

#[test]
fn a_file_is_as_readable_as_its_directory_lets_it_be() {
    let temp = TempDir::new("attache-private").unwrap();
    let path = temp.path().join("settings");
    check_unreadable(&path).unwrap();
    fs::write(&path, "").unwrap();
    set_mode(&path, 0o644);
    check_unreadable(&path).unwrap();
    for (dir, file, fine) in [
        (0o755, 0o644, false),
        (0o710, 0o640, false),
        (0o710, 0o604, true),
        (0o755, 0o600, true),
        (0o701, 0o640, true),
    ] {
        set_mode(temp.path(), dir);
        set_mode(&path, file);
        assert_eq!(check_unreadable(&path).is_ok(), fine, "{file:o} in {dir:o}");
    }
    set_mode(temp.path(), 0o700);
}
