//! The tables of docs/conformance.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::store::{self, Broken, Record};
use crate::repo;

const PAGE: &str = "docs/conformance.md";
const BEGIN: &str = "<!-- made by `cargo xtask conformance`, do not edit by hand -->";
const END: &str = "<!-- end -->";
const BEGIN_REMOTE: &str = "<!-- made by `cargo xtask conformance --remote`, do not edit by hand -->";
const END_REMOTE: &str = "<!-- end of remote -->";
/// How much of a line of the wire the page shows.
const SHOWN: usize = 280;

/// Writes the tables of programs into the page and returns the failures without a note.
pub(super) fn write(records: &[Record]) -> Result<Vec<String>, String> {
    let sections = [
        ("agent", 1, "Agents"),
        ("client", 1, "Clients"),
        ("agent", 2, "Agents in version 2 of the protocol"),
        ("client", 2, "Clients in version 2 of the protocol"),
    ];
    replace(BEGIN, END, &sections, records)
}

/// Writes the tables of servers and remote clients into the page and returns the failures without a
/// note.
pub(super) fn write_remote(records: &[Record]) -> Result<Vec<String>, String> {
    replace(BEGIN_REMOTE, END_REMOTE, &[("server", 1, "Servers"), ("remote", 1, "Remote clients")], records)
}

/// Writes the part of the page between two marks.
fn replace(
    begin: &str,
    end: &str,
    sections: &[(&str, u64, &str)],
    records: &[Record],
) -> Result<Vec<String>, String> {
    let notes = read_notes()?;
    let (mut out, mut missing) = (String::new(), Vec::new());
    for (side, protocol, title) in sections {
        let mut of = store::newest(records);
        of.retain(|record| record.side == *side && record.protocol == *protocol);
        let _ = write!(out, "\n### {title}\n\n");
        counts(&of, &mut out);
        of.iter().for_each(|one| failures(one, &notes, &mut missing, &mut out));
    }
    let page = repo::read(PAGE)?;
    let (before, rest) = page.split_once(begin).ok_or_else(|| format!("{PAGE}: no `{begin}`"))?;
    let (_, after) = rest.split_once(end).ok_or_else(|| format!("{PAGE}: no `{end}`"))?;
    std::fs::write(repo::root().join(PAGE), format!("{before}{begin}\n{out}\n{end}{after}"))
        .map_err(|error| format!("{PAGE}: {error}"))?;
    println!("{PAGE} is written");
    Ok(missing)
}

/// Notes on failures, by peer and rule; a peer of `*` stands for all, `NAME, version 2` for one in
/// that version of the protocol.
pub(super) struct Notes(BTreeMap<(String, String), String>);

impl Notes {
    /// The note on a failure.
    pub(super) fn of(&self, record: &Record, id: &str) -> Option<&str> {
        let of_version = format!("{}, version {}", record.peer, record.protocol);
        let names = [of_version.as_str(), &record.peer, "*"];
        let note = |name: &str| self.0.get(&(name.to_owned(), id.to_owned()));
        names.into_iter().find_map(note).map(String::as_str)
    }
}

/// Reads the notes: `{"peer", "rule", "note"}` per line.
pub(super) fn read_notes() -> Result<Notes, String> {
    let path = super::notes();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut notes = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry: Value = serde_json::from_str(line)
            .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))?;
        let part = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        notes.insert((part("peer"), part("rule")), part("note"));
    }
    Ok(Notes(notes))
}

fn counts(records: &[&Record], out: &mut String) {
    out.push_str("| peer | version | verdict | kept | duties broken | advice not followed | worth a look | not applicable | not exercised | run |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|---|\n");
    for one in records {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.peer,
            one.version,
            one.conclusion,
            one.count("pass"),
            one.broken_in(&["mandatory", "capability"]),
            one.broken_in(&["advisory"]),
            one.broken_in(&["strictness", "informational"]),
            one.count("not applicable"),
            one.count("not exercised"),
            one.date.as_deref().unwrap_or("earlier"),
        );
    }
}

fn failures(one: &Record, notes: &Notes, missing: &mut Vec<String>, out: &mut String) {
    if one.broken.is_empty() {
        return;
    }
    let version = if one.protocol == 1 { "" } else { ", version 2" };
    let _ = writeln!(out, "\n#### {} {}{version}\n", one.peer, one.version);
    for rule in &one.broken {
        let note = notes.of(one, &rule.id);
        if note.is_none() {
            missing.push(format!("{} {}", one.peer, rule.id));
        }
        let _ = writeln!(out, "- **{}** ({}): {}", rule.id, rule.level, rule.text);
        let _ = writeln!(out, "  {}", note.unwrap_or("*Not looked at yet.*"));
        if !rule.why.is_empty() {
            evidence(rule, out);
        }
    }
}

fn evidence(rule: &Broken, out: &mut String) {
    let more = if rule.failures > 1 { format!(" (and {} more)", rule.failures - 1) } else { String::new() };
    let _ = writeln!(out, "\n  `{}`: {}{more}\n", rule.scenario, rule.why);
    if rule.lines.is_empty() {
        return;
    }
    out.push_str("  ```text\n");
    for (from, line) in &rule.lines {
        let _ = writeln!(out, "  {from:<6} {line}");
    }
    out.push_str("  ```\n");
}

/// The beginning of a line, and if what the reason names comes later, that too.
pub(super) fn shown(line: &str, why: &str) -> String {
    let cut = |from: usize, count: usize| line.chars().skip(from).take(count).collect::<String>();
    let total = line.chars().count();
    if total <= SHOWN {
        return line.to_owned();
    }
    let named = why.split(['`', '"']).skip(1).step_by(2).filter(|name| name.len() > 2);
    let places = named.filter_map(|name| line.find(name)).map(|at| line[..at].chars().count());
    match places.max().filter(|at| at + 20 > SHOWN) {
        None => format!("{}…", cut(0, SHOWN)),
        Some(at) => {
            let from = at - 60;
            let end = if from + 160 < total { "…" } else { "" };
            format!("{}… …{}{end}", cut(0, SHOWN - 160), cut(from, 160))
        }
    }
}

/// Paths of the machine say nothing to readers: a scenario's directory becomes `/…/NAME`, a home
/// `~`.
pub(super) fn without_places(text: &str) -> String {
    const SCRATCH: &str = "attache-check-";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(SCRATCH) {
        let from = rest[..at].rfind(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c)));
        let name = rest[at + SCRATCH.len()..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        out.push_str(&rest[..from.map_or(0, |from| from + 1)]);
        out.push_str("/…/");
        rest = name.trim_start_matches('/');
    }
    out.push_str(rest);
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 { out.replace(&home, "~") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_machine_are_left_out() {
        let said =
            r#"{"cwd":"/tmp/attache-check-12c3/too-early","path":"/tmp/x/attache-check-00ff/read/a.txt"}"#;
        assert_eq!(without_places(said), r#"{"cwd":"/…/too-early","path":"/…/read/a.txt"}"#);
        assert_eq!(without_places("plain"), "plain");
    }

    #[test]
    fn what_is_named_is_shown() {
        let line = format!("{}subagents{}", "é".repeat(400), "b".repeat(400));
        assert!(shown(&line, "`subagents` is no member").contains("subagents"));
        assert_eq!(shown("short", "`subagents`"), "short");
        assert_eq!(shown(&line, "no name").chars().count(), SHOWN + 1);
    }
}
