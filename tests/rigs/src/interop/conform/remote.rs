//! `cargo xtask conformance --remote`: `attache check server` on servers of everybody, and `attache
//! check client --listen` on clients.
//!
//! Only the rules of the transports are judged: the agents behind the servers have tables of their
//! own.

mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::{install, real};
use super::store::{self, Record};
use super::{peers, table};
use crate::repo;

const RULES: &str = "crates/check/rules.jsonl";

/// What is wanted of a run.
pub(super) struct Options<'a> {
    pub(super) attache: &'a str,
    pub(super) deadline: &'a str,
    pub(super) cache: &'a Path,
    /// The directory of the reports.
    pub(super) dir: &'a Path,
    pub(super) wanted: &'a dyn Fn(&str) -> bool,
    /// The words of the chore, to run it again without a network.
    pub(super) args: &'a [String],
}

/// Judges servers and clients, keeps the results and writes their part of the page.
pub(super) fn run(options: &Options<'_>) -> Result<(), String> {
    let servers = servers::all(options)?;
    let clients = clients(options)?;
    if !real::is_sealed() {
        // Real servers send telemetry.
        let chore = [&["conformance".to_owned()], options.args].concat();
        if let Some(outcome) = real::sealed(&chore) {
            return outcome;
        }
    }
    let rules = rules()?;
    let mut records = Vec::new();
    for server in servers {
        records.push(judge(options, server.name, server.version, "server", |file, home| {
            server.judge(options, &rules, file, home)
        })?);
    }
    for client in clients {
        records.push(judge(options, &client.name, client.version, "remote", |file, home| {
            client.judge(options, &rules, file, home)
        })?);
    }
    super::looked_at(&table::write_remote(&store::keep(records)?)?)
}

/// Has a peer judged and reads the report.
fn judge(
    options: &Options<'_>,
    name: &str,
    version: &str,
    side: &'static str,
    run: impl FnOnce(&Path, &Path) -> Result<(), String>,
) -> Result<Record, String> {
    let peer = peers::remote(name, version, side);
    let file = options.dir.join(format!("{}.json", peer.file()));
    let home = options.dir.join("home").join(peer.file());
    let _ = fs::remove_dir_all(&home);
    let _ = fs::remove_file(&file);
    fs::create_dir_all(home.join("work")).map_err(|error| format!("{}: {error}", home.display()))?;
    run(&file, &home)?;
    super::record(&peer, &file)
}

/// The checker for a peer, with the flags that all have.
fn checker(options: &Options<'_>, side: &str, rules: &str, file: &Path, home: &Path) -> Command {
    let mut command = Command::new(options.attache);
    command.args(["check", side, "--deadline", options.deadline, "--only", rules, "--faults"]);
    command.args(["--format", "json", "--out", &file.to_string_lossy()]);
    command.env("ATTACHE_HOME", home.join("home"));
    command
}

/// Runs the checker.
fn finish(checker: &mut Command, name: &str, file: &Path) -> Result<(), String> {
    let status = checker.status().map_err(|error| format!("{checker:?}: {error}"))?;
    // 0 and 1 are verdicts.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!("{name}: could not be judged, see {}", file.display())),
    }
}

/// A client that connects to a server.
struct Client {
    name: String,
    version: &'static str,
    listen: &'static str,
    command: Vec<String>,
    /// What makes it load a session.
    load: Option<String>,
}

/// The remote clients, each over both transports.
fn clients(options: &Options<'_>) -> Result<Vec<Client>, String> {
    let mut clients = Vec::new();
    for (kind, word) in [("ws", "WebSocket"), ("http", "HTTP")] {
        let name = format!("attache exec, {word}");
        if (options.wanted)(&name) {
            let words = ["--agent", "{url}", "--approve-all", "exec", "{prompt}"];
            let command = [&[options.attache], &words[..]].concat().into_iter().map(str::to_owned).collect();
            clients.push(Client {
                name,
                version: env!("CARGO_PKG_VERSION"),
                listen: kind,
                command,
                load: None,
            });
        }
        for (sdk, name, version) in [
            ("rust", "official Rust client", "5.0.0"),
            ("ts", "official TypeScript client", "2.4.0"),
            ("py", "official Python client", "0.12.1"),
        ] {
            let name = format!("{name}, {word}");
            if !(options.wanted)(&name) {
                continue;
            }
            let command = install::remote_client(sdk, options.cache)?;
            let quoted: Vec<String> = command.iter().map(|word| format!("'{word}'")).collect();
            let load = Some(format!("load={} {{url}} {{prompt}} {{session}}", quoted.join(" ")));
            let command = command.into_iter().chain(["{url}", "{prompt}"].map(str::to_owned)).collect();
            clients.push(Client { name, version, listen: kind, command, load });
        }
    }
    Ok(clients)
}

impl Client {
    fn judge(&self, options: &Options<'_>, rules: &str, file: &Path, home: &Path) -> Result<(), String> {
        let mut command = checker(options, "client", rules, file, home);
        command.args(["--listen", self.listen, "-j", "2"]);
        command.args(self.load.iter().flat_map(|load| ["--action", load]));
        command.arg("--").args(&self.command);
        finish(&mut command, &self.name, file)
    }
}

/// The rules about remote transports, as `--only` takes them.
fn rules() -> Result<String, String> {
    let text = repo::read(RULES)?;
    let ids = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ids = ids.filter_map(|rule| rule["id"].as_str().map(str::to_owned));
    let remote = ids.filter(|id| id.starts_with("HTTP-") || id.starts_with("WS-"));
    Ok(remote.collect::<Vec<_>>().join(","))
}

/// The directory of a server's sessions.
fn workspace(home: &Path) -> PathBuf {
    home.join("work")
}
