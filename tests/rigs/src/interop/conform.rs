//! `cargo xtask conformance`: `attache check` on the peers that the other chores run with, and the tables of docs/conformance.md.
//!
//! Everybody is judged by what they say: agents that need a model have the fake one, clients are started with the checker as
//! their agent. What is found broken was looked at by hand; the notes are in tests/interop/conformance.jsonl, and a
//! failure without one is told.

mod peers;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::{install, real};
use peers::Peer;

const USAGE: &str =
    "usage: cargo xtask conformance [--only NAME,…] [--protocol VERSION] [--deadline SECONDS] [--print]
  --only      these peers only (a part of the name is enough)
  --protocol  this version of the protocol only
  --deadline  how long one answer may take, 15 unless told: a slow machine needs more
  --print     make the page of the reports that are there, and run nothing";

/// What became of one peer.
struct Judged {
    peer: Peer,
    report: Value,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (mut only, mut print, mut deadline) = (Vec::new(), false, "15".to_owned());
    let mut protocol = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--only" => only.extend(rest.next().ok_or(USAGE)?.split(',').map(str::to_owned)),
            "--print" => print = true,
            "--protocol" => protocol = Some(rest.next().ok_or(USAGE)?.clone()),
            "--deadline" => deadline.clone_from(rest.next().ok_or(USAGE)?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let cache = install::cache()?;
    let dir = cache.join("conformance");
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let attache = install::program()?;
    let mut peers: Vec<Peer> = peers::all(&cache, &wanted)?;
    peers.retain(|peer| protocol.as_ref().is_none_or(|version| *version == peer.protocol.to_string()));
    if !print && !real::is_sealed() && peers.iter().any(|peer| peer.needs_model) {
        // Agents that people use want to tell somebody about it.
        let mut again = vec!["conformance".to_owned()];
        again.extend(args.iter().cloned());
        if let Some(outcome) = real::sealed(&again) {
            return outcome;
        }
    }
    let mut judged = Vec::new();
    for peer in peers {
        let kept = dir.join(format!("{}.json", peer.file()));
        let started = Instant::now();
        if !print {
            judge(&attache, &peer, &deadline, &cache, &dir)?;
        }
        let Ok(text) = fs::read_to_string(&kept) else {
            println!("none    {}: no report", peer.name);
            continue;
        };
        let report: Value =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", kept.display()))?;
        let (verdict, took) = (table::verdict(&report), started.elapsed().as_secs());
        println!("judged  {} (version {}): {verdict} ({took} s)", peer.name, peer.protocol);
        judged.push(Judged { peer, report });
    }
    let missing = table::write(&judged, only.is_empty() && protocol.is_none())?;
    if missing.is_empty() { Ok(()) } else { Err(format!("nobody has looked at: {}", missing.join(", "))) }
}

fn judge(attache: &str, peer: &Peer, deadline: &str, cache: &Path, dir: &Path) -> Result<(), String> {
    let file = |ext: &str| dir.join(format!("{}.{ext}", peer.file())).to_string_lossy().into_owned();
    let mut command = Command::new(attache);
    command.args(["check", peer.side(), "--faults", "--deadline", deadline, "-j", peer.jobs()]);
    command.args(["--protocol", &peer.protocol.to_string()]);
    for ext in ["json", "html"] {
        let path = file(ext);
        let _ = fs::remove_file(&path);
        command.args(["--report", &format!("{ext}={path}")]);
    }
    command.args(["--out", &file("txt"), "--traces", &file("traces")]);
    command.args(&peer.flags).arg("--").args(&peer.command);
    let _model = match &peer.agent {
        Some(agent) => {
            let (model, env) = agent.begin(cache)?;
            command.env_clear().envs(env);
            Some(model)
        }
        None => {
            let home = dir.join("home").join(peer.file());
            let _ = fs::remove_dir_all(&home);
            fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
            command.env("HOME", home);
            None
        }
    };
    let status = command.current_dir(dir).status().map_err(|error| format!("{attache}: {error}"))?;
    // 0 and 1 are verdicts.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!("{}: could not be judged, see {}", peer.name, file("txt"))),
    }
}

/// Where the notes are.
fn notes() -> PathBuf {
    super::home().join("conformance.jsonl")
}
