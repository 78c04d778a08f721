//! `cargo xtask examples FILE…`: runs example messages against the crates.
//!
//! The work is done by a program of `attache-testkit`, so that xtask itself needs none of the
//! crates.

use std::path::Path;
use std::process::Command;

use crate::repo;

/// The examples that the repository brings along.
const OWN: &[&str] = &["crates/wire/tests/data/valid.jsonl", "crates/wire/tests/data/invalid.jsonl"];

/// Runs the files, or without any the repository's own.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "attache-testkit", "--bin", "run-examples", "--"]);
    if args.iter().all(|arg| arg.starts_with("--")) {
        command.args(OWN.iter().map(|path| repo::root().join(path)));
    }
    // cargo runs in the workspace, but the names are relative to where we were called.
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    command.args(
        args.iter().map(|arg| if arg.starts_with("--") { arg.into() } else { here.join(Path::new(arg)) }),
    );
    let status = command.current_dir(repo::root()).status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("not every example behaves as it should".to_owned()) }
}
