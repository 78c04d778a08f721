//! Our agents and our client over protocol version 2, with the official SDKs for TypeScript and Rust as the peer.

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
    "ok replaced_message",
    "ok edit_granted",
    "ok edit_denied",
    "ok terminal",
    "ok background",
    "ok cancel",
    "ok queue",
    "ok modes_as_an_option",
    "ok resume_with_replay",
];
/// The checks of our client.
const OUR_CHECKS: &[&str] = &[
    "ok initialize",
    "ok answer",
    "ok stop_reasons",
    "ok replaced_message",
    "ok edit_granted",
    "ok edit_denied",
    "ok terminal",
    "ok cancel",
    "ok cancel_asked",
    "ok background",
    "ok resume_with_replay",
];
/// The checks of the client on the official Rust SDK.
const RUST_CHECKS: &[&str] = &[
    "ok initialize",
    "ok login",
    "ok stream",
    "ok replaced_message",
    "ok edit_granted",
    "ok edit_denied",
    "ok terminal",
    "ok cancel",
    "ok queue",
    "ok background",
    "ok resume_with_replay",
];
const CODER_CHECKS: &[&str] =
    &["ok initialize", "ok read", "ok edit_granted", "ok edit_denied", "ok cancel", "ok resume_with_replay"];

/// Runs the client of one SDK against our agent for the scenarios.
pub(super) fn scenarios(
    sdk: &str,
    agent: &[String],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    match sdk {
        "ts" => run("ts (version 2)", "ours", install::client_v2(cache)?, &[], CHECKS, agent, cache, report),
        "rust" => {
            let client = vec![install::rust_peer(cache, "client_v2")?];
            run("rust (version 2)", "ours", client, &[], RUST_CHECKS, agent, cache, report)
        }
        _ => Ok(()), // the others do not speak version 2
    }
}

/// Runs our client against the agent of one SDK.
pub(super) fn agents(sdk: &str, cache: &Path, report: &mut Report) -> Result<(), String> {
    let (name, agent) = match sdk {
        "ts" => ("ts (version 2)", install::ts_agent_v2(cache)?),
        "rust" => ("rust (version 2)", vec![install::rust_peer(cache, "agent_v2")?]),
        _ => return Ok(()),
    };
    let [client] = install::our_peers(["interop_client_v2"])?;
    run("ours (version 2)", name, vec![client], &[], OUR_CHECKS, &agent, cache, report)
}

/// Runs our client against our agent.
pub(super) fn ours(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    let [client] = install::our_peers(["interop_client_v2"])?;
    run("ours (version 2)", "ours", vec![client], &[], OUR_CHECKS, agent, cache, report)
}

/// Runs the client against our coding agent.
pub(super) fn coder(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    let client = install::client_v2(cache)?;
    run("ts (version 2)", "attache_agent", client, &["--coder"], CODER_CHECKS, agent, cache, report)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one run")]
fn run(
    client_name: &str,
    name: &str,
    mut client: Vec<String>,
    flags: &[&str],
    expected: &[&'static str],
    agent: &[String],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    client.extend(flags.iter().chain(&["--"]).map(|&word| word.to_owned()));
    let run = Run {
        client: client_name,
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
