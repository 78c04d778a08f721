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
const SHOWN: usize = 220;

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
    for side in ["agent", "client"] {
        let of: Vec<&Judged> = judged.iter().filter(|one| one.peer.side() == side).collect();
        if !of.is_empty() {
            let _ = writeln!(out, "\n### {}s\n", side[..1].to_uppercase() + &side[1..]);
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

/// `{"peer", "rule", "note"}` per line; a peer of `*` stands for all.
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
    let _ = writeln!(out, "\n#### {} {}\n", one.peer.name, one.peer.version);
    for rule in failed {
        let id = rule["id"].as_str().unwrap_or_default();
        let name = |peer: &str| (peer.to_owned(), id.to_owned());
        let note = notes.get(&name(&one.peer.name)).or_else(|| notes.get(&name("*")));
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
    let text = |key: &str| failure[key].as_str().unwrap_or_default().replace('\n', " ");
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let _ = writeln!(out, "\n  `{}`: {}{more}\n\n  ```text", text("scenario"), text("why"));
    for line in failure["lines"].as_array().into_iter().flatten() {
        let wire = line["text"].as_str().unwrap_or_default();
        let total = wire.chars().count();
        let clean: String = wire.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect();
        let cut = if total > SHOWN { "…" } else { "" };
        let _ =
            writeln!(out, "  {:<6} {}{cut}", line["from"].as_str().unwrap_or_default(), without_home(&clean));
    }
    out.push_str("  ```\n");
}

/// Paths of the machine say nothing to readers.
fn without_home(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 { text.replace(&home, "~") } else { text.to_owned() }
}
