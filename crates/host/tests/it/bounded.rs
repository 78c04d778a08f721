//! Bounded reads of files that a hostile repository could contain.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use attache_host::bounded::{FinalLink, read_bounded, read_text_bounded};

use crate::kit::Scratch;

fn refusal(path: &Path, link: FinalLink) -> String {
    let error = read_bounded(path, 10, link).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    error.to_string()
}

#[test]
fn reads_up_to_the_limit_and_reports_more() {
    let dir = Scratch::new();
    let file = dir.file("file", "0123456789");
    for (limit, expected, truncated) in
        [(0, "", true), (9, "012345678", true), (10, "0123456789", false), (11, "0123456789", false)]
    {
        let read = read_bounded(&file, limit, FinalLink::Refuse).unwrap();
        assert_eq!((read.bytes.as_slice(), read.truncated), (expected.as_bytes(), truncated), "{limit}");
    }
    let all = read_bounded(&file, usize::MAX, FinalLink::Refuse).unwrap();
    assert_eq!((all.bytes.len(), all.truncated), (10, false));
    let empty = dir.file("empty", "");
    assert!(!read_bounded(&empty, 0, FinalLink::Refuse).unwrap().truncated);
}

#[test]
fn a_sparse_file_costs_the_limit_only() {
    let dir = Scratch::new();
    let path = dir.join("sparse");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let read = read_bounded(&path, 4096, FinalLink::Refuse).unwrap();
    assert_eq!((read.bytes.len(), read.truncated), (4096, true));
    assert!(read.bytes.capacity() < 64 * 1024, "{}", read.bytes.capacity());
    let error = read_text_bounded(&path, 4096, FinalLink::Refuse).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "larger than 4096 bytes");
}

#[test]
fn files_that_claim_to_be_empty_are_read() {
    let path = Path::new("/proc/self/status");
    assert_eq!(path.metadata().unwrap().len(), 0);
    let read = read_bounded(path, 20, FinalLink::Refuse).unwrap();
    assert!(read.bytes.starts_with(b"Name:"));
    assert!(read.truncated);
}

#[test]
fn only_regular_files_are_opened() {
    let dir = Scratch::new();
    let fifo = dir.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = dir.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for link in [FinalLink::Follow, FinalLink::Refuse] {
        assert_eq!(refusal(&fifo, link), "a FIFO, not a regular file");
        assert_eq!(refusal(&socket, link), "a socket, not a regular file");
        assert_eq!(refusal(dir.path(), link), "a directory, not a regular file");
        assert_eq!(refusal(Path::new("/dev/zero"), link), "a device, not a regular file");
    }
    let error = read_bounded(&dir.join("missing"), 10, FinalLink::Follow).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_final_link_is_followed_only_if_asked() {
    let dir = Scratch::new();
    dir.file("file", "text");
    let link = dir.link("link", dir.join("file"));
    assert_eq!(refusal(&link, FinalLink::Refuse), "a symbolic link, not a regular file");
    assert_eq!(read_bounded(&link, 10, FinalLink::Follow).unwrap().bytes, b"text");
    let device = dir.link("device", "/dev/zero");
    assert_eq!(refusal(&device, FinalLink::Follow), "a device, not a regular file");
    let dangling = dir.link("dangling", dir.join("nothing"));
    assert_eq!(refusal(&dangling, FinalLink::Refuse), "a symbolic link, not a regular file");
    let circle = dir.link("circle", dir.join("circle"));
    assert!(read_bounded(&circle, 10, FinalLink::Follow).is_err());
}

#[test]
fn text_is_checked() {
    let dir = Scratch::new();
    let marked = dir.file("marked", "\u{feff}text");
    assert_eq!(read_text_bounded(&marked, 10, FinalLink::Refuse).unwrap(), "text");
    let binary = dir.file("binary", b"\xff\xfe");
    let error = read_text_bounded(&binary, 10, FinalLink::Refuse).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidData, "not UTF-8 text"));
}

#[test]
fn a_cut_never_leaves_half_a_character() {
    let dir = Scratch::new();
    let path = dir.join("text");
    File::create(&path).unwrap().write_all("aé€😀".as_bytes()).unwrap();
    let texts = ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€😀"];
    for (limit, expected) in texts.into_iter().enumerate() {
        let read = read_bounded(&path, limit, FinalLink::Refuse).unwrap();
        assert_eq!(read.into_text_lossy(), expected, "{limit}");
    }
    fs::write(&path, b"a\xff").unwrap();
    assert_eq!(read_bounded(&path, 2, FinalLink::Refuse).unwrap().into_text_lossy(), "a\u{fffd}");
}
