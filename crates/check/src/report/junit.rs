//! The report as JUnit XML, which CI systems show.
//!
//! One suite per tier, one case per rule. A broken rule that does not count for the verdict, or
//! that is known, is a skipped case with its reason: a build must not fail for it.

use std::fmt::Write as _;

use super::html::escape;
use super::terminal::{Look, evidence, sourced};
use super::{Origin, counts, judged, reason, repeat};
use crate::rules::Tier;
use crate::run::{Conclusion, Outcome, Report};

/// The report as JUnit XML.
pub fn junit(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let seconds: f64 = report.scenes.iter().map(|scene| scene.took.as_secs_f64()).sum();
    let name = format!("attache check {} {}", judged(report), report.command.join(" "));
    let _ = writeln!(out, "<testsuites name=\"{}\" time=\"{seconds:.3}\">", escape(name.trim_end()));
    if let Conclusion::CouldNotRun(why) = &report.conclusion {
        let why = escape(why);
        let _ = writeln!(
            out,
            "  <testsuite name=\"run\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    \
             <testcase classname=\"run\" name=\"start\"><error message=\"{why}\"/></testcase>\n  </testsuite>"
        );
    }
    for tier in Tier::ALL {
        suite(report, tier, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(report: &Report, tier: Tier, out: &mut String) {
    let rules: Vec<&Outcome> = report.rules.iter().filter(|outcome| outcome.rule.tier() == tier).collect();
    if rules.is_empty() {
        return;
    }
    let [_, fail, not_applicable, not_exercised] = counts(rules.iter().copied());
    let failures = rules.iter().filter(|outcome| is_failure(outcome)).count();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{}\">",
        tier.name(),
        rules.len(),
        not_applicable + not_exercised + fail - failures,
    );
    let origin = Origin::of(report);
    let _ = writeln!(
        out,
        "    <properties><property name=\"origin\" value=\"{}\"/>{}</properties>",
        escape(&origin.line()),
        origin.options.map_or_else(String::new, |options| format!(
            "<property name=\"options\" value=\"{}\"/>",
            escape(&options)
        ))
    );
    for outcome in rules {
        case(report, outcome, out);
    }
    out.push_str("  </testsuite>\n");
}

/// Whether the case fails a build.
fn is_failure(outcome: &Outcome) -> bool {
    outcome.failed() && outcome.rule.tier().binds() && !outcome.known
}

fn case(report: &Report, outcome: &Outcome, out: &mut String) {
    let rule = outcome.rule;
    let _ = write!(
        out,
        "    <testcase classname=\"{}.{}\" name=\"{} {}\"",
        rule.tier().name(),
        rule.section(),
        rule.id,
        escape(rule.text),
    );
    if !outcome.failed() {
        match reason(&outcome.status) {
            None => out.push_str("/>\n"),
            Some(why) => {
                let _ = writeln!(out, "><skipped message=\"{}\"/></testcase>", escape(why));
            }
        }
        return;
    }
    let first = outcome.failures().next().map_or("", |(_, finding)| finding.why.as_str());
    if !is_failure(outcome) {
        let why = match rule.tier() {
            _ if outcome.known => "known",
            Tier::Advisory => "recommendation not followed",
            _ => "worth a look",
        };
        let _ = writeln!(out, "><skipped message=\"{why}: {}\"/></testcase>", escape(first));
        return;
    }
    let mut lines = String::new();
    for (place, finding) in outcome.failures() {
        for line in evidence(report, *place, finding, Look { width: 2000, all: false, whole: true }) {
            let _ = writeln!(lines, "{line}");
        }
    }
    for line in sourced(rule) {
        let _ = writeln!(lines, "{line}");
    }
    if let Some(command) = outcome.failures().next().and_then(|failure| repeat(report, outcome, failure)) {
        let _ = writeln!(lines, "again: {command}");
    }
    let _ = writeln!(
        out,
        ">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>",
        escape(first),
        rule.level.name(),
        escape(&lines)
    );
}
