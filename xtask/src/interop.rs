//! `cargo xtask interop`: our agent and client against the official SDKs.
//!
//! The peers are in `tests/interop`: one agent and one client for each official SDK, and `scenarios.json`, which says
//! what every client must observe with every agent. A client prints observations; this chore compares them, reads
//! the messages that went over the wire between the two, and counts the processes that are left at the end.
//!
//! Read on in `install` (where the SDKs come from), `pair` (one client, one agent), `wire` (what must hold of any
//! exchange) and `shipped` (the example programs that the SDKs carry themselves).

mod install;
mod pair;
mod report;
mod shipped;
mod tap;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Instant;

use report::Report;

/// The implementations, by the name that `--only` and `scenarios.json` use.
const OFFICIAL: &[&str] = &["ts", "py", "rust"];
const OURS: &str = "ours";

const USAGE: &str = "usage: cargo xtask interop [--only ts,py,rust] [--peers]
  --only    which official SDKs to run against (default: all of them)
  --peers   run the official peers against one another instead: this checks the scenarios themselves";

/// A program that plays one side.
#[derive(Clone, Debug)]
struct Program {
    name: &'static str,
    command: Vec<String>,
}

struct Wanted {
    only: Vec<&'static str>,
    peers: bool,
}

/// Runs the chore.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.first().map(String::as_str) == Some(tap::FLAG) {
        return tap::run(&args[1..]);
    }
    let wanted = wanted(args)?;
    let started = Instant::now();
    let cache = install::cache()?;
    if !pair::counts_processes() {
        println!("note    the processes that are left at the end cannot be counted on this system");
    }
    let mut report = Report::default();
    if wanted.peers {
        peers(&wanted.only, &cache, &mut report)?;
    } else {
        ours(&wanted.only, &cache, &mut report)?;
    }
    report.finish(started.elapsed())
}

/// Our agent with their clients, our client with their agents, and ours with one another.
fn ours(only: &[&'static str], cache: &Path, report: &mut Report) -> Result<(), String> {
    let ours = install::ours()?;
    let official = official(only, cache)?;
    for (client, _) in &official {
        pair::run(client, &ours.agent, cache, report)?;
    }
    for (_, agent) in &official {
        pair::run(&ours.client, agent, cache, report)?;
    }
    pair::run(&ours.client, &ours.agent, cache, report)?;
    shipped::run(only, cache, report)
}

/// Every official client with every official agent.
fn peers(only: &[&'static str], cache: &Path, report: &mut Report) -> Result<(), String> {
    let official = official(only, cache)?;
    for (client, _) in &official {
        for (_, agent) in &official {
            pair::run(client, agent, cache, report)?;
        }
    }
    Ok(())
}

fn official(only: &[&'static str], cache: &Path) -> Result<Vec<(Program, Program)>, String> {
    only.iter().map(|sdk| install::official(sdk, cache)).collect()
}

fn wanted(args: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted { only: OFFICIAL.to_vec(), peers: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => {
                let names = args.next().ok_or(USAGE)?;
                wanted.only = names
                    .split(',')
                    .map(|name| OFFICIAL.iter().find(|known| **known == name).copied().ok_or(USAGE))
                    .collect::<Result<_, _>>()?;
            }
            "--peers" => wanted.peers = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(wanted)
}

/// Where the peers and the scenarios are.
fn home() -> PathBuf {
    crate::repo::root().join("tests/interop")
}
