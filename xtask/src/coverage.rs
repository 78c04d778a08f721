//! `cargo xtask check-coverage`: which rules the checker covers, and which of its checks have been shown to fail.
//!
//! The tests of `attache-check` run the checker against the good peers and against every variant that breaks a rule. This runs them and prints the
//! table that they make; it fails if a variant is not found out, or if a MUST or SHOULD that can be seen has no check or no variant.

use std::process::{Command, Stdio};

use crate::repo;

/// The tests, by what their names contain.
const TESTS: &[&str] = &["coverage", "agent_mutants", "client_mutants"];
const USAGE: &str = "usage: cargo xtask check-coverage [--count]
  --count   only count: the tests have just been run";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let tests = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => TESTS,
        ["--count"] => &TESTS[..1],
        _ => return Err(USAGE.to_owned()),
    };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["test", "--quiet", "-p", "attache-check", "--test", "it", "--"])
        .args(["--nocapture", "--test-threads=1"])
        .args(tests)
        .current_dir(repo::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        // Dots of the tests stand before the first line of the table.
        let lines = text.lines().map(|line| line.trim_start_matches('.'));
        let table = lines.skip_while(|line| !line.starts_with("side ")).take_while(|line| line.len() > 3);
        table.for_each(|line| println!("{line}"));
        return Ok(());
    }
    print!("{text}");
    Err("a check is missing, or cannot fail".to_owned())
}
