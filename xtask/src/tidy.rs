//! `cargo xtask tidy`: the rules of docs/STYLE.md that a program can check.
//!
//! A line that breaks one on purpose says so: `tidy: allow(sleep) because …`.

mod comments;
mod cycles;
mod packages;
mod paths;
mod rustdoc;
mod streams;

use std::collections::BTreeSet;
use std::path::Path;

use crate::repo;
use crate::rules::ids;

/// Past this a file should be thought about, past the second it is two files.
const LONG: usize = 500;
const TOO_LONG: usize = 800;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

/// Checks everything that git knows of or would add.
pub(crate) fn run(_args: &[String]) -> Result<(), String> {
    let known: BTreeSet<String> = crate::rules::list()?.into_iter().map(|rule| rule.id).collect();
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let mut exceptions = Vec::new();
    let files = repo::files()?;
    problems.extend(cycles::check(&files));
    problems.extend(packages::check(&files));
    let known_paths: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    for path in &files {
        let Ok(bytes) = std::fs::read(repo::root().join(path)) else { continue };
        named(path, &mut problems);
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if is_data(path) {
            continue;
        }
        hygiene(path, &text, &mut problems);
        problems.extend(paths::check(path, &text, &known_paths));
        unknown_ids(path, &text, &known, &mut problems);
        if path.ends_with(".rs") {
            size(path, &text, &mut problems, &mut warnings);
            banned_code(path, &text, &mut problems);
            problems.extend(comments::check(path, &text));
            problems.extend(rustdoc::check(path, &text));
            own_streams(path, &text, &mut problems, &mut exceptions);
        }
    }
    problems.extend(streams::unused(&exceptions));
    for warning in &warnings {
        println!("note: {warning}");
    }
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} problems")),
    }
}

/// Data is not written by hand, so the rules for text do not hold for it.
fn is_data(path: &str) -> bool {
    let data = ["lock", "json", "jsonl", "snap", "svg", "png", "bin"];
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    data.contains(&extension) || path.contains("/corpus/") || path.contains("/fixtures/")
}

fn named(path: &str, problems: &mut Vec<String>) {
    for part in path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            problems.push(format!("{path}: `{stem}` says nothing; name it after what it does"));
        }
    }
}

fn hygiene(path: &str, text: &str, problems: &mut Vec<String>) {
    if text.contains('\r') {
        problems.push(format!("{path}: carriage returns"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(format!("{path}: no line feed at the end"));
    }
    if text.ends_with("\n\n") {
        problems.push(format!("{path}: blank lines at the end"));
    }
    for (place, line) in text.lines().enumerate() {
        // Two blanks at the end of a Markdown line are a line break, which is better written
        // otherwise.
        if line.ends_with([' ', '\t']) {
            problems.push(format!("{path}:{}: blanks at the end of the line", place + 1));
        }
        // What a program prints may have tabs, and the guide shows it as it is.
        let shown = path.starts_with("docs/guide/") && path.ends_with(".md");
        if line.contains('\t') && !path.ends_with("Makefile") && !shown {
            problems.push(format!("{path}:{}: a tab; indent with blanks", place + 1));
        }
    }
}

fn unknown_ids(path: &str, text: &str, known: &BTreeSet<String>, problems: &mut Vec<String>) {
    for (place, line) in text.lines().enumerate() {
        for id in ids(line) {
            if !known.contains(&id) {
                problems.push(format!("{path}:{}: {id} is not in crates/check/rules.jsonl", place + 1));
            }
        }
    }
}

fn size(path: &str, text: &str, problems: &mut Vec<String>, warnings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > TOO_LONG {
        problems.push(format!("{path}: {lines} lines; past {TOO_LONG} a file is two files"));
    } else if lines > LONG {
        warnings.push(format!("{path}: {lines} lines"));
    }
}

fn banned_code(path: &str, text: &str, problems: &mut Vec<String>) {
    // In two parts, so that this file does not find itself.
    let banned = [
        (concat!("to", "do!("), "write it, or leave it out"),
        (concat!("unimple", "mented!("), "write it, or leave it out"),
        (concat!("db", "g!("), "left over from a search"),
        (concat!("unbounded", "_channel"), "every queue has a bound"),
        (concat!("mpsc::", "unbounded"), "every queue has a bound"),
    ];
    // On a paused clock a sleep takes no time; it is then the hung handler or the deadline that is
    // being tested.
    let paused = text.contains("start_paused") || text.contains("time::pause");
    let real = [concat!("thread::", "sleep")];
    let virtual_if_paused = [concat!("time::", "sleep"), concat!(" sleep", "(")];
    let mut in_tests = repo::is_test_file(path);
    for (place, line) in text.lines().enumerate() {
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        let code = line.split("//").next().unwrap_or_default();
        if line.contains("tidy: allow(") {
            continue;
        }
        for (word, why) in banned {
            if code.contains(word) {
                problems.push(format!("{path}:{}: `{}`: {why}", place + 1, word.trim_end_matches('(')));
            }
        }
        let sleeps = real.iter().any(|sleep| code.contains(sleep))
            || (!paused && virtual_if_paused.iter().any(|sleep| code.contains(sleep)));
        if in_tests && sleeps {
            problems.push(format!("{path}:{}: a test that sleeps; wait for the event itself", place + 1));
        }
    }
}

/// Checks the streams of code that is not a test.
fn own_streams(path: &str, text: &str, problems: &mut Vec<String>, exceptions: &mut Vec<&'static str>) {
    if repo::is_test_file(path) {
        return;
    }
    // The module of tests is the last thing in a file.
    let end = text.find("\nmod tests").unwrap_or(text.len());
    for (place, line) in text.get(..end).unwrap_or(text).lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        streams::check(path, place + 1, code, problems, exceptions);
    }
}
