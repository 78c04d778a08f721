//! `kills`: builds the program and the campaign of random kills, and runs the campaign.

use std::process::Command;

use crate::repo;
use attache_rigs::interop::install;

const HELP: &str =
    "cargo xtask kills [--release] [--runs N] [--seed N] [--shard I/K] [--threads N] [--keep]

Kills the hub, its agents and its clients (SIGKILL) at random moments, and checks that no client lost or saw twice a message, no
prompt ran twice, no prompt and no question was lost, and no process is left behind.
  --runs     kills in all shards together (500)
  --seed     the seed of the first world (1); each world has 25 kills and the next seed
  --shard    play the part I of K, from 1
  --threads  worlds at once (2)
  --keep     keep the directories of worlds that failed";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let release = args.iter().any(|arg| arg == "--release");
    let rest: Vec<&String> = args.iter().filter(|arg| *arg != "--release").collect();
    let [program, kills] =
        install::programs(release, ["attache-cli", "attache-kills"], ["attache", "kills"])?;
    let status =
        Command::new(&kills).args(["--attache", &program]).args(rest).current_dir(repo::root()).status();
    let status = status.map_err(|error| format!("{kills}: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("a law is broken, or the campaign did not run to its end".to_owned()),
    }
}
