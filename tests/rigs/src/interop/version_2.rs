//! Our agents and our client over protocol version 2, with the official SDKs for TypeScript and
//! Rust as the peer.

use std::path::Path;

use super::report::Report;
use super::shipped::{Checks, Run, play, quoted};
use super::{Program, install};

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
/// The checks of our client before the routers, which are the same for every set of versions.
const ROUTER_CHECKS: &[&str] = &[
    "ok version_1",
    "ok version_2",
    "ok both",
    "ok both_with_files",
    "ok both_with_files_on_one_connection",
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

/// Runs our clients against the routers of the official SDKs, and the clients of these that choose
/// a version against our agent.
pub(super) fn negotiation(
    sdk: &'static str,
    ours: &install::Ours,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    // Names; the checks of the client of this SDK before our agent, for both versions and for
    // version 1.
    let (name, both, v1): (_, &[&str], &[&str]) = match sdk {
        "ts" => (
            "ts router",
            &[
                "ok version_1",
                "ok version_2",
                "ok newer_offer",
                "ok lower_repeat",
                "ok higher_repeat",
                "ok order",
            ],
            &["ok version_1", "ok fallback", "ok answer_to_an_offer_of_2"],
        ),
        "rust" => (
            "rust router",
            &["ok version_1", "ok version_2", "ok both", "ok both_with_files"],
            &["ok version_1", "ok both", "ok both_with_files"],
        ),
        _ => return Ok(()), // the others have one version only
    };
    let router = install::router(sdk, cache)?;
    let [client_v2, versions] = install::our_peers(["interop_client_v2", "interop_versions"])?;
    // All scenarios of version 1, and all checks of version 2.
    super::pair::run(&ours.client, &Program { name, command: router.clone() }, cache, report)?;
    run("ours (version 2)", name, vec![client_v2], &[], OUR_CHECKS, &router, cache, report)?;
    for only in [None, Some("1"), Some("2")] {
        let flags: Vec<&str> = only.map_or_else(Vec::new, |version| vec!["--only", version]);
        let router: Vec<String> =
            router.iter().cloned().chain(flags.iter().map(|&flag| flag.to_owned())).collect();
        let name = only.map_or(name.to_owned(), |version| format!("{name} (only {version})"));
        run("ours (versions)", &name, vec![versions.clone()], &flags, ROUTER_CHECKS, &router, cache, report)?;
    }
    program(name, &router, cache, report)?;
    let client = install::versions_client(sdk, cache)?;
    let title = format!("{sdk} (versions)");
    let agent = &ours.agent.command;
    run(&title, "ours", client.clone(), &[], both, agent, cache, report)?;
    let old = [agent.as_slice(), &["--v1".to_owned()]].concat();
    run(&title, "ours (only 1)", client, &["--only", "1"], v1, &old, cache, report)
}

/// Runs the program `attache` against a router: it speaks version 2 where it is offered, and names
/// the versions where nothing fits.
fn program(name: &str, router: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    // Its settings and sessions are its own.
    let home = cache.join("program-home");
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let mut attache = vec!["env".to_owned()];
    for directory in ["CONFIG", "DATA", "STATE", "CACHE"] {
        attache.extend(["-u".to_owned(), format!("XDG_{directory}_HOME")]);
    }
    attache.extend([format!("HOME={}", home.display()), install::program()?]);
    // The protocol that is asked for (none: the one for command lines), the version that the router
    // has, and what is printed.
    let cases = [
        ("", Some("2"), "hello"),
        ("auto", None, "hello"),
        ("2", None, "hello"),
        ("auto", Some("2"), "hello"),
        ("2", Some("1"), "the agent speaks version 1 of the protocol and this client version 2"),
        ("1", Some("2"), "Unsupported protocol version"),
    ];
    for (protocol, only, printed) in cases {
        let flags = only.map_or_else(Vec::new, |version| vec!["--only".to_owned(), version.to_owned()]);
        let router = [router, &flags].concat();
        let has = only.map_or(String::new(), |version| format!(" (only {version})"));
        let asked: Vec<&str> = if protocol.is_empty() { Vec::new() } else { vec!["--protocol", protocol] };
        let run = Run {
            client: &match protocol {
                "" => "attache".to_owned(),
                protocol => format!("attache (--protocol {protocol})"),
            },
            agent: &format!("{name}{has}"),
            command: &|agent| {
                let agent = quoted(agent);
                let flags = ["--format", "text", "--agent", &agent, "exec", "say hello"];
                attache
                    .iter()
                    .cloned()
                    .chain(asked.iter().chain(&flags).map(|&word| word.to_owned()))
                    .collect()
            },
            agent_command: &router,
            input: "",
            is_v1: false,
            judge: &|ended, _| {
                let is_printed =
                    ended.stdout.iter().any(|line| line.contains(printed)) || ended.stderr.contains(printed);
                let is_answer = printed == "hello";
                vec![("what is printed", is_printed), ("the exit code", (ended.code == Some(0)) == is_answer)]
            },
        };
        play(cache, report, &run)?;
    }
    Ok(())
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
