//! Our agent over protocol version 2, with the official TypeScript SDK as the client.

use std::path::Path;

use super::install;
use super::report::Report;
use super::shipped::{Run, play};

/// Runs the client of version 2 against our interop agent.
pub(super) fn run(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    let client = install::client_v2(cache)?;
    let run = Run {
        client: "ts (version 2)",
        agent: "ours",
        command: &|agent| [&*client, &["--".to_owned()], agent].concat(),
        agent_command: agent,
        input: "",
        is_v1: false,
        judge: &|ended, _| {
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
            for failed in ended.stdout.iter().filter(|line| line.starts_with("not ok")) {
                println!("        {failed}");
            }
            let seen = |check: &&'static str| (*check, ended.stdout.iter().any(|line| line == check));
            CHECKS.iter().map(seen).chain([("the client ends well", ended.code == Some(0))]).collect()
        },
    };
    play(cache, report, &run)
}
