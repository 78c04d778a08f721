//! Another process exchanges files, links and directories while we use them. No result contains the
//! secret.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use attache_host::files::{FileError, Jail};

use crate::kit::Scratch;

/// Reading is fast; what is written has to reach the disk.
const READS: usize = 30_000;
const WRITES: usize = 400;

/// Runs `disturb` again and again in one thread, `act` many times in this one. `act` says which of
/// two things happened, and both must have, or there was no race.
fn while_disturbed(rounds: usize, mut disturb: impl FnMut() + Send, mut act: impl FnMut(usize) -> bool) {
    /// Also when `act` panics, so that the panic is reported.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    let (mut one, mut other) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb();
            }
        });
        let _stop = Stop(&stop);
        // On a busy machine the threads may take long turns.
        for round in 0..1_000 * rounds {
            if act(round) {
                one += 1;
            } else {
                other += 1;
            }
            if round >= rounds && one > 0 && other > 0 {
                break;
            }
        }
    });
    assert!(one > 0 && other > 0, "the race did not happen: {one} and {other}");
}

/// Puts a link, or something else, in the place of a name, in one step.
fn exchange(dir: &Path, name: &str, make: impl FnOnce(&Path)) {
    let new = dir.join(".next");
    make(&new);
    fs::rename(&new, dir.join(name)).unwrap();
}

#[test]
fn a_file_that_becomes_a_link_to_the_outside() {
    // shows ROOT-18
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let secret = scratch.file("secret", "SECRET");
    let path = scratch.file("root/file", "harmless");
    let jail = Jail::new([&root]);
    let disturb = || {
        exchange(&root, "file", |new| symlink(&secret, new).unwrap());
        exchange(&root, "file", |new| fs::write(new, "harmless").unwrap());
    };
    while_disturbed(READS, disturb, |_| match jail.read(&path, None, None) {
        Ok(text) => {
            assert_eq!(text, "harmless");
            true
        }
        Err(FileError::Outside(_) | FileError::Changed(_)) => false,
        Err(other) => panic!("{other:?}"),
    });
}

#[test]
fn a_directory_that_becomes_a_link_to_the_outside() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    scratch.file("outside/file", "SECRET");
    scratch.file("root/real/file", "harmless");
    let path = root.join("dir/file");
    scratch.link("root/dir", "real");
    let jail = Jail::new([&root]);
    let disturb = || {
        exchange(&root, "dir", |new| symlink("../outside", new).unwrap());
        exchange(&root, "dir", |new| symlink("real", new).unwrap());
    };
    while_disturbed(READS, disturb, |_| match jail.read(&path, None, None) {
        Ok(text) => {
            assert_eq!(text, "harmless");
            true
        }
        Err(FileError::Outside(_)) => false,
        Err(other) => panic!("{other:?}"),
    });
}

#[test]
fn nothing_outside_is_ever_written() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let victim = scratch.file("outside/file", "untouched");
    scratch.dir("root/real");
    scratch.link("root/dir", "real");
    let path = root.join("dir/file");
    let jail = Jail::new([&root]);
    let disturb = || {
        exchange(&root, "dir", |new| symlink(scratch.join("outside"), new).unwrap());
        exchange(&root, "dir", |new| symlink("real", new).unwrap());
    };
    while_disturbed(WRITES, disturb, |round| match jail.write(&path, &round.to_string()) {
        Ok(()) => true,
        Err(FileError::Outside(_) | FileError::Changed(_)) => false,
        Err(other) => panic!("{other:?}"),
    });
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(fs::read_dir(scratch.join("outside")).unwrap().count(), 1, "not even for a moment");
}

#[test]
fn a_file_that_becomes_a_fifo_never_blocks() {
    let scratch = Scratch::new();
    let fifo = scratch.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let path = scratch.file("file", "text");
    let jail = Jail::new([scratch.path()]);
    let disturb = || {
        exchange(scratch.path(), "file", |new| fs::hard_link(&fifo, new).unwrap());
        exchange(scratch.path(), "file", |new| fs::write(new, "text").unwrap());
    };
    while_disturbed(READS, disturb, |_| match jail.read(&path, None, None) {
        Ok(text) => {
            assert_eq!(text, "text");
            true
        }
        Err(FileError::NotAFile(_, "a FIFO") | FileError::Changed(_)) => false,
        Err(other) => panic!("{other:?}"),
    });
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let scratch = Scratch::new();
    let path = scratch.file("file", "0".repeat(10_000));
    let jail = Jail::new([scratch.path()]);
    let mut digit = 0_u8;
    let disturb = || {
        digit = (digit + 1) % 10;
        jail.write(&path, &char::from(b'0' + digit).to_string().repeat(10_000)).unwrap();
    };
    while_disturbed(WRITES, disturb, |_| {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), 10_000);
        let first = text.as_bytes()[0];
        assert!(text.bytes().all(|byte| byte == first), "two texts in one");
        first.is_multiple_of(2)
    });
}
