//! `cargo xtask check-coverage`: the rules that the checker covers, and the checks that are known
//! to fail.
//!
//! Runs the tests of `attache-check` against the conformant peers and every variant, and prints
//! their table. Fails if a variant is not caught, or if an observable MUST or SHOULD has no check
//! or variant.

use std::process::{Command, Stdio};

use crate::repo;

/// Filters of test names.
const TESTS: &[&str] = &["coverage", "agent_mutants", "client_mutants", "server_mutants", "listener_mutants"];
const USAGE: &str = "usage: cargo xtask check-coverage [--count]
  --count   print the table without running the variants";

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
        // The test runner prints dots before the first line of the table.
        let lines = text.lines().map(|line| line.trim_start_matches('.'));
        let table = lines.skip_while(|line| !line.starts_with("side ")).take_while(|line| line.len() > 3);
        table.for_each(|line| println!("{line}"));
        let ways = text.lines().filter(|line| line.contains("MUST with two or more different mutants"));
        ways.for_each(|line| println!("{}", line.trim_start_matches('.')));
        return Ok(());
    }
    print!("{text}");
    Err("a check is missing, or cannot fail".to_owned())
}
