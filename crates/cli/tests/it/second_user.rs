//! Another user of the same machine, where the tests run as root.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The user `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// A command that runs as another user. `None`, and a line that says why, where that is not
/// possible.
#[expect(clippy::print_stdout, reason = "a reader of the test's output should know that it was skipped")]
pub(crate) fn as_nobody(program: impl AsRef<OsStr>) -> Option<Command> {
    let id = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    let probe = Command::new("setpriv")
        .args(command.get_args())
        .arg(env!("CARGO_BIN_EXE_attache"))
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: this needs root, setpriv, and a program that other users can run");
        return None;
    }
    command.arg(program);
    Some(command)
}

/// Creates a directory that every user can write to, as `/tmp` is.
pub(crate) fn shared_dir(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o1777)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// The files below a directory that hold a text.
pub(crate) fn files_with(dir: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, text));
        } else if entry.file_type().unwrap().is_file()
            && fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}
