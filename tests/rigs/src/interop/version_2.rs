//! Our agents over protocol version 2, with the official TypeScript SDK as the client.

use std::path::Path;

use super::install;
use super::report::Report;
use super::shipped::{Checks, Run, play};

const CHECKS: &[&str] = &[
    "ok initialize",
    "ok login",
    "ok stream",
    "ok thoughts_and_plans",
    "ok stop_reasons",
    "ok permission",
    "ok cancel",
    "ok queue",
    "ok modes_as_an_option",
    "ok resume_with_replay",
];
const CODER_CHECKS: &[&str] =
    &["ok initialize", "ok read", "ok edit_granted", "ok edit_denied", "ok cancel", "ok resume_with_replay"];

/// Runs the client against our agent for the scenarios.
pub(super) fn scenarios(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    run("ours", &[], CHECKS, agent, cache, report)
}

/// Runs the client against our coding agent.
pub(super) fn coder(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    run("attache_agent", &["--coder"], CODER_CHECKS, agent, cache, report)
}

fn run(
    name: &str,
    flags: &[&str],
    expected: &[&'static str],
    agent: &[String],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let mut client = install::client_v2(cache)?;
    client.extend(flags.iter().chain(&["--"]).map(|&word| word.to_owned()));
    let run = Run {
        client: "ts (version 2)",
        agent: name,
        command: &|agent| [&*client, agent].concat(),
        agent_command: agent,
        input: "",
        is_v1: false,
        judge: &|ended, _| {
            for failed in ended.stdout.iter().filter(|line| line.starts_with("not ok")) {
                println!("        {failed}");
            }
            let seen = |check: &&'static str| (*check, ended.stdout.iter().any(|line| line == check));
            let mut checks: Checks = expected.iter().map(seen).collect();
            checks.push(("the client ends well", ended.code == Some(0)));
            checks
        },
    };
    play(cache, report, &run)
}
