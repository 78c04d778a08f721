//! Writing: whole or not at all, and what is kept of the old file.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use attache_host::files::{FileError, Jail};

use crate::kit::Scratch;

fn jail(scratch: &Scratch) -> Jail {
    Jail::new([scratch.path()])
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn new_files_and_their_parents_are_made() {
    // shows FS-10, FS-11
    let scratch = Scratch::new();
    let jail = jail(&scratch);
    jail.write(&scratch.join("a.txt"), "one\n").unwrap();
    jail.write(&scratch.join("b/c/d.txt"), "two").unwrap();
    jail.write(&scratch.join("b/c/../e/f.txt"), "three").unwrap();
    assert_eq!(fs::read_to_string(scratch.join("a.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(scratch.join("b/c/d.txt")).unwrap(), "two");
    assert_eq!(fs::read_to_string(scratch.join("b/e/f.txt")).unwrap(), "three");
    assert_eq!(names(scratch.path()), ["a.txt", "b"], "nothing else is left");
    // As any program would make it.
    let usual = scratch.file("usual", "");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode();
    assert_eq!(mode(&scratch.join("a.txt")), mode(&usual));
}

#[test]
fn a_text_is_replaced_and_its_permissions_stay() {
    let scratch = Scratch::new();
    let file = scratch.file("script.sh", "old text that is longer");
    for mode in [0o755, 0o600, 0o640, 0o777] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        jail(&scratch).write(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
    }
    assert_eq!(names(scratch.path()), ["script.sh"]);
}

#[test]
fn the_owner_stays_where_that_is_possible() {
    let scratch = Scratch::new();
    let file = scratch.file("owned", "old");
    // Only root can give a file away; for others there is nothing to keep.
    if chown(&file, Some(12_345), Some(23_456)).is_err() {
        return;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    jail(&scratch).write(&file, "new").unwrap();
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (12_345, 23_456, 0o664));
}

#[test]
fn privileges_of_another_user_are_not_inherited() {
    let scratch = Scratch::new();
    let file = scratch.file("setuid", "old");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
    jail(&scratch).write(&file, "new").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_byte_order_mark_is_kept() {
    let scratch = Scratch::new();
    let file = scratch.file("mark.txt", "\u{feff}old\n");
    let jail = jail(&scratch);
    jail.write(&file, "new\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}new\n");
    jail.write(&file, "\u{feff}own\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}own\n", "and not doubled");
    let plain = scratch.file("plain.txt", "old\n");
    jail.write(&plain, "new\n").unwrap();
    assert_eq!(fs::read_to_string(&plain).unwrap(), "new\n");
    // What is read can be written back.
    let text = jail.read(&file, None, None).unwrap();
    jail.write(&file, &text).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}own\n");
}

#[test]
fn line_ends_are_kept() {
    // shows FS-16
    let scratch = Scratch::new();
    let jail = jail(&scratch);
    let cases = [
        ("a\r\nb\r\n", "x\ny\nz", "x\r\ny\r\nz", "line feeds follow the file"),
        ("a\r\nb\r\n", "x\r\ny\nz", "x\r\ny\nz", "a text with line ends of its own does not"),
        ("a\r\nb\n", "x\ny\n", "x\ny\n", "a mixed file asks for nothing"),
        ("a\nb\n", "x\r\ny\r\n", "x\r\ny\r\n", "nor does one with line feeds"),
        ("a", "x\ny\n", "x\ny\n", "nor one without line ends"),
        ("\u{feff}a\r\n", "x\n", "\u{feff}x\r\n", "both at once"),
    ];
    for (old, new, expected, why) in cases {
        let file = scratch.file("f", old);
        jail.write(&file, new).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{why}");
    }
    let file = scratch.file("f", "a\r\n");
    Jail::new([scratch.path()]).keep_line_ends(false).write(&file, "x\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "x\n");
    // A file that is no text has no line ends to follow.
    let file = scratch.file("binary", b"\x00\xff\r\n");
    jail.write(&file, "text\r\n").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"text\r\n");
}

#[test]
fn a_link_inside_stays_and_its_target_is_written() {
    let scratch = Scratch::new();
    let target = scratch.file("real/target.txt", "old");
    let link = scratch.link("link.txt", "real/target.txt");
    let dangling = scratch.link("dangling.txt", "real/new.txt");
    let jail = jail(&scratch);
    jail.write(&link, "new").unwrap();
    jail.write(&dangling, "made").unwrap();
    assert_eq!(fs::read_to_string(target).unwrap(), "new");
    assert_eq!(fs::read_to_string(scratch.join("real/new.txt")).unwrap(), "made");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn a_dangling_link_to_the_outside_makes_nothing() {
    // shows ROOT-18
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.link("root/out", scratch.join("made"));
    scratch.link("root/dir", scratch.path());
    let jail = Jail::new([&root]);
    for name in ["out", "dir/made", "dir/a/b/made", "../made"] {
        assert!(matches!(jail.write(&root.join(name), "x"), Err(FileError::Outside(_))), "{name}");
    }
    assert_eq!(names(scratch.path()), ["root"]);
}

#[test]
fn directories_are_not_written() {
    let scratch = Scratch::new();
    scratch.dir("dir");
    for name in ["dir", "dir/.", "dir/sub/..", "."] {
        assert!(jail(&scratch).write(&scratch.join(name), "x").is_err(), "{name}");
    }
    assert!(scratch.join("dir").is_dir());
}

#[test]
fn a_check_sees_the_real_path_before_anything_is_made() {
    let scratch = Scratch::new();
    scratch.dir("real");
    scratch.link("link", "real");
    let mut seen = Vec::new();
    let refuse = |path: &std::path::Path| {
        seen.push(path.to_owned());
        Err(FileError::Denied(path.to_owned(), "because".into()))
    };
    let error = jail(&scratch).write_checked(&scratch.join("link/new/file"), "x", refuse).unwrap_err();
    assert!(error.to_string().ends_with("because"));
    assert_eq!(seen, [scratch.join("real/new/file")]);
    assert!(!scratch.join("real/new").exists());
}

#[test]
fn other_hard_links_keep_the_old_text() {
    let scratch = Scratch::new();
    let file = scratch.file("a", "old");
    fs::hard_link(&file, scratch.join("b")).unwrap();
    jail(&scratch).write(&file, "new").unwrap();
    assert_eq!(fs::read_to_string(scratch.join("b")).unwrap(), "old");
}

#[test]
fn the_longest_name_can_be_written() {
    let scratch = Scratch::new();
    let path = scratch.join(&"n".repeat(255));
    jail(&scratch).write(&path, "x").unwrap();
    jail(&scratch).write(&path, "y").unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "y");
    assert!(jail(&scratch).write(&scratch.join(&"n".repeat(256)), "x").is_err());
}

const READ_ONLY: &str = "ATTACHE_HOST_TEST_READ_ONLY";

/// Not a test: writes as a user other than root. It is a test function only because that makes it
/// part of this binary.
#[test]
#[ignore = "is started by the test below, as a process of its own"]
fn helper() {
    let Ok(dir) = std::env::var(READ_ONLY) else { return };
    let dir = std::path::PathBuf::from(dir);
    let jail = Jail::new([&dir]);
    let refused = |name: &str| match jail.write(&dir.join(name), "new") {
        Err(FileError::Io(_, error)) => {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{name}")
        }
        other => panic!("{name}: {other:?}"),
    };
    // The directory would allow it.
    refused("read-only");
    refused("closed/new");
    assert!(matches!(jail.read(&dir.join("closed/file"), None, None), Err(FileError::Io(..))));
    // What can be written and not read keeps its permissions.
    jail.write(&dir.join("write-only"), "new").unwrap();
    assert_eq!(fs::metadata(dir.join("write-only")).unwrap().mode() & 0o777, 0o200);
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced_either() {
    use std::process::{Command, Stdio};
    let scratch = Scratch::new();
    let mode =
        |name: &str, mode| fs::set_permissions(scratch.join(name), fs::Permissions::from_mode(mode)).unwrap();
    for (name, bits) in [("read-only", 0o444), ("write-only", 0o200), ("closed/file", 0o644)] {
        let file = scratch.file(name, "old");
        mode(name, bits);
        let _ = chown(file, Some(65_534), Some(65_534));
    }
    mode("closed", 0o000);
    let _ = chown(scratch.join("closed"), Some(65_534), Some(65_534));
    mode(".", 0o777);
    // Root may do everything, so this runs as another user.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(if is_root { "setpriv".as_ref() } else { exe.as_path() });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&exe);
    }
    command
        .args(["--exact", "files_write::helper", "--ignored", "--nocapture"])
        .env(READ_ONLY, scratch.path());
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains("1 passed"), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
        }
        // Not every system has `setpriv`.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
    mode("closed", 0o700);
    assert_eq!(fs::read_to_string(scratch.join("read-only")).unwrap(), "old");
}
