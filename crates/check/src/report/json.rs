//! The report as JSON.

use serde_json::{Value, json};

use super::terminal::{surroundings, text_of};
use super::{Origin, counts, reason, repeat, status_name};
use crate::judge::Finding;
use crate::run::{Conclusion, Outcome, Report, ScenarioResult};

/// The report as one JSON object.
pub fn json(report: &Report) -> Value {
    let [pass, fail, not_applicable, not_exercised] = counts(&report.rules);
    let (conclusion, why) = match &report.conclusion {
        Conclusion::NothingBroken => ("nothing broken", None),
        Conclusion::Broken => ("broken", None),
        Conclusion::CouldNotRun(why) => ("could not run", Some(why)),
    };
    let (mandatory, origin) = (report.mandatory(), Origin::of(report));
    json!({
        "attache": "check",
        "version": 2,
        "checker": origin.checker,
        "schema": origin.schema,
        "specification": origin.specification,
        "options": origin.options,
        "peer": origin.peer,
        "date": origin.date,
        "protocol": report.version.number(),
        "party": report.role.map(|role| role.name()),
        "command": report.command,
        "conclusion": conclusion,
        "why": why,
        "mandatory": { "seen": mandatory.seen, "of": mandatory.total },
        "interrupted": report.interrupted.is_some(),
        "counts": {
            "pass": pass, "fail": fail, "not applicable": not_applicable, "not exercised": not_exercised,
        },
        "rules": report.rules.iter().map(|outcome| rule(outcome, report)).collect::<Vec<_>>(),
        "scenarios": report.scenes.iter().map(scene).collect::<Vec<_>>(),
    })
}

fn rule(outcome: &Outcome, report: &Report) -> Value {
    let scenes = &report.scenes;
    let rule = outcome.rule;
    let mut entry = json!({
        "id": rule.id,
        "side": rule.side(),
        "level": rule.level.name(),
        "keyword": rule.keyword,
        "tier": rule.tier().name(),
        "status": status_name(&outcome.status),
        "text": rule.text,
        "source": rule.source,
        "quotes": rule.sources().quotes.iter().map(|quote| json!({ "text": quote.text, "url": quote.url })).collect::<Vec<_>>(),
    });
    if let (true, Some(cause)) = (outcome.failed(), &rule.sources().cause) {
        entry["likely cause"] = cause.as_str().into();
    }
    if outcome.known {
        entry["known"] = true.into();
    }
    if let Some(why) = reason(&outcome.status) {
        entry["reason"] = why.into();
    }
    let failures: Vec<Value> = outcome.failures().map(|found| failure(report, outcome, found)).collect();
    if !failures.is_empty() {
        entry["failures"] = failures.into();
    }
    if let (false, Some((place, _))) = (outcome.failed(), outcome.findings.first()) {
        entry["shown by"] = scenes.get(*place).map(|scene| scene.name.as_str()).into();
    }
    entry
}

fn failure(report: &Report, outcome: &Outcome, found: &(usize, Finding)) -> Value {
    let (place, finding) = found;
    let scene = report.scenes.get(*place);
    let entries = scene.map(|scene| scene.trace.entries.as_slice()).unwrap_or_default();
    let line = |index: &usize| {
        let entry = entries.get(*index)?;
        let (from, text) = text_of(entry)?;
        Some(json!({ "entry": index, "t": entry.at.as_secs_f64(), "from": from, "text": text }))
    };
    let lines = finding.at.iter().filter_map(line);
    let around = surroundings(entries, finding);
    let around = around.iter().filter(|index| !finding.at.contains(index)).filter_map(line);
    json!({
        "scenario": scene.map(|scene| scene.name.as_str()),
        "party": finding.role.name(),
        "why": finding.why,
        "lines": lines.collect::<Vec<_>>(),
        "around": around.collect::<Vec<_>>(),
        "again": repeat(report, outcome, found),
    })
}

fn scene(scene: &ScenarioResult) -> Value {
    json!({
        "name": scene.name,
        "about": scene.about,
        "stopped": scene.stop.as_ref().map(ToString::to_string),
        "failures": scene.failures,
        "seconds": (scene.took.as_secs_f64() * 1000.0).round() / 1000.0,
    })
}
