//! The checker against the conformant client, in which it must find no failure, and against each
//! variant, in which it must find the broken rule and nothing else. In memory and with a paused
//! clock: no deadline takes real time.

use std::io;
use std::sync::Arc;

use attache_check::run::{Options, Report, run};
use attache_check::target::{Launch, PeerProcess};
use attache_check::{BoxFuture, Connection, Role, StartOptions, Target, Version};
use attache_conn::Link;
use attache_mutants::client::{Relaunch, Setup, variants, variants_v2};
use tokio::sync::{mpsc, oneshot};

use crate::matrix::{self, Sample};

/// A client in this process. On disk its scenarios have a directory, elsewhere only the name of
/// one; its commands are pretended.
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

/// A start of the agent's program, and the sender of its exit code.
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

/// Plays the scenarios of a sample, those about files in a directory, the others without one.
async fn check(variant: Option<&'static str>, version: Version, sample: Sample) -> Vec<Report> {
    let all = sample.scenarios(Role::Client, version);
    let (real, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| ON_DISK.contains(name));
    let mut reports = Vec::new();
    for (on_disk, names) in [(false, others), (true, real)] {
        if !names.is_empty() {
            let options = Options { faults: true, version, ..matrix::options(Role::Client, &names) };
            let mutant = Mutant { variant, version, on_disk };
            reports.push(run(&mutant, &options, &mut |_| {}).await);
        }
    }
    reports
}

#[tokio::test(start_paused = true)]
async fn the_good_client_keeps_every_rule() {
    for version in Version::ALL {
        matrix::assert_good(&check(None, version, Sample::All).await, Role::Client, version, &[]);
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

#[test]
fn every_duty_has_a_variant() {
    matrix::assert_complete(variants(), Role::Client, Version::V1);
    matrix::assert_complete(variants_v2(), Role::Client, Version::V2);
}
