//! Reading: lines, marks, line ends, and what is not text.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use attache_host::files::{FileError, FileLimits, Jail};

use crate::kit::Scratch;

fn jail(scratch: &Scratch) -> Jail {
    Jail::new([scratch.path()])
}

#[test]
fn lines_are_counted_from_one() {
    // shows FS-05, FS-06
    let scratch = Scratch::new();
    let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    let file = scratch.file("ten.txt", &text);
    let jail = jail(&scratch);
    let read = |line, limit| jail.read(&file, line, limit).unwrap();
    assert_eq!(read(None, None), text);
    assert_eq!(read(Some(1), None), text);
    assert_eq!(read(Some(3), Some(2)), "line 3\nline 4\n");
    assert_eq!(read(None, Some(1)), "line 1\n");
    assert_eq!(read(Some(10), Some(99)), "line 10\n");
    assert_eq!(read(Some(9), None), "line 9\nline 10\n");
    assert_eq!(read(None, Some(0)), "");
    // shows FS-14
    assert_eq!(read(Some(0), Some(1)), "line 1\n");
    assert_eq!(read(Some(11), None), "");
    assert_eq!(read(Some(u32::MAX), Some(u32::MAX)), "");
}

#[test]
fn line_ends_and_a_missing_last_one_stay() {
    // shows FS-16
    let scratch = Scratch::new();
    let file = scratch.file("crlf.txt", "a\r\nb\r\nc");
    let jail = jail(&scratch);
    assert_eq!(jail.read(&file, None, None).unwrap(), "a\r\nb\r\nc");
    assert_eq!(jail.read(&file, Some(2), Some(1)).unwrap(), "b\r\n");
    assert_eq!(jail.read(&file, Some(3), Some(1)).unwrap(), "c");
    let empty = scratch.file("empty.txt", "");
    assert_eq!(jail.read(&empty, None, None).unwrap(), "");
    assert_eq!(jail.read(&empty, Some(1), Some(5)).unwrap(), "");
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_text() {
    let scratch = Scratch::new();
    let file = scratch.file("mark.txt", "\u{feff}one\ntwo\n");
    let jail = jail(&scratch);
    assert_eq!(jail.read(&file, None, None).unwrap(), "one\ntwo\n");
    assert_eq!(jail.read(&file, Some(2), None).unwrap(), "two\n");
    let only = scratch.file("only.txt", "\u{feff}");
    assert_eq!(jail.read(&only, None, None).unwrap(), "");
    let inside = scratch.file("inside.txt", "a\u{feff}b");
    assert_eq!(jail.read(&inside, None, None).unwrap(), "a\u{feff}b");
}

#[test]
fn binary_files_are_errors() {
    // shows FS-17
    let scratch = Scratch::new();
    let cases: [(&str, &[u8], &str); 4] = [
        ("a.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary data"),
        ("latin.txt", b"caf\xe9\n", "byte 4"),
        ("utf16.txt", b"\xff\xfeh\0i\0", "UTF-16"),
        ("zeros", b"text\0text", "binary data"),
    ];
    for (name, bytes, why) in cases {
        let file = scratch.file(name, bytes);
        let error = jail(&scratch).read(&file, None, None).unwrap_err();
        assert!(matches!(error, FileError::NotText(..)), "{error:?}");
        assert!(error.to_string().contains(why) && error.to_string().contains(name), "{error}");
    }
    // A character that lies across the edge of a buffer is whole all the same.
    let long = format!("{}€\n", "x".repeat(64 * 1024 - 1));
    let file = scratch.file("long.txt", &long);
    assert_eq!(jail(&scratch).read(&file, None, None).unwrap(), long);
}

#[test]
fn a_missing_file_has_its_own_error() {
    // shows FS-13
    let scratch = Scratch::new();
    scratch.file("file", "");
    scratch.dir("dir");
    let jail = jail(&scratch);
    let missing = |name: &str| jail.read(&scratch.join(name), None, None).unwrap_err();
    for name in ["nope", "nope/deeper/still", "dir/nope"] {
        let error = missing(name);
        assert!(matches!(error, FileError::NotFound(_)), "{error:?}");
        let wire = attache::Error::from(error).to_wire();
        assert_eq!(wire.code, attache::code::RESOURCE_NOT_FOUND);
        assert!(wire.message.contains(name), "{}", wire.message);
    }
    assert!(matches!(missing("file/below"), FileError::Io(..)));
    assert!(matches!(missing("dir"), FileError::NotAFile(_, "a directory")));
    assert!(matches!(missing("."), FileError::NotAFile(_, "a directory")));
    let wire = attache::Error::from(missing("file/below")).to_wire();
    assert_eq!(wire.code, attache::code::INTERNAL_ERROR);
}

#[test]
fn fifos_sockets_and_devices_are_refused_without_waiting() {
    let scratch = Scratch::new();
    let fifo = scratch.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _listener = UnixListener::bind(scratch.join("socket")).unwrap();
    let jail = jail(&scratch);
    for (name, what) in [("fifo", "a FIFO"), ("socket", "a socket")] {
        let path = scratch.join(name);
        for error in [jail.read(&path, None, None).unwrap_err(), jail.write(&path, "x").unwrap_err()] {
            assert!(matches!(error, FileError::NotAFile(_, it) if it == what), "{error:?}");
        }
    }
    // Through a link, too.
    scratch.link("link", "fifo");
    assert!(matches!(jail.read(&scratch.join("link"), None, None), Err(FileError::NotAFile(..))));
    let all = Jail::new(["/"]);
    for device in ["/dev/null", "/dev/zero", "/dev/tty"] {
        let error = all.read(Path::new(device), None, None).unwrap_err();
        assert!(matches!(error, FileError::NotAFile(_, "a device")), "{error:?}");
        assert!(matches!(all.write(Path::new(device), "x"), Err(FileError::NotAFile(..))));
    }
}

#[test]
fn sizes_are_limited() {
    let scratch = Scratch::new();
    let file = scratch.file("big.txt", "0123456789\n".repeat(100));
    let limits = FileLimits { read: 100, scan: 550, write: 10 };
    let jail = Jail::new([scratch.path()]).limits(limits);
    let error = jail.read(&file, None, None).unwrap_err();
    assert!(matches!(error, FileError::TooLarge(_, 100)), "{error:?}");
    assert!(error.to_string().contains("`line` and `limit`"));
    assert_eq!(jail.read(&file, Some(40), Some(9)).unwrap().len(), 99);
    assert!(matches!(jail.read(&file, Some(40), Some(10)), Err(FileError::TooLarge(..))));
    // A line far past the end of the file is not searched for.
    assert!(matches!(jail.read(&file, Some(60), Some(1)), Err(FileError::TooLarge(_, 550))));
    assert!(matches!(jail.write(&scratch.join("new"), "12345678901"), Err(FileError::TooLarge(_, 10))));
    assert!(!scratch.join("new").exists());
}

#[test]
fn a_long_file_can_be_read_in_parts() {
    let scratch = Scratch::new();
    let text: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    let file = scratch.file("log", &text);
    let jail = Jail::new([scratch.path()]).limits(FileLimits { read: 1000, ..FileLimits::default() });
    assert_eq!(jail.read(&file, Some(150_000), Some(2)).unwrap(), "150000\n150001\n");
    assert_eq!(jail.read(&file, Some(200_000), None).unwrap(), "200000\n");
}

#[test]
fn names_need_not_be_utf8_and_may_not_hold_a_zero() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let path = scratch.path().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::write(&path, "ok").unwrap();
    assert_eq!(jail(&scratch).read(&path, None, None).unwrap(), "ok");
    assert!(jail(&scratch).read(&scratch.join("a\0b"), None, None).is_err());
}

#[test]
fn a_text_that_is_many_times_its_size_on_the_wire_is_too_large() {
    let scratch = Scratch::new();
    let limits = FileLimits { read: 1000, ..FileLimits::default() };
    let jail = Jail::new([scratch.path()]).limits(limits);
    let plain = scratch.file("plain", "x\n".repeat(500));
    assert!(jail.read(&plain, None, None).is_ok());
    let bells = scratch.file("bells", "\u{7}".repeat(300));
    assert!(matches!(jail.read(&bells, None, None), Err(FileError::TooLarge(..))));
    assert!(jail.read(&scratch.file("few", "\u{7}".repeat(200)), None, None).is_ok());
}
