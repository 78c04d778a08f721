//! Where a report comes from, and how a failure is shown again.

use serde_json::Value;

use crate::judge::Finding;
use crate::run::{Outcome, Repeat, Report};
use crate::trace::EntryKind;
use crate::{Role, Trace, Version, sources};

/// The revision of the protocol's schema that the rules are taken from.
pub(crate) const SCHEMA: &str = "1.15.1";

/// What a reader must know to compare two reports.
pub(crate) struct Origin {
    /// The version of the checker.
    pub(crate) checker: &'static str,
    /// The revision of the schema.
    pub(crate) schema: &'static str,
    /// The revision of the specification's text.
    pub(crate) specification: &'static str,
    /// The options of the run as words of a shell, if they are known. Those that choose scenarios,
    /// rules and reports are left out.
    pub(crate) options: Option<String>,
    /// When the first scenario began, in UTC.
    pub(crate) date: Option<String>,
    /// Name and version of the judged peer, as it gives them.
    pub(crate) peer: Option<String>,
}

impl Origin {
    pub(crate) fn of(report: &Report) -> Origin {
        let traces = || report.scenes.iter().map(|scene| &scene.trace);
        Origin {
            checker: env!("CARGO_PKG_VERSION"),
            schema: SCHEMA,
            specification: sources::revision(),
            options: report.repeat.as_ref().map(options),
            date: traces().map(|trace| trace.head.started.clone()).find(|date| !date.is_empty()),
            peer: report.role.and_then(|role| traces().find_map(|trace| peer(trace, role, report.version))),
        }
    }

    /// In one line, without the options.
    pub(crate) fn line(&self) -> String {
        let specification = self.specification.get(..12).unwrap_or(self.specification);
        let mut line =
            format!("attache check {}, schema {}, specification {specification}", self.checker, self.schema);
        for part in [&self.peer, &self.date].into_iter().flatten() {
            line += ", ";
            line += part;
        }
        line
    }
}

/// The words between the command and that of the peer.
fn options(repeat: &Repeat) -> String {
    // `attache check agent` is the command; flags before it belong to the options.
    let is_name = |word: &&String| ["attache", "check", "agent", "server", "client"].contains(&word.as_str());
    let before = repeat.before.iter().filter(|word| !is_name(word));
    // The name of a known agent may come first.
    let after = repeat.after.iter().skip_while(|word| !word.starts_with('-'));
    let after = after.take_while(|word| *word != "--");
    let words: Vec<String> = before.chain(after).map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Name and version that a peer gives in `initialize`.
fn peer(trace: &Trace, role: Role, version: Version) -> Option<String> {
    let lines = trace.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Line { from, text, .. } if *from == role => serde_json::from_slice::<Value>(text).ok(),
        _ => None,
    });
    for line in lines {
        let info = match (role, version) {
            (Role::Agent, Version::V1) => &line["result"]["agentInfo"],
            (Role::Agent, Version::V2) => &line["result"]["info"],
            (Role::Client, Version::V1) => &line["params"]["clientInfo"],
            (Role::Client, Version::V2) => &line["params"]["info"],
        };
        let Some(name) = info["name"].as_str() else { continue };
        let version = info["version"].as_str().map(|version| format!(" {version}")).unwrap_or_default();
        let text: String = format!("{name}{version}").chars().filter(|c| !c.is_control()).take(120).collect();
        return Some(text);
    }
    None
}

/// The command line that shows a failure again, alone.
pub(crate) fn repeat(report: &Report, outcome: &Outcome, (place, _): &(usize, Finding)) -> Option<String> {
    let repeat = report.repeat.as_ref()?;
    let scenario = report.scenes.get(*place)?.name.clone();
    let choice = ["--scenario".to_owned(), scenario, "--only".to_owned(), outcome.rule.id.to_owned()];
    let words: Vec<String> =
        repeat.before.iter().chain(&choice).chain(&repeat.after).map(|word| quoted(word)).collect();
    Some(words.join(" "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
