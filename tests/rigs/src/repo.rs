//! Where the repository is and which files it has.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Every file that is tracked or would be, with `/` between the parts, in order.
pub fn files() -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    let mut files: Vec<String> =
        list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads a file of the repository.
pub fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// Whether a file holds nothing but tests.
pub fn is_test_file(path: &str) -> bool {
    // What stands under `src` of a test crate is a program that tests run, not a test.
    !(path.starts_with("tests/") && path.contains("/src/"))
        && path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
}
