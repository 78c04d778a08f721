//! The tables of docs/conformance.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, notes};
use crate::repo;

const PAGE: &str = "docs/conformance.md";
const BEGIN: &str = "<!-- made by `cargo xtask conformance`, do not edit by hand -->";
const END: &str = "<!-- end -->";
/// How much of a line of the wire the page shows.
const SHOWN: usize = 280;

/// What a report says, in a few words.
pub(super) fn verdict(report: &Value) -> String {
    let count = |key: &str| report["counts"][key].as_u64().unwrap_or_default();
    let conclusion = report["conclusion"].as_str().unwrap_or("no report");
    format!("{conclusion}, {} kept, {} broken", count("pass"), count("fail"))
}

/// Writes the page and gives back the failures without a note.
pub(super) fn write(judged: &[Judged], whole: bool) -> Result<Vec<String>, String> {
    let notes = read_notes()?;
    let mut missing = Vec::new();
    let mut out = String::new();
    for (side, protocol, title) in [
        ("agent", 1, "Agents"),
        ("client", 1, "Clients"),
        ("agent", 2, "Agents in version 2 of the protocol"),
        ("client", 2, "Clients in version 2 of the protocol"),
    ] {
        let of: Vec<&Judged> =
            judged.iter().filter(|one| one.peer.side() == side && one.peer.protocol == protocol).collect();
        if !of.is_empty() {
            let _ = writeln!(out, "\n### {title}\n");
            counts(&of, &mut out);
            of.iter().for_each(|one| failures(one, &notes, &mut missing, &mut out));
        }
    }
    if !whole {
        print!("{out}");
        return Ok(missing);
    }
    let page = repo::read(PAGE)?;
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("{PAGE}: no `{BEGIN}`"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{PAGE}: no `{END}`"))?;
    std::fs::write(repo::root().join(PAGE), format!("{before}{BEGIN}\n{out}\n{END}{after}"))
        .map_err(|error| format!("{PAGE}: {error}"))?;
    println!("{PAGE} is written");
    Ok(missing)
}

/// `{"peer", "rule", "note"}` per line; a peer of `*` stands for all, `NAME, version 2` for one in that version
/// of the protocol.
fn read_notes() -> Result<BTreeMap<(String, String), String>, String> {
    let path = notes();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut notes = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry: Value = serde_json::from_str(line)
            .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))?;
        let part = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        notes.insert((part("peer"), part("rule")), part("note"));
    }
    Ok(notes)
}

fn counts(judged: &[&Judged], out: &mut String) {
    out.push_str("| peer | version | verdict | kept | duties broken | advice not followed | worth a look | not applicable | not exercised |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for one in judged {
        let rules: Vec<&Value> = one.report["rules"].as_array().into_iter().flatten().collect();
        let count = |status: &str| rules.iter().filter(|rule| rule["status"] == status).count();
        let broken = |tiers: &[&str]| {
            let of =
                |rule: &&&Value| rule["status"] == "fail" && tiers.iter().any(|tier| rule["tier"] == *tier);
            rules.iter().filter(of).count()
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.peer.name,
            one.peer.version,
            one.report["conclusion"].as_str().unwrap_or_default(),
            count("pass"),
            broken(&["mandatory", "capability"]),
            broken(&["advisory"]),
            broken(&["informational"]),
            count("not applicable"),
            count("not exercised"),
        );
    }
}

fn failures(
    one: &Judged,
    notes: &BTreeMap<(String, String), String>,
    missing: &mut Vec<String>,
    out: &mut String,
) {
    let rules = one.report["rules"].as_array().into_iter().flatten();
    let failed: Vec<&Value> = rules.filter(|rule| rule["status"] == "fail").collect();
    if failed.is_empty() {
        return;
    }
    let version = if one.peer.protocol == 1 { "" } else { ", version 2" };
    let _ = writeln!(out, "\n#### {} {}{version}\n", one.peer.name, one.peer.version);
    for rule in failed {
        let id = rule["id"].as_str().unwrap_or_default();
        let name = |peer: &str| (peer.to_owned(), id.to_owned());
        let of_version = format!("{}, version {}", one.peer.name, one.peer.protocol);
        let names = [of_version.as_str(), &one.peer.name, "*"];
        let note = names.into_iter().find_map(|peer| notes.get(&name(peer)));
        if note.is_none() {
            missing.push(format!("{} {id}", one.peer.name));
        }
        let text = rule["text"].as_str().unwrap_or_default();
        let _ = writeln!(out, "- **{id}** ({}): {text}", rule["level"].as_str().unwrap_or_default());
        let _ = writeln!(out, "  {}", note.map_or("*Not looked at yet.*", String::as_str));
        let failures: Vec<&Value> = rule["failures"].as_array().into_iter().flatten().collect();
        if let Some(first) = failures.first() {
            evidence(first, failures.len(), out);
        }
    }
}

fn evidence(failure: &Value, count: usize, out: &mut String) {
    let text = |key: &str| without_places(&failure[key].as_str().unwrap_or_default().replace('\n', " "));
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let why = text("why");
    let _ = writeln!(out, "\n  `{}`: {why}{more}\n\n  ```text", text("scenario"));
    for line in failure["lines"].as_array().into_iter().flatten() {
        let wire = line["text"].as_str().unwrap_or_default();
        let clean: String = wire.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let shown = shown(&without_places(&clean), &why);
        let _ = writeln!(out, "  {:<6} {shown}", line["from"].as_str().unwrap_or_default());
    }
    out.push_str("  ```\n");
}

/// The beginning of a line, and if what the reason names comes later, that too.
fn shown(line: &str, why: &str) -> String {
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

/// Paths of the machine say nothing to readers: a scenario's directory becomes `/…/NAME`, a home `~`.
fn without_places(text: &str) -> String {
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
