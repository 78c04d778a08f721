//! The checker against the good agent, which it must praise, and against each of its variants, of which it must find what is wrong and
//! nothing else. In memory and with a paused clock: no deadline takes real time.

use std::io;

use attache_check::run::{Options, Report, Status, run};
use attache_check::target::Memory;
use attache_check::{BoxFuture, Connection, Role, StartOptions, Target, Version};
use attache_conn::Link;
use attache_mutants::agent::{agent, locked_agent, variants, variants_v2};

use crate::matrix;

/// Scenarios about files that are really there.
const ON_DISK: [&str; 2] = ["outside", "mcp-stdio"];
const ON_DISK_V2: [&str; 2] = ["v2-unknown-outcome", "v2-unknown-option"];

/// An agent in this process. On disk its scenarios have a directory, elsewhere only the name of one.
struct Mutant {
    memory: Memory,
    on_disk: bool,
}

impl Mutant {
    fn new(variant: Option<&'static str>, on_disk: bool) -> Mutant {
        let serve = move |link: Link, fresh: &StartOptions| {
            let locked = fresh.scenario == "auth";
            async move {
                if locked {
                    locked_agent(link, variant).await;
                } else {
                    agent(link, variant).await;
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

/// Both ways, one after the other.
async fn check(variant: Option<&'static str>, version: Version) -> [Report; 2] {
    let options = Options { faults: true, version, ..Options::new(Role::Agent) };
    let real = Options { scenarios: on_disk(version).map(str::to_owned).to_vec(), ..options.clone() };
    [
        run(&Mutant::new(variant, false), &options, &mut |_| {}).await,
        run(&Mutant::new(variant, true), &real, &mut |_| {}).await,
    ]
}

fn on_disk(version: Version) -> [&'static str; 2] {
    match version {
        Version::V1 => ON_DISK,
        Version::V2 => ON_DISK_V2,
    }
}

#[tokio::test(start_paused = true)]
async fn the_good_agent_keeps_every_rule() {
    // Scenarios about files stop where there are none; they were played on disk too.
    for version in Version::ALL {
        let reports = check(None, version).await;
        matrix::assert_good(&reports, Role::Agent, version, &on_disk(version));
    }
}

#[test]
fn each_variant_is_found_out() {
    matrix::assert_each(variants(), |_, variant| async {
        matrix::wrong(variant, &check(Some(variant.name), Version::V1).await, true)
    });
}

#[test]
fn each_variant_of_version_2_is_found_out() {
    matrix::assert_each(variants_v2(), |_, variant| async {
        matrix::wrong(variant, &check(Some(variant.name), Version::V2).await, true)
    });
}

#[tokio::test(start_paused = true)]
async fn a_locked_agent_is_judged_behind_its_door() {
    let locked = Memory::new(|link, _: &StartOptions| locked_agent(link, None));
    let options = |login: Option<&str>| Options {
        login: login.map(str::to_owned),
        only: vec!["CANCEL-05".to_owned(), "AUTH-05".to_owned()],
        ..Options::new(Role::Agent)
    };
    for (login, behind) in [(None, false), (Some("key"), true), (Some("no such method"), false)] {
        let report = run(&locked, &options(login), &mut |_| {}).await;
        let kept = |id: &str| {
            report.rules.iter().any(|outcome| outcome.rule.id == id && outcome.status == Status::Pass)
        };
        assert_eq!(kept("CANCEL-05"), behind, "{login:?}");
        // The door itself is judged in each case.
        assert!(kept("AUTH-05"), "{login:?}");
        assert!(matrix::failures(&[report]).is_empty(), "{login:?}");
    }
}

#[test]
fn every_duty_has_a_variant() {
    matrix::assert_complete(variants(), Role::Agent, Version::V1);
    matrix::assert_complete(variants_v2(), Role::Agent, Version::V2);
}
