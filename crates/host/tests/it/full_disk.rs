//! A full disk leaves the old file as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use attache_host::files::{FileError, Jail};

use crate::kit::Scratch;

const FILE: &str = "ATTACHE_HOST_TEST_FILE";

/// Not a test: writes a file that is too large for what its process may write. It is a test
/// function only because that makes it part of this binary.
#[test]
#[ignore = "is started by the test below, as a process of its own"]
fn helper() {
    let Ok(path) = std::env::var(FILE) else { return };
    let path = PathBuf::from(path);
    let error = Jail::new([path.parent().unwrap()]).write(&path, &"new ".repeat(1 << 20)).unwrap_err();
    assert!(matches!(error, FileError::Io(..)), "{error:?}");
}

fn only_the_old_file_is_there(file: &Path) {
    assert_eq!(fs::read_to_string(file).unwrap(), "old");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "a half file was left");
}

#[test]
fn a_process_at_its_limit() {
    let scratch = Scratch::new();
    let file = scratch.file("dir/file", "old");
    let exe = std::env::current_exe().unwrap();
    // The limit is in blocks of 512 bytes or of 1024, depending on the shell.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact full_disk::helper --ignored --nocapture";
    let output = Command::new("sh").args(["-c", script]).arg(exe).env(FILE, &file).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1 passed"), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    only_the_old_file_is_there(&file);
}

/// A file system that ends with the test.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_file_system() {
    let scratch = Scratch::new();
    let dir = scratch.dir("small");
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&dir)
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        // Only root may; the test above shows the same with another limit.
        return;
    }
    let _mounted = Mounted(dir.clone());
    let file = scratch.file("small/file", "old");
    let error = Jail::new([&dir]).write(&file, &"new ".repeat(1 << 18)).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    only_the_old_file_is_there(&file);
    Jail::new([&dir]).write(&file, "fits").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "fits");
}
