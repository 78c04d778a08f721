//! `cargo xtask interop`: our agent and client against the official SDKs, and our clients against
//! real agents.
//!
//! The peers are in `tests/interop`: one agent and one client for each official SDK, and
//! `scenarios.json`, which says what every client must observe with every agent. A client prints
//! observations; this chore compares them, reads the messages that went over the wire between the
//! two, and counts the processes that are left at the end.
//!
//! Read on in `install` (where the SDKs come from), `pair` (one client, one agent), `wire` (what
//! must hold of any exchange), `version_2` (version 2), `mcp` (our MCP server), `remote` (our
//! server), `matrix` (all clients with all servers), `shipped` (the example programs that the SDKs
//! carry themselves), `coder` (our coding agent with clients of others) and `real` (agents that
//! people use).

mod coder;
mod conform;
pub mod install;
mod matrix;
mod mcp;
mod pair;
mod real;
mod remote;
mod report;
mod shipped;
mod tap;
mod version_2;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use pair::{Ended as ProcessEnd, Process, run_process};
pub(crate) use real::{CHAT_AGENTS, ChatAgent, ModelEnvironment, chat_agent, plain_env};
use report::Report;
pub(crate) use shipped::quoted;

/// The implementations, by the name that `--only` and `scenarios.json` use.
const OFFICIAL: &[&str] = &["ts", "py", "rust"];
const OURS: &str = "ours";

const USAGE: &str = "usage: cargo xtask interop [--only ts,py,rust] [--coder | --mcp | --remote | --cut | --matrix | --neovim | --peers | --versions]
       cargo xtask interop --real [--only gemini,opencode,claude,codex,qwen] [--by sdk,attache]
  --only    which official SDKs, or with --real which agents, to run against (default: all of both)
  --coder   run only our coding agent, with the clients of the official SDKs, npm's acpx, and neovim with CodeCompanion
  --mcp     run only our MCP server, with the official clients for TypeScript
  --remote  run only our server and our client, with the official SDKs over WebSocket and HTTP
  --matrix  run every client with every server over WebSocket and HTTP, ours and official, and draw docs/interop-remote.svg
  --cut     run only the scenario in which the connection is cut, over WebSocket and HTTP
  --neovim  run only our coding agent with neovim; ATTACHE_CODECOMPANION=DIR names a checkout of CodeCompanion
  --peers   run the official peers against one another instead: this checks the scenarios themselves
  --versions  run only the negotiation of the version, with the routers and clients of the official SDKs
  --real    run our clients against agents that people use, with a fake model
  --by      which of our clients: a small one on the SDK, the program, or both (the default)";

/// A program that plays one side.
#[derive(Clone, Debug)]
struct Program {
    name: &'static str,
    command: Vec<String>,
}

struct Wanted {
    only: Vec<&'static str>,
    by: Vec<&'static str>,
    what: What,
}

#[derive(PartialEq)]
enum What {
    /// Ours with the official SDKs, then with agents that people use.
    All,
    /// Ours with some of the official SDKs.
    Ours,
    /// Our coding agent with clients of others.
    Coder,
    /// Our MCP server with the official clients.
    Mcp,
    /// Our server with the official clients.
    Remote,
    /// Our server and our client with the official ones, when the connection is cut.
    Cut,
    /// All clients with all servers.
    Matrix,
    /// Our coding agent with neovim.
    Neovim,
    /// The official SDKs with one another.
    Peers,
    /// The negotiation of the version with the official SDKs.
    Versions,
    /// Ours with agents that people use.
    Real,
}

/// Judges the peers with `attache check`.
pub fn conformance(args: &[String]) -> Result<(), String> {
    conform::run(args)
}

/// Runs the chore.
pub fn run(args: &[String]) -> Result<(), String> {
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
    match wanted.what {
        What::All | What::Ours => ours(&wanted.only, &cache, &mut report)?,
        What::Coder => coder::run(&wanted.only, &cache, &mut report)?,
        What::Mcp => mcp::run(&cache, &mut report)?,
        What::Remote => {
            let (ours, official) = (install::ours()?, official(&wanted.only, &cache)?);
            remotely(&ours, &official, &cache, &mut report)?;
        }
        What::Neovim => coder::neovim(&cache, &mut report)?,
        What::Peers => peers(&wanted.only, &cache, &mut report)?,
        What::Versions => {
            let ours = install::ours()?;
            for sdk in &wanted.only {
                version_2::negotiation(sdk, &ours, &cache, &mut report)?;
            }
        }
        What::Cut => {
            let (ours, official) = (install::ours()?, official(&wanted.only, &cache)?);
            remote::reconnect(&ours, &official, &cache, &mut report)?;
        }
        What::Matrix => return matrix::run(&wanted.only, &cache),
        What::Real => return real::run(&wanted.only, &wanted.by, &cache),
    }
    let outcome = report.finish(started.elapsed());
    if wanted.what == What::All {
        println!();
        return outcome.and(real::run(&real::names(), &wanted.by, &cache));
    }
    outcome
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
    remotely(&ours, &official, cache, report)?;
    for sdk in only {
        version_2::scenarios(sdk, &ours.agent.command, cache, report)?;
        version_2::agents(sdk, cache, report)?;
        version_2::negotiation(sdk, &ours, cache, report)?;
    }
    version_2::ours(&ours.agent.command, cache, report)?;
    if only.contains(&"ts") {
        mcp::run(cache, report)?;
    }
    shipped::run(only, cache, report)?;
    coder::run(only, cache, report)
}

/// Our agent with their clients and our client with their agents, over the network.
fn remotely(
    ours: &install::Ours,
    official: &[(Program, Program)],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let (clients, agents): (Vec<Program>, Vec<Program>) = official.iter().cloned().unzip();
    remote::run(&clients, &ours.agent, cache, report)?;
    remote::run_official(&ours.client, &agents, cache, report)?;
    remote::reconnect(ours, official, cache, report)
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
    let (mut only, mut by, mut what) = (None, None, What::All);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => only = Some(args.next().ok_or(USAGE)?),
            "--by" => by = Some(args.next().ok_or(USAGE)?),
            "--coder" => what = What::Coder,
            "--mcp" => what = What::Mcp,
            "--remote" => what = What::Remote,
            "--cut" => what = What::Cut,
            "--matrix" => what = What::Matrix,
            "--neovim" => what = What::Neovim,
            "--peers" => what = What::Peers,
            "--versions" => what = What::Versions,
            "--real" => what = What::Real,
            _ => return Err(USAGE.to_owned()),
        }
    }
    if what == What::All && only.is_some() {
        what = What::Ours;
    }
    let known = if what == What::Real { real::names() } else { OFFICIAL.to_vec() };
    Ok(Wanted { only: those(only, known)?, by: those(by, real::CLIENTS.to_vec())?, what })
}

/// Those that a list names, separated by commas; all of them if there is no list.
fn those(list: Option<&String>, known: Vec<&'static str>) -> Result<Vec<&'static str>, String> {
    let Some(list) = list else { return Ok(known) };
    let find = |name| known.iter().find(|known| **known == name).copied().ok_or(USAGE.to_owned());
    list.split(',').map(find).collect()
}

/// Where the peers and the scenarios are.
fn home() -> PathBuf {
    crate::repo::root().join("tests/interop")
}
