//! `attacks`: builds the program and the attack suite, and runs the suite.

use std::process::Command;

use crate::repo;

const HELP: &str = "cargo xtask attacks [--release] [ARGS…]

Builds the program and tests/attacks, and attacks the program. Other arguments are those of the suite: --only CLASS|NAME, --list,
--verbose, --keep, --help.";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}\n");
    }
    let release = args.iter().any(|arg| arg == "--release");
    let rest: Vec<&String> = args.iter().filter(|arg| *arg != "--release").collect();
    let profile: &[&str] = if release { &["--release"] } else { &[] };
    let root = repo::root();
    let cargo = |words: &[&str]| {
        let status = Command::new("cargo").args(words).args(profile).current_dir(&root).status();
        let status = status.map_err(|error| format!("cargo: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("cargo {} failed", words.join(" "))) }
    };
    cargo(&["build", "--quiet", "-p", "attache-cli", "-p", "attache-attacks"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let suite = root.join(target).join(if release { "release" } else { "debug" }).join("attacks");
    let status = Command::new(&suite).args(rest).current_dir(&root).status();
    let status = status.map_err(|error| format!("{}: {error}", suite.display()))?;
    if status.success() {
        Ok(())
    } else {
        Err("an attack succeeded, or the suite did not run to its end".to_owned())
    }
}
