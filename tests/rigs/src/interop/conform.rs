//! `cargo xtask conformance`: `attache check` on the peers that the other chores run with, and the
//! tables of docs/conformance.md.
//!
//! Everybody is judged by what they say: agents that need a model have the scripted one
//! (`--fake-model`), clients are started with the checker as their agent. The results are kept in
//! tests/interop/results.jsonl; the page and the site are made of them. What is found broken was
//! looked at by hand; the notes are in tests/interop/conformance.jsonl, and a failure without one
//! is reported.

mod peers;
mod remote;
mod site;
mod store;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::{install, real};
use peers::Peer;
use store::Record;

const USAGE: &str =
    "usage: cargo xtask conformance [--remote] [--only NAME,…] [--protocol VERSION] [--deadline SECONDS]
       cargo xtask conformance --print | --site DIR
  --remote    the transports of servers and of clients that connect to them, and nothing else
  --only      these peers only (a part of the name is enough)
  --protocol  this version of the protocol only
  --deadline  how long one answer may take, 15 by default: a slow machine needs more
  --print     make the page of the results that are kept, and run nothing
  --site      make a static site of the results that are kept, and run nothing";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (mut only, mut print, mut deadline) = (Vec::new(), false, "15".to_owned());
    let (mut protocol, mut is_remote) = (None, false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--only" => only.extend(rest.next().ok_or(USAGE)?.split(',').map(str::to_owned)),
            "--print" => print = true,
            "--site" => return site::write(Path::new(rest.next().ok_or(USAGE)?)),
            "--remote" => is_remote = true,
            "--protocol" => protocol = Some(rest.next().ok_or(USAGE)?.clone()),
            "--deadline" => deadline.clone_from(rest.next().ok_or(USAGE)?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if print {
        let records = store::read()?;
        let mut missing = table::write(&records)?;
        missing.extend(table::write_remote(&records)?);
        return looked_at(&missing);
    }
    let cache = install::cache()?;
    let dir = cache.join("conformance");
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let attache = install::program()?;
    if is_remote {
        return remote::run(&remote::Options {
            attache: &attache,
            deadline: &deadline,
            cache: &cache,
            dir: &dir,
            wanted: &wanted,
            args,
        });
    }
    let mut peers: Vec<Peer> = peers::all(&cache, &wanted)?;
    peers.retain(|peer| protocol.as_ref().is_none_or(|version| *version == peer.protocol.to_string()));
    if !real::is_sealed() && peers.iter().any(|peer| peer.node.is_some()) {
        // Real agents send telemetry.
        let mut again = vec!["conformance".to_owned()];
        again.extend(args.iter().cloned());
        if let Some(outcome) = real::sealed(&again) {
            return outcome;
        }
    }
    let mut records = Vec::new();
    for peer in peers {
        let started = Instant::now();
        judge(&attache, &peer, &deadline, &dir)?;
        records.push(record(&peer, &dir.join(format!("{}.json", peer.file())))?);
        println!("        in {} s", started.elapsed().as_secs());
    }
    looked_at(&table::write(&store::keep(records)?)?)
}

/// An error if there are failures without a note.
fn looked_at(missing: &[String]) -> Result<(), String> {
    if missing.is_empty() { Ok(()) } else { Err(format!("without a note: {}", missing.join(", "))) }
}

/// What is kept of the report on a peer.
fn record(peer: &Peer, file: &Path) -> Result<Record, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let record = Record::of_report(peer, &report);
    let (kept, broken) = (record.count("pass"), record.count("fail"));
    println!(
        "judged  {} (version {}): {}, {kept} kept, {broken} broken",
        peer.name, peer.protocol, record.conclusion
    );
    Ok(record)
}

fn judge(attache: &str, peer: &Peer, deadline: &str, dir: &Path) -> Result<(), String> {
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
    match &peer.node {
        Some(node) => {
            // A key of this machine's user must not reach an agent.
            let path = std::env::var("PATH").unwrap_or_default();
            command.env_clear().env("PATH", format!("{}:{path}", node.display()));
            command.env("LANG", "C.UTF-8").env("TERM", "dumb").env("HOME", dir);
        }
        None => {
            let home = dir.join("home").join(peer.file());
            let _ = fs::remove_dir_all(&home);
            fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
            command.env("HOME", home);
        }
    }
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
