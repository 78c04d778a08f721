//! The report for people at a terminal: what failed and why first, then a table of the rest.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Origin, counts, headline, judged, reason, repeat, status_name};
use crate::judge::Finding;
use crate::rules::{Rule, Tier};
use crate::run::{Outcome, Report, Status};
use crate::trace::{Entry, EntryKind};
use crate::{Role, Scenario, Transport, Version, rules};

/// How much of a report is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// How wide a line may be.
    pub width: usize,
    /// Every rule, and not only those that failed.
    pub all: bool,
    /// Long evidence as a whole.
    pub whole: bool,
}

impl Default for Look {
    fn default() -> Look {
        Look { width: 100, all: false, whole: false }
    }
}

/// How a line stands out. The printing program chooses the style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Emphasis {
    /// Not at all.
    None,
    /// A heading.
    Strong,
    /// Of less interest than the rest.
    Weak,
    /// As it should be.
    Good,
    /// A binding rule is broken.
    Bad,
    /// A rule is broken that does not bind.
    Doubtful,
}

/// A line of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text, which may quote what a peer has sent.
    pub text: String,
    /// How it stands out.
    pub emphasis: Emphasis,
}

impl Line {
    fn new(emphasis: Emphasis, text: impl Into<String>) -> Line {
        Line { text: text.into(), emphasis }
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::new(Emphasis::None, text)
    }
}

/// Lines as plain text.
pub fn plain(lines: &[Line]) -> String {
    lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect()
}

/// A heading below an empty line.
fn heading(text: impl Into<String>, emphasis: Emphasis, out: &mut Vec<Line>) {
    out.push(Line::from(String::new()));
    out.push(Line::new(emphasis, text));
}

/// How many failures of one rule are shown.
const SHOWN: usize = 3;
/// Characters of a line that is the evidence of a failure on a terminal. Reports in files have the
/// whole of longer ones.
const LONGEST: usize = 4000;

/// The report as lines.
pub fn terminal(report: &Report, look: Look) -> Vec<Line> {
    let version = match report.version {
        Version::V1 => "",
        Version::V2 => " --protocol 2",
    };
    let title = format!("attache check {}{version} {}", judged(report), report.command.join(" "));
    let origin = Origin::of(report);
    let mut out =
        vec![Line::new(Emphasis::Strong, title.trim_end()), Line::new(Emphasis::Weak, origin.line())];
    if let Some(options) = origin.options.filter(|options| !options.is_empty()) {
        out.push(Line::new(Emphasis::Weak, format!("options: {options}")));
    }
    for tier in Tier::ALL {
        let failed: Vec<&Outcome> =
            report.rules.iter().filter(|outcome| outcome.failed() && outcome.rule.tier() == tier).collect();
        if !failed.is_empty() {
            heading(format!("broken, {}", tier.name()), Emphasis::Strong, &mut out);
            failed.iter().for_each(|outcome| broken(report, outcome, look, &mut out));
        }
    }
    if look.all {
        rest(report, look, &mut out);
    }
    table(report, look, &mut out);
    stopped(report, look, &mut out);
    let is_bad = report.broken().any(|outcome| !outcome.known);
    let emphasis = if is_bad { Emphasis::Bad } else { Emphasis::Good };
    heading(headline(report), emphasis, &mut out);
    out
}

fn broken(report: &Report, outcome: &Outcome, look: Look, out: &mut Vec<Line>) {
    let rule = outcome.rule;
    let emphasis = if rule.tier().binds() { Emphasis::Bad } else { Emphasis::Doubtful };
    let known = if outcome.known { " (known)" } else { "" };
    heading(format!("  {} {}{known}", rule.id, rule.marked_level()), emphasis, out);
    for line in wrapped(&format!("expected: {}", rule.text), look.width.saturating_sub(4)) {
        out.push(format!("    {line}").into());
    }
    let kinds = alike(outcome);
    for (place, finding, count) in kinds.iter().take(SHOWN) {
        for (number, line) in
            evidence(report, *place, finding, Look { width: look.width.saturating_sub(6), ..look })
                .iter()
                .enumerate()
        {
            let label = if number == 0 { "seen in " } else { "" };
            out.push(format!("    {label}{line}").into());
        }
        if *count > 1 {
            out.push(format!("      and {} more like it", count - 1).into());
        }
    }
    if kinds.len() > SHOWN {
        out.push(format!("    and {} more", kinds.len() - SHOWN).into());
    }
    for line in sourced(rule) {
        out.push(Line::new(Emphasis::Weak, format!("    {line}")));
    }
    if let Some(command) = outcome.failures().next().and_then(|failure| repeat(report, outcome, failure)) {
        out.push(Line::new(Emphasis::Weak, format!("    again: {command}")));
    }
}

/// Failures with the same reason in the same scenario count as one, with their number.
fn alike(outcome: &Outcome) -> Vec<(usize, &Finding, usize)> {
    let mut kinds: Vec<(usize, &Finding, usize)> = Vec::new();
    for (place, finding) in outcome.failures() {
        match kinds.iter_mut().find(|(scene, known, _)| scene == place && known.why == finding.why) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((*place, finding, 1)),
        }
    }
    kinds
}

/// The sentences that a rule comes from, each with its address, and the usual cause of a failure.
pub(super) fn sourced(rule: &Rule) -> Vec<String> {
    let sources = rule.sources();
    let mut lines: Vec<String> = sources
        .quotes
        .iter()
        .flat_map(|quote| [format!("source: \u{201c}{}\u{201d}", quote.text), format!("  {}", quote.url)])
        .collect();
    if lines.is_empty() {
        lines.push(format!("source: {}", rule.source));
    }
    lines.extend(sources.cause.iter().map(|cause| format!("likely cause: {cause}")));
    lines
}

/// The evidence of a failure: place and reason, then the lines of the wire, each with the one
/// before and the one after it.
pub(super) fn evidence(report: &Report, place: usize, finding: &Finding, look: Look) -> Vec<String> {
    let width = look.width;
    let longest = if look.whole { usize::MAX } else { LONGEST };
    let Some(scene) = report.scenes.get(place) else { return vec![finding.why.clone()] };
    let mut lines = wrapped(&format!("{}: {}", scene.name, finding.why), width);
    let entries = &scene.trace.entries;
    for index in surroundings(entries, finding) {
        let entry = &entries[index];
        let Some((from, text)) = text_of(entry) else { continue };
        let is_evidence = finding.at.contains(&index);
        let head = format!("{:>8.3} {from:<6} ", entry.at.as_secs_f64());
        // The lines around it are there to find the place.
        let room = if is_evidence { longest } else { width.saturating_sub(head.len() + 2).max(40) };
        let mark = if is_evidence { ">" } else { " " };
        lines.push(format!("{mark} {head}{}", cut(&text, room)));
    }
    lines
}

/// The entries that are evidence, each with the one before and the one after it, in their order.
pub(super) fn surroundings(entries: &[Entry], finding: &Finding) -> Vec<usize> {
    let shown: Vec<usize> = (0..entries.len()).filter(|index| text_of(&entries[*index]).is_some()).collect();
    let places = finding.at.iter().filter_map(|index| shown.binary_search(index).ok());
    let around: BTreeSet<usize> = places.flat_map(|at| at.saturating_sub(1)..=at + 1).collect();
    around.into_iter().filter_map(|place| shown.get(place).copied()).collect()
}

/// What was sent, and by whom; `None` for anything else.
pub(super) fn text_of(entry: &Entry) -> Option<(&'static str, Cow<'_, str>)> {
    match &entry.kind {
        EntryKind::Line { from, text, .. } => Some((from.name(), String::from_utf8_lossy(text))),
        // An exchange with a server.
        EntryKind::Note(text) => Some(("note", text.as_str().into())),
        _ => None,
    }
}

/// The beginning of a line of the wire; what would move the cursor is shown as a space.
fn cut(text: &str, most: usize) -> String {
    let clean: String =
        text.chars().take(most.saturating_add(1)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= most {
        return clean;
    }
    let total = text.len();
    let tail = format!("… ({total} bytes)");
    clean.chars().take(most.saturating_sub(tail.chars().count())).collect::<String>() + &tail
}

/// Every rule that did not fail, one line each.
fn rest(report: &Report, look: Look, out: &mut Vec<Line>) {
    for tier in Tier::ALL {
        let mut rules: Vec<&Outcome> =
            report.rules.iter().filter(|outcome| !outcome.failed() && outcome.rule.tier() == tier).collect();
        if rules.is_empty() {
            continue;
        }
        rules.sort_by_key(|outcome| matches!(outcome.status, Status::Pass));
        heading(tier.name(), Emphasis::Strong, out);
        for outcome in rules {
            let (emphasis, why) = match &outcome.status {
                Status::Pass => (Emphasis::Good, first_scene(report, outcome)),
                status => (Emphasis::Weak, reason(status).unwrap_or_default()),
            };
            let line = format!("{:<14} {:<10} {why}", status_name(&outcome.status), outcome.rule.id);
            let line = cut(&line, look.width.saturating_sub(2));
            out.push(Line::new(emphasis, format!("  {line}")));
        }
    }
}

fn first_scene<'a>(report: &'a Report, outcome: &Outcome) -> &'a str {
    let place = outcome.findings.first().map(|(place, _)| *place);
    place.and_then(|place| report.scenes.get(place)).map_or("", |scene| scene.name.as_str())
}

/// Tiers and families with their counts.
fn table(report: &Report, look: Look, out: &mut Vec<Line>) {
    let head = format!("{:<24}{:>6}{:>6}{:>16}{:>15}", "", "pass", "fail", "not applicable", "not exercised");
    heading(head, Emphasis::Weak, out);
    for tier in Tier::ALL {
        let rules: Vec<&Outcome> =
            report.rules.iter().filter(|outcome| outcome.rule.tier() == tier).collect();
        if rules.is_empty() {
            continue;
        }
        out.push(Line::new(Emphasis::Strong, row(tier.name(), counts(rules.iter().copied()))));
        let mut families: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
        for outcome in &rules {
            families.entry(outcome.rule.section()).or_default().push(outcome);
        }
        for (family, rules) in families {
            let counts = counts(rules.iter().copied());
            // Families of which nothing was seen say nothing in a table.
            if look.all || counts[0] + counts[1] > 0 {
                let emphasis = if counts[1] > 0 { Emphasis::Bad } else { Emphasis::None };
                out.push(Line::new(emphasis, row(&format!("  {family}"), counts)));
            }
        }
    }
}

fn row(name: &str, [pass, fail, not_applicable, not_exercised]: [usize; 4]) -> String {
    let dash = |count: usize| if count == 0 { "-".to_owned() } else { count.to_string() };
    format!(
        "{name:<24}{:>6}{:>6}{:>16}{:>15}",
        dash(pass),
        dash(fail),
        dash(not_applicable),
        dash(not_exercised)
    )
}

/// Scenarios that did not come to their end, by reason.
fn stopped(report: &Report, look: Look, out: &mut Vec<Line>) {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for scene in &report.scenes {
        if let Some(stop) = &scene.stop {
            reasons.entry(stop.to_string()).or_default().push(&scene.name);
        }
    }
    if reasons.is_empty() {
        return;
    }
    let count = reasons.values().map(Vec::len).sum::<usize>();
    heading(format!("{count} of {} scenarios ended early", report.scenes.len()), Emphasis::None, out);
    for (reason, scenes) in reasons {
        let line = format!("{reason}: {}", scenes.join(", "));
        for (number, line) in wrapped(&line, look.width.saturating_sub(4)).iter().enumerate() {
            let indent = if number == 0 { "  " } else { "    " };
            out.push(Line::new(Emphasis::Weak, format!("{indent}{line}")));
        }
    }
}

/// Everything that is known about a rule, for `--explain`.
pub fn explain(rule: &Rule, look: Look) -> Vec<Line> {
    let title = format!("{} ({}, {})", rule.id, rule.marked_level(), rule.tier().name());
    let mut out = vec![Line::new(Emphasis::Strong, title)];
    let mut put = |text: String| out.push(Line::from(text));
    for line in wrapped(rule.text, look.width.saturating_sub(2)) {
        put(format!("  {line}"));
    }
    put(String::new());
    put(format!("  binds:    {}", rule.side()));
    if rule.versions != [Version::V1] {
        let versions: Vec<String> = rule.versions.iter().map(Version::to_string).collect();
        put(format!("  versions: {}", versions.join(", ")));
    }
    if let Some(when) = rule.when {
        put(format!("  once:     `{when}` is advertised"));
    }
    put(format!("  source:   {}", rule.source));
    for quote in &rule.sources().quotes {
        for line in wrapped(&format!("\u{201c}{}\u{201d}", quote.text), look.width.saturating_sub(12)) {
            put(format!("            {line}"));
        }
        put(format!("            {}", quote.url));
    }
    for (number, line) in wrapped(&rule.sources().asked, look.width.saturating_sub(12)).iter().enumerate() {
        put(format!("  {:<10}{line}", if number == 0 { "disputed:" } else { "" }));
    }
    if rule.marked_level().ends_with('°') {
        put("  level:    the source says it as a plain fact or by its schema, without the word".to_owned());
    }
    if let Some(why) = rule.strictness {
        put(format!("  verdict:  not part of it: {why}"));
    }
    if let Some(why) = rule.why_not {
        put(format!("  not seen: {why}"));
    }
    if let Some(why) = rule.why_not_agent {
        put(format!("  not seen: {why} (clients show it)"));
    }
    if let Some(why) = rule.why_not_client {
        put(format!("  not seen: {why} (agents show it)"));
    }
    if let Some(why) = rule.why_not_v2 {
        put(format!("  not seen: {why} (version 1 shows it)"));
    }
    for role in [Role::Agent, Role::Client] {
        let shows = crate::scenarios(role).into_iter().filter(|scenario| scenario.rules.contains(&rule.id));
        for scenario in shows {
            let faults = if scenario.fault { " (with --faults)" } else { "" };
            put(format!("  scenario: {role} {}{faults}: {}", scenario.name, scenario.about));
        }
    }
    if crate::judge::watchers(None).iter().any(|watcher| watcher.rules().contains(&rule.id)) {
        put("  watched:  in every conversation".to_owned());
    }
    out
}

/// The scenarios of a side in this version over these transports, for `--list`.
pub fn list(role: Role, version: Version, transports: &[Transport], look: Look) -> Vec<Line> {
    let mut out = Vec::new();
    let all = crate::scenarios(role).into_iter();
    let is_listed =
        |scenario: &Scenario| scenario.versions.contains(&version) && scenario.is_over(transports);
    for scenario in all.filter(is_listed) {
        let faults = if scenario.fault { " (with --faults)" } else { "" };
        out.push(Line::new(Emphasis::Strong, format!("{}{faults}", scenario.name)));
        for line in wrapped(scenario.about, look.width.saturating_sub(4)) {
            out.push(format!("    {line}").into());
        }
        let known: Vec<&str> =
            scenario.rules.iter().copied().filter(|id| rules::is_of(id, version)).collect();
        for line in wrapped(&known.join(" "), look.width.saturating_sub(4)) {
            out.push(Line::new(Emphasis::Weak, format!("    {line}")));
        }
    }
    out
}

/// Breaks a text at spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width.max(20) {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
