//! `attacks`: builds the program and the attack suite, and runs the suite.

use std::process::Command;

use crate::repo;
use attache_rigs::interop::install;

const HELP: &str = "cargo xtask attacks [--release] [ARGS…]

Builds the program and tests/attacks, and attacks the program. Other arguments are those of the suite: --only CLASS|NAME, --list,
--verbose, --keep, --help.";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}\n");
    }
    let release = args.iter().any(|arg| arg == "--release");
    let rest: Vec<&String> = args.iter().filter(|arg| *arg != "--release").collect();
    let [_, suite] = install::programs(release, ["attache-cli", "attache-attacks"], ["attache", "attacks"])?;
    let status = Command::new(&suite).args(rest).current_dir(repo::root()).status();
    let status = status.map_err(|error| format!("{suite}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("an attack succeeded, or the suite did not run to its end".to_owned())
    }
}
