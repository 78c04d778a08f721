//! `cargo xtask interop --matrix`: every client with every server over both transports, and the
//! picture of it in docs/interop-remote.svg.
//!
//! Each step runs in a process of its own, with a server of its own, so that a connection that one
//! step breaks does not count against the others. Nothing is left out: a step that an SDK cannot do
//! is one that the pair does not finish.

mod picture;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::remote::{self, Transport};
use super::{Program, install, official, pair};
use crate::repo;

const PICTURE: &str = "docs/interop-remote.svg";
/// The steps: name in the picture, and scenario.
const STEPS: [(&str, &str); 8] = [
    ("new", "new_session"),
    ("prompt", "text"),
    ("permission", "permission_granted"),
    ("cancel", "cancel_streaming"),
    ("load", "load"),
    ("two sessions", "parallel"),
    ("5 MB", "big"),
    ("reconnect", remote::RECONNECT),
];
/// Scenarios that every step begins with.
const BEFORE: [&str; 2] = ["initialize", "auth"];
/// Most of the time of a step that is not finished is waiting.
const JOBS: usize = 4;

/// An implementation, with its client and its agent.
struct Peer {
    title: String,
    client: Program,
    /// Its agent, which is a server itself.
    agent: Program,
}

/// One run.
struct Job<'a> {
    client: &'a Peer,
    server: &'a Peer,
    transport: Transport,
    step: usize,
}

/// Runs all pairs. The picture is written if all SDKs took part.
pub(super) fn run(only: &[&'static str], cache: &Path) -> Result<(), String> {
    let peers = peers(only, cache)?;
    let mut jobs = Vec::new();
    for transport in Transport::ALL {
        for client in &peers {
            for server in &peers {
                jobs.extend((0..STEPS.len()).map(|step| Job { client, server, transport, step }));
            }
        }
    }
    let started = Instant::now();
    let finished = play_all(&jobs, cache)?;
    println!("{} runs in {:.0} s", jobs.len(), started.elapsed().as_secs_f64());
    let mut rest = finished.chunks(STEPS.len());
    let tables = Transport::ALL.map(|transport| picture::Table {
        title: transport.title(),
        rows: peers.iter().map(|_| rest.by_ref().take(peers.len()).map(<[bool]>::to_vec).collect()).collect(),
    });
    let names: Vec<&str> = peers.iter().map(|peer| peer.title.as_str()).collect();
    let steps = STEPS.map(|(name, _)| name);
    print!("{}", picture::text(&names, &steps, &tables));
    if only.len() < super::OFFICIAL.len() {
        return Ok(());
    }
    fs::write(repo::root().join(PICTURE), picture::svg(&names, &steps, &tables))
        .map_err(|error| format!("{PICTURE}: {error}"))?;
    println!("{PICTURE} is written");
    Ok(())
}

fn peers(only: &[&'static str], cache: &Path) -> Result<Vec<Peer>, String> {
    let ours = install::ours()?;
    let mut peers = vec![Peer {
        title: format!("Attaché {}", env!("CARGO_PKG_VERSION")),
        client: ours.client,
        agent: ours.agent,
    }];
    for ((client, agent), sdk) in official(only, cache)?.into_iter().zip(only) {
        let title = install::title(sdk).to_owned();
        peers.push(Peer { title, client, agent });
    }
    Ok(peers)
}

/// Plays all jobs, some at a time, and returns which were finished.
fn play_all(jobs: &[Job<'_>], cache: &Path) -> Result<Vec<bool>, String> {
    let next = AtomicUsize::new(0);
    let finished: Vec<Mutex<Result<bool, String>>> = jobs.iter().map(|_| Mutex::new(Ok(false))).collect();
    thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(job), Some(place)) = (jobs.get(at), finished.get(at)) else { break };
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = play(job, cache);
                }
            });
        }
    });
    finished.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Plays one step and returns whether the client saw what it should.
fn play(job: &Job<'_>, cache: &Path) -> Result<bool, String> {
    let (name, scenario) = STEPS[job.step];
    let (client, server) = (&job.client.client, &job.server.agent);
    let word = job.transport.word();
    let dir = format!("matrix/{}-{}-{word}-{scenario}", client.name, server.name);
    let dir = pair::workspace(cache, &dir)?;
    let observed = remote::play_cut(client, server, job.transport, &[BEFORE[0], BEFORE[1], scenario], &dir)?;
    let seen = observed.bad.is_empty();
    println!(
        "{}  client {}, server {}, {word}: {name}",
        if seen { "ok    " } else { "not ok" },
        client.name,
        server.name
    );
    Ok(seen)
}
