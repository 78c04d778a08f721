//! `cargo xtask rules`: where each rule of the protocol is implemented and tested.
//!
//! Rules are data (crates/check/rules.jsonl). Code that keeps a rule and tests that show it name
//! its id in a comment; example messages have a member for it. A rule that the library cannot keep
//! has a reason in docs/rules-notes.jsonl. docs/rules.md is generated from all of these; `--check`
//! fails if it is stale or a duty has neither code, test nor reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::repo;

const RULES: &str = "crates/check/rules.jsonl";
const NOTES: &str = "docs/rules-notes.jsonl";
const TABLE: &str = "docs/rules.md";
const EXAMPLES: &[&str] = &["crates/wire/tests/data/invalid.jsonl", "tests/testkit/tests/data/more.jsonl"];

/// The parts of the protocol, in the order of the list.
const SECTIONS: &[(&str, &str)] = &[
    ("RPC", "JSON-RPC envelope and errors"),
    ("STDIO", "stdio and custom transports"),
    ("HTTP", "streamable HTTP"),
    ("WS", "WebSocket"),
    ("INIT", "initialization and capabilities"),
    ("AUTH", "authentication"),
    ("SESS", "sessions: new, load, resume, close"),
    ("ROOT", "working directory and additional roots"),
    ("MCP", "MCP servers of a session"),
    ("LIST", "session/list and session info"),
    ("DEL", "session/delete"),
    ("FORK", "session/fork"),
    ("SSTAT", "session status, archive, title"),
    ("PROMPT", "prompt turn"),
    ("MSG", "message ids and usage"),
    ("CANCEL", "cancelling turns and requests"),
    ("CONT", "content blocks"),
    ("TOOL", "tool calls"),
    ("PERM", "permission requests"),
    ("FS", "client file system"),
    ("TERM", "client terminals"),
    ("PLAN", "plans"),
    ("CMD", "slash commands"),
    ("MODE", "session modes"),
    ("MODEL", "session models"),
    ("CONF", "session config options"),
    ("ELIC", "elicitation"),
    ("EXT", "extensibility"),
    ("NOTE", "notices and compaction"),
    ("PROV", "providers"),
    ("NES", "next edit suggestions"),
    ("MCPA", "MCP over ACP"),
    ("PROXY", "proxy chains"),
    ("SUBA", "subagents"),
    ("SYSP", "client system prompt"),
    ("V2", "protocol version 2"),
];

/// A rule.
pub(crate) struct Rule {
    /// The id.
    pub(crate) id: String,
    side: String,
    level: String,
    text: String,
}

impl Rule {
    fn is_duty(&self) -> bool {
        ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT"].contains(&self.level.as_str())
    }

    fn section(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// The places that name a rule.
#[derive(Default)]
struct Places {
    code: Vec<(String, usize)>,
    tests: Vec<(String, usize)>,
    examples: Vec<String>,
}

/// Returns all rules.
pub(crate) fn list() -> Result<Vec<Rule>, String> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let rule = |entry: &Value| Rule {
        id: text(entry, "id"),
        side: text(entry, "side"),
        level: text(entry, "level"),
        text: text(entry, "text"),
    };
    Ok(entries(RULES)?.iter().map(rule).collect())
}

/// Writes docs/rules.md, or with `--check` reports what is missing.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let rules = list()?;
    let notes = notes()?;
    let places = places()?;
    let table = table(&rules, &notes, &places);
    let known: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let mut problems: Vec<String> = notes
        .keys()
        .filter(|id| !known.contains(id.as_str()))
        .map(|id| format!("{NOTES}: {id} is not a rule"))
        .collect();
    for rule in rules.iter().filter(|rule| rule.is_duty() && !notes.contains_key(&rule.id)) {
        let met = places.get(&rule.id);
        let (code, shown) = met.map_or((false, false), |places| {
            (!places.code.is_empty(), !places.tests.is_empty() || !places.examples.is_empty())
        });
        match (code, shown) {
            (true, true) => {}
            (true, false) => {
                problems.push(format!("{} is implemented, but not tested: {}", rule.id, rule.text))
            }
            (false, true) => {
                problems.push(format!("{} is tested, but no code names it: {}", rule.id, rule.text))
            }
            (false, false) => {
                problems.push(format!("{} has neither code, test nor note: {}", rule.id, rule.text));
            }
        }
    }
    if args.iter().any(|arg| arg == "--check") {
        if without_lines(&repo::read(TABLE).unwrap_or_default()) != without_lines(&table) {
            problems.push(format!("{TABLE} is stale: run `cargo xtask rules`"));
        }
        problems.iter().for_each(|problem| println!("{problem}"));
        return if problems.is_empty() { Ok(()) } else { Err(format!("{} to fix", problems.len())) };
    }
    std::fs::write(repo::root().join(TABLE), table).map_err(|error| format!("{TABLE}: {error}"))?;
    println!("wrote {TABLE}; {} duties are open (`cargo xtask rules --check` lists them)", problems.len());
    Ok(())
}

/// Returns the rule ids in a line of text, with ranges (`X-01 to X-03`, `X-01..03`) expanded.
pub(crate) fn ids(line: &str) -> Vec<String> {
    let mut found: Vec<(&str, u32, usize)> = Vec::new();
    let bytes = line.as_bytes();
    let mut list = Vec::new();
    for (dash, _) in line.match_indices('-') {
        let start = line[..dash]
            .rfind(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit())
            .map_or(0, |place| place + line[place..].chars().next().map_or(1, char::len_utf8));
        let prefix = &line[start..dash];
        let digits = bytes[dash + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let known = SECTIONS.iter().any(|(section, _)| *section == prefix);
        let before = line[..start].chars().next_back();
        if !known || digits != 2 || before.is_some_and(|c| c == '-' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        let end = dash + 3;
        let number: u32 = line[dash + 1..end].parse().unwrap_or_default();
        // A range may name the prefix again or not.
        if let Some((last, from, ended)) = found.last()
            && *last == prefix
            && matches!(line[*ended..start].trim(), "to" | "..=" | ".." | "…" | "–")
        {
            list.extend((from + 1..number).map(|between| format!("{prefix}-{between:02}")));
        }
        list.push(format!("{prefix}-{number:02}"));
        let rest = line[end..].strip_prefix("..").map(|rest| rest.trim_start_matches(['=', '.']));
        if let Some(to) = rest.and_then(|rest| rest.get(..2)).and_then(|to| to.parse::<u32>().ok()) {
            list.extend((number + 1..=to).map(|between| format!("{prefix}-{between:02}")));
        }
        found.push((prefix, number, end));
    }
    list
}

/// Removes line numbers from the table: a moved line does not make it stale, a moved file does.
fn without_lines(table: &str) -> String {
    let mut text = String::with_capacity(table.len());
    let mut rest = table;
    while let Some(at) = rest.find([':', 'L']) {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        // Only where a number ends a link's text or its target.
        rest = if after[digits..].starts_with([']', ')']) { &after[digits..] } else { after };
    }
    text.push_str(rest);
    text
}

fn entries(path: &str) -> Result<Vec<Value>, String> {
    let text = repo::read(path)?;
    let lines = text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            serde_json::from_str(line).map_err(|error| format!("{path}:{}: {error}", place + 1))
        })
        .collect()
}

/// A note is `{"ids": ["X-01", "X-03..07"], "why": "…"}`.
fn notes() -> Result<BTreeMap<String, String>, String> {
    let mut notes = BTreeMap::new();
    for entry in entries(NOTES)? {
        let why = entry["why"].as_str().unwrap_or_default();
        for named in entry["ids"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            for id in ids(named) {
                if notes.insert(id.clone(), why.to_owned()).is_some() {
                    return Err(format!("{NOTES}: {id} has two notes"));
                }
            }
        }
    }
    Ok(notes)
}

fn places() -> Result<BTreeMap<String, Places>, String> {
    let mut places: BTreeMap<String, Places> = BTreeMap::new();
    for path in repo::files()?.into_iter().filter(|path| path.ends_with(".rs") && !path.starts_with("xtask/"))
    {
        // These crates name rules to judge them or to break them.
        if path.starts_with("crates/check/") || path.starts_with("tests/mutants/") {
            continue;
        }
        let Ok(text) = repo::read(&path) else { continue };
        let tests_only = repo::is_test_file(&path);
        if !(tests_only || (path.starts_with("crates/") && path.contains("/src/"))) {
            continue;
        }
        let mut in_tests = tests_only;
        for (place, line) in text.lines().enumerate() {
            in_tests |= line.trim_start().starts_with("#[cfg(test)]");
            for id in ids(line) {
                let places = places.entry(id).or_default();
                let list = if in_tests { &mut places.tests } else { &mut places.code };
                // One link per file is enough.
                if list.last().is_none_or(|(last, _)| *last != path) {
                    list.push((path.clone(), place + 1));
                }
            }
        }
    }
    // Every example of version 1 is run by a test.
    for file in EXAMPLES {
        for entry in entries(file)?.iter().filter(|entry| entry["v"] == 1 && entry["cls"] != "transport") {
            if let (Some(rule), Some(id)) = (entry["rule"].as_str(), entry["id"].as_str()) {
                places.entry(rule.to_owned()).or_default().examples.push(id.to_owned());
            }
        }
    }
    Ok(places)
}

fn table(rules: &[Rule], notes: &BTreeMap<String, String>, places: &BTreeMap<String, Places>) -> String {
    let mut out = String::from(
        "# Rules of the protocol\n\n\
         Generated by `cargo xtask rules`; do not edit. The rules are in [rules.jsonl](../crates/check/rules.jsonl),\n\
         the notes in [rules-notes.jsonl](rules-notes.jsonl). Each rule has an anchor: `rules.md#perm-05`.\n\n\
         Side: A agent, C client, B both, T transport, P proxy. *Kept in* lists the code that names the rule's id,\n\
         *shown by* the tests and example messages (`I-…` in crates/wire/tests/data/invalid.jsonl,\n\
         `X-…` in tests/testkit/tests/data/more.jsonl).\n",
    );
    for (section, title) in SECTIONS {
        let _ = write!(
            out,
            "\n## {section}: {title}\n\n| rule | side | level | text | kept in | shown by | note |\n"
        );
        out.push_str("|---|---|---|---|---|---|---|\n");
        for rule in rules.iter().filter(|rule| rule.section() == *section) {
            let none = Places::default();
            let met = places.get(&rule.id).unwrap_or(&none);
            let note = notes.get(&rule.id).map_or("", String::as_str);
            let mut shown = links(&met.tests);
            if !met.examples.is_empty() {
                let (first, rest) = met.examples.split_at(met.examples.len().min(3));
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                let gap = if shown.is_empty() { "" } else { ", " };
                let _ = write!(shown, "{gap}{}{more}", first.join(", "));
            }
            let text = rule.text.replace('|', "\\|");
            let _ = writeln!(
                out,
                "| <a id=\"{}\"></a>{} | {} | {} | {text} | {} | {shown} | {note} |",
                rule.id.to_lowercase(),
                rule.id,
                rule.side,
                rule.level,
                links(&met.code)
            );
        }
    }
    out
}

fn links(places: &[(String, usize)]) -> String {
    let link = |(path, line): &(String, usize)| {
        let short = path.strip_prefix("crates/").unwrap_or(path).replacen("/src/", "/", 1);
        format!("[{short}:{line}](../{path}#L{line})")
    };
    places.iter().map(link).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ids;

    #[test]
    fn ids_are_found_alone_in_lists_and_in_ranges() {
        assert_eq!(ids("// RPC-09: answered"), ["RPC-09"]);
        assert_eq!(ids("(RPC-21, RPC-22)"), ["RPC-21", "RPC-22"]);
        assert_eq!(ids("CONT-01 to CONT-03"), ["CONT-01", "CONT-02", "CONT-03"]);
        assert_eq!(ids("CANCEL-13..15"), ["CANCEL-13", "CANCEL-14", "CANCEL-15"]);
        assert_eq!(ids("fn shows_rpc_09 UTF-16 ISO-88 X-RPC-09 RPC-100 MCP-08"), ["MCP-08"]);
    }
}
