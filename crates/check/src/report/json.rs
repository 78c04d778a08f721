//! The report as JSON.

use serde_json::{Value, json};

use super::{counts, reason, status_name};
use crate::judge::Finding;
use crate::run::{Conclusion, Outcome, Report, ScenarioResult};
use crate::trace::EntryKind;

/// The report as one JSON object.
pub fn json(report: &Report) -> Value {
    let [pass, fail, not_applicable, not_exercised] = counts(&report.rules);
    let (conclusion, why) = match &report.conclusion {
        Conclusion::Conformant => ("conformant", None),
        Conclusion::NotConformant => ("not conformant", None),
        Conclusion::CouldNotRun(why) => ("could not run", Some(why)),
    };
    json!({
        "attache": "check",
        "version": 1,
        "protocol": report.version.number(),
        "party": report.role.map(|role| role.name()),
        "command": report.command,
        "conclusion": conclusion,
        "why": why,
        "counts": {
            "pass": pass, "fail": fail, "not applicable": not_applicable, "not exercised": not_exercised,
        },
        "rules": report.rules.iter().map(|outcome| rule(outcome, &report.scenes)).collect::<Vec<_>>(),
        "scenarios": report.scenes.iter().map(scene).collect::<Vec<_>>(),
    })
}

fn rule(outcome: &Outcome, scenes: &[ScenarioResult]) -> Value {
    let rule = outcome.rule;
    let mut entry = json!({
        "id": rule.id,
        "side": rule.side(),
        "level": rule.level.name(),
        "keyword": rule.keyword,
        "tier": rule.tier().name(),
        "status": status_name(&outcome.status),
        "text": rule.text,
    });
    if let Some(why) = reason(&outcome.status) {
        entry["reason"] = why.into();
    }
    let failures: Vec<Value> =
        outcome.failures().map(|(place, finding)| failure(finding, scenes.get(*place))).collect();
    if !failures.is_empty() {
        entry["failures"] = failures.into();
    }
    if let (false, Some((place, _))) = (outcome.failed(), outcome.findings.first()) {
        entry["shown by"] = scenes.get(*place).map(|scene| scene.name.as_str()).into();
    }
    entry
}

fn failure(finding: &Finding, scene: Option<&ScenarioResult>) -> Value {
    let entries = scene.map(|scene| scene.trace.entries.as_slice()).unwrap_or_default();
    let lines = finding.at.iter().filter_map(|index| {
        let entry = entries.get(*index)?;
        let EntryKind::Line { from, text, .. } = &entry.kind else { return None };
        Some(json!({
            "entry": index,
            "t": entry.at.as_secs_f64(),
            "from": from.name(),
            "text": String::from_utf8_lossy(text),
        }))
    });
    json!({
        "scenario": scene.map(|scene| scene.name.as_str()),
        "party": finding.role.name(),
        "why": finding.why,
        "lines": lines.collect::<Vec<_>>(),
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
