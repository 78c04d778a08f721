//! Finds programs.

use std::env;
use std::path::{Path, PathBuf};

/// Finds a program: a path is taken as it is, a name is looked up in PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains(std::path::is_separator) {
        return is_program(Path::new(program)).then(|| PathBuf::from(program));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file() || ["exe", "cmd", "bat"].iter().any(|extension| file.with_extension(extension).is_file())
}
