//! The checker against the good client, which it must praise, and against each of its variants, of which it must find what is wrong and
//! nothing else. In memory and with a paused clock: no deadline takes real time.

use std::io;
use std::sync::Arc;

use attache_check::run::{Options, Report, run};
use attache_check::target::{Launch, PeerProcess};
use attache_check::{BoxFuture, Connection, Role, Scenario, StartOptions, Target, Version, scenarios};
use attache_conn::Link;
use attache_mutants::client::{Relaunch, Setup, variants, variants_v2};
use tokio::sync::{mpsc, oneshot};

use crate::matrix;

/// A client in this process. On disk its scenarios have a directory, elsewhere only the name of one; its commands are pretended.
struct Mutant {
    variant: Option<&'static str>,
    version: Version,
    on_disk: bool,
}

impl Target for Mutant {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let (our_writer, their_reader) = tokio::io::duplex(64 << 10);
            let (their_writer, our_reader) = tokio::io::duplex(64 << 10);
            let (cue, cues) = mpsc::channel(4);
            let (launch, launches) = mpsc::channel(4);
            let setup = Setup {
                variant: self.variant.map(str::to_owned),
                protocol: self.version.number(),
                act: fresh.act.to_owned(),
                prompt: fresh.prompt.clone(),
                cwd: fresh.cwd.clone(),
                session: Some(attache_check::target::SESSION.to_owned()),
                // The last is there to be left out (ROOT-19).
                roots: attache_check::target::roots(&fresh.cwd)
                    .into_iter()
                    .chain([fresh.cwd.clone()])
                    .collect(),
                cues: Some(cues),
                relaunch: Some(relaunch(launch)),
                processes: false,
            };
            tokio::spawn(attache_mutants::client(Link::from_io(their_reader, their_writer), setup));
            let opened = Connection::from_io(our_reader, our_writer);
            Ok(Connection { process: Box::new(User { cue, launches }), ..opened })
        })
    }

    fn is_real(&self) -> bool {
        self.on_disk
    }
}

/// A start of the agent's program, which waits to be told how it ends.
type Started = (Launch, oneshot::Sender<u8>);

fn relaunch(launches: mpsc::Sender<Started>) -> Relaunch {
    Arc::new(move |args, env| {
        let launches = launches.clone();
        Box::pin(async move {
            let (end, ended) = oneshot::channel();
            let _ = launches.send((Launch { args, env }, end)).await;
            ended.await == Ok(0)
        })
    })
}

/// The person before the client, and what they see of it.
struct User {
    cue: mpsc::Sender<String>,
    launches: mpsc::Receiver<Started>,
}

impl PeerProcess for User {
    fn act(&mut self, act: &str) -> io::Result<()> {
        self.cue.try_send(act.to_owned()).map_err(io::Error::other)
    }

    fn relaunched(&mut self, code: u8) -> BoxFuture<'_, Option<Launch>> {
        Box::pin(async move {
            let (launch, end) = self.launches.recv().await?;
            end.send(code).ok()?;
            Some(launch)
        })
    }
}

/// Scenarios about files that are really there.
const ON_DISK: [&str; 14] = [
    "one-answer",
    "error-codes",
    "bad-params",
    "outside",
    "links",
    "read-lines",
    "read-odd",
    "write-new",
    "write-read",
    "relative-path",
    "not-provided",
    "meta",
    "unknown-members",
    "fault-deaf",
];

/// Plays the scenarios that `wanted` says, those about files in a directory, the others without one.
async fn check(
    variant: Option<&'static str>,
    version: Version,
    wanted: impl Fn(usize, &Scenario) -> bool,
) -> [Report; 2] {
    let mut all = scenarios(Role::Client);
    all.retain(|scenario| scenario.versions.contains(&version));
    let wanted: Vec<&Scenario> = all
        .iter()
        .enumerate()
        .filter(|(place, scenario)| wanted(*place, scenario))
        .map(|(_, scenario)| scenario)
        .collect();
    let options = |on_disk: bool| {
        let here = wanted.iter().filter(|scenario| ON_DISK.contains(&scenario.name) == on_disk);
        Options {
            faults: true,
            version,
            scenarios: here.map(|scenario| scenario.name.to_owned()).collect(),
            ..Options::new(Role::Client)
        }
    };
    let nothing = |_: attache_check::run::Progress<'_>| {};
    [
        run(&Mutant { variant, version, on_disk: false }, &options(false), &mut { nothing }).await,
        run(&Mutant { variant, version, on_disk: true }, &options(true), &mut { nothing }).await,
    ]
}

#[tokio::test(start_paused = true)]
async fn the_good_client_keeps_every_rule() {
    for version in Version::ALL {
        matrix::assert_good(&check(None, version, |_, _| true).await, Role::Client, version, &[]);
    }
}

/// Each variant plays the scenarios that concern it and every fifth of the others, by turns; with `ATTACHE_MATRIX=whole` all.
#[test]
fn each_variant_is_found_out() {
    let whole = std::env::var("ATTACHE_MATRIX").is_ok_and(|matrix| matrix == "whole");
    matrix::assert_each(variants(), |number, variant| async move {
        let concerns = |scenario: &Scenario| {
            scenario.rules.iter().any(|rule| *rule == variant.rule() || variant.also.contains(rule))
        };
        // With ten megabytes in a line, faults are not the quickest.
        let turn = |place: usize, scenario: &Scenario| !scenario.fault && (place + number).is_multiple_of(5);
        let wanted = |place: usize, scenario: &Scenario| whole || concerns(scenario) || turn(place, scenario);
        matrix::wrong(variant, &check(Some(variant.name), Version::V1, wanted).await, whole)
    });
}

#[test]
fn each_variant_of_version_2_is_found_out() {
    matrix::assert_each(variants_v2(), |_, variant| async {
        matrix::wrong(variant, &check(Some(variant.name), Version::V2, |_, _| true).await, true)
    });
}

#[test]
fn every_duty_has_a_variant() {
    matrix::assert_complete(variants(), Role::Client, Version::V1);
    matrix::assert_complete(variants_v2(), Role::Client, Version::V2);
}
