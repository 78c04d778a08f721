//! The checker against the conformant agent, in which it must find no failure, and against each
//! variant, in which it must find the broken rule and nothing else. In memory and with a paused
//! clock: no deadline takes real time.

use std::io;

use attache_check::run::{Options, Report, Status, run};
use attache_check::target::Memory;
use attache_check::{BoxFuture, Connection, Role, StartOptions, Target, Version};
use attache_conn::Link;
use attache_mutants::agent::{agent, locked_agent, newer_agent, variants, variants_v2};

use crate::matrix::{self, Sample};

/// Scenarios about files that are really there.
const ON_DISK: [&str; 4] = ["outside", "mcp-stdio", "permission-waits", "permission-refused"];
/// Scenarios about commands that an agent runs without the client. Terminals of the client would
/// run real commands too, for which a paused clock does not wait.
const ON_DISK_SHELL: [&str; 2] = ["permission-waits-run", "permission-refused-run"];
const ON_DISK_V2: [&str; 8] = [
    "cwd",
    "roots",
    "outside",
    "mcp-stdio",
    "v2-read",
    "v2-permission-waits",
    "v2-unknown-outcome",
    "v2-unknown-option",
];

/// An agent in this process. On disk its scenarios have a directory, elsewhere only the name of
/// one.
struct Mutant {
    memory: Memory,
    on_disk: bool,
}

impl Mutant {
    fn new(variant: Option<&'static str>, on_disk: bool) -> Mutant {
        let serve = move |link: Link, fresh: &StartOptions| {
            let scenario = fresh.scenario;
            async move {
                match scenario {
                    "auth" => locked_agent(link, variant).await,
                    "v2-older" => newer_agent(link, variant).await,
                    _ => agent(link, variant).await,
                }
            }
        };
        Mutant { memory: Memory::new(serve), on_disk }
    }
}

impl Target for Mutant {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        self.memory.open(fresh)
    }

    fn is_real(&self) -> bool {
        self.on_disk
    }
}

/// Plays the scenarios of a sample in memory, and those of it about files on disk too.
async fn check(variant: Option<&'static str>, version: Version, sample: Sample) -> Vec<Report> {
    let all = sample.scenarios(Role::Agent, version);
    let has_shell = variant.is_none_or(|name| name.ends_with("/shell"));
    let is_real =
        |name: &&str| on_disk(version).contains(name) || (has_shell && ON_DISK_SHELL.contains(name));
    let real = all.iter().copied().filter(is_real).collect();
    let mut reports = Vec::new();
    for (is_real, names) in [(false, all), (true, real)] {
        if !names.is_empty() {
            let options = Options { faults: true, version, ..matrix::options(Role::Agent, &names) };
            reports.push(run(&Mutant::new(variant, is_real), &options, &mut |_| {}).await);
        }
    }
    reports
}

fn on_disk(version: Version) -> &'static [&'static str] {
    match version {
        Version::V1 => &ON_DISK,
        Version::V2 => &ON_DISK_V2,
    }
}

#[tokio::test(start_paused = true)]
async fn the_good_agent_keeps_every_rule() {
    // Scenarios about files stop where there are none; they were played on disk too.
    for version in Version::ALL {
        let reports = check(None, version, Sample::All).await;
        matrix::assert_good(&reports, Role::Agent, version, on_disk(version));
    }
}

#[test]
fn each_variant_is_found_out() {
    matrix::assert_found_out(variants(), Version::V1, check);
}

#[test]
fn each_variant_of_version_2_is_found_out() {
    matrix::assert_found_out(variants_v2(), Version::V2, check);
}

#[tokio::test(start_paused = true)]
async fn a_locked_agent_is_judged_after_the_login() {
    let locked = Memory::new(|link, _: &StartOptions| locked_agent(link, None));
    let options = |login: Option<&str>| Options {
        login: login.map(str::to_owned),
        only: vec!["CANCEL-05".to_owned(), "AUTH-05".to_owned()],
        ..Options::new(Role::Agent)
    };
    for (login, logged_in) in [(None, false), (Some("key"), true), (Some("no such method"), false)] {
        let report = run(&locked, &options(login), &mut |_| {}).await;
        let kept = |id: &str| {
            report.rules.iter().any(|outcome| outcome.rule.id == id && outcome.status == Status::Pass)
        };
        assert_eq!(kept("CANCEL-05"), logged_in, "{login:?}");
        // The login itself is judged in each case.
        assert!(kept("AUTH-05"), "{login:?}");
        assert!(matrix::failures(&[report]).is_empty(), "{login:?}");
    }
}

#[test]
fn every_duty_has_a_variant() {
    matrix::assert_complete(variants(), Role::Agent, Version::V1);
    matrix::assert_complete(variants_v2(), Role::Agent, Version::V2);
}
