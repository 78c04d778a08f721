//! Summarises findings: one status per rule.

use std::collections::HashMap;

use super::scenario_run::ScenarioRun;
use super::{Conclusion, Options, Outcome, Report, ScenarioResult, Status};
use crate::capability;
use crate::judge::{self, Finding, Verdict};
use crate::rules::{self, Rule};
use crate::trace::EntryKind;
use crate::{Role, Scenario, Stop, Trace, Version};

/// The most failures of one rule in a report.
const KEPT: usize = 20;

pub(super) fn summarize(command: Vec<String>, options: &Options, played: Vec<ScenarioRun>) -> Report {
    let wanted = rules::all()
        .iter()
        .filter(|rule| rule.binds(options.role) && rule.is_of(options.version) && is_wanted(rule, options));
    let mut all = crate::scenarios(options.role);
    all.retain(|scenario| {
        scenario.versions.contains(&options.version) && scenario.is_over(&options.transports)
    });
    let mut by_rule = by_rule(
        played
            .iter()
            .enumerate()
            .flat_map(|(scene, done)| done.findings.iter().map(move |finding| (scene, finding))),
    );
    drop_repeated(&mut by_rule);
    let rules: Vec<Outcome> = wanted
        .map(|rule| match by_rule.get(rule.id).and_then(|findings| found(findings)) {
            Some((status, findings)) => Outcome { rule, status, findings, known: false },
            None => Outcome {
                rule,
                status: unseen(rule, options, &played, &all),
                findings: Vec::new(),
                known: false,
            },
        })
        .collect();
    let left = super::choose(options).len().saturating_sub(played.len());
    let conclusion = could_not_run(&played, left, options.version).unwrap_or_else(|| conclude(&rules));
    let scenes = played.into_iter().map(|done| done.scene).collect();
    let (version, transports) = (options.version, options.transports.clone());
    Report {
        role: Some(options.role),
        version,
        transports,
        command,
        rules,
        scenes,
        conclusion,
        interrupted: None,
        repeat: options.repeat.clone(),
    }
}

pub(super) fn summarize_trace(trace: Trace, role: Option<Role>, options: &Options) -> Report {
    let (findings, version) = judge::judge_version(&trace, role);
    let mut by_rule = by_rule(findings.iter().map(|finding| (0, finding)));
    drop_repeated(&mut by_rule);
    let binds = |rule: &Rule| role.is_none_or(|role| rule.binds(role));
    let rules: Vec<Outcome> = rules::all()
        .iter()
        .filter(|rule| binds(rule) && rule.is_of(version) && is_wanted(rule, options))
        .map(|rule| {
            let (status, findings) = by_rule
                .get(rule.id)
                .and_then(|findings| found(findings))
                .unwrap_or_else(|| (Status::NotExercised(silent(rule)), Vec::new()));
            Outcome { rule, status, findings, known: false }
        })
        .collect();
    let is_line = |what: &EntryKind| matches!(what, EntryKind::Line { .. });
    let conclusion = if trace.entries.iter().any(|entry| is_line(&entry.kind)) {
        conclude(&rules)
    } else {
        Conclusion::CouldNotRun("the recording has no messages".to_owned())
    };
    let failures = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
    let took = trace.entries.last().map_or(std::time::Duration::ZERO, |entry| entry.at);
    let command = trace.head.command.clone();
    let scene = ScenarioResult {
        name: "recording".to_owned(),
        about: "a conversation that was recorded".to_owned(),
        stop: None,
        trace,
        failures,
        took,
    };
    let transports = options.transports.clone();
    Report {
        role,
        version,
        transports,
        command,
        rules,
        scenes: vec![scene],
        conclusion,
        interrupted: None,
        repeat: None,
    }
}

pub(super) fn is_wanted(rule: &Rule, options: &Options) -> bool {
    rule.is_over(&options.transports)
        && (options.only.is_empty() || options.only.iter().any(|only| only == rule.id))
        && (options.tiers.is_empty() || options.tiers.contains(&rule.tier()))
}

fn silent(rule: &Rule) -> String {
    rule.why_not.unwrap_or("nothing in the conversation shows it").to_owned()
}

/// Findings by the rule that they are about, each with the number of its scenario.
fn by_rule<'a>(
    findings: impl Iterator<Item = (usize, &'a Finding)>,
) -> HashMap<&'static str, Vec<(usize, &'a Finding)>> {
    let mut index: HashMap<&'static str, Vec<(usize, &Finding)>> = HashMap::new();
    for (scene, finding) in findings {
        index.entry(finding.rule).or_default().push((scene, finding));
    }
    index
}

/// Drops failures that say what another failure says: of the same line under a rule that this one
/// repeats, and of a rule whose cause is broken anywhere.
fn drop_repeated(by_rule: &mut HashMap<&'static str, Vec<(usize, &Finding)>>) {
    for rule in rules::all().iter().filter(|rule| !(rule.repeats.is_empty() && rule.follows.is_empty())) {
        let failures = |of: &[&'static str]| -> Vec<(usize, &Finding)> {
            let findings = of.iter().filter_map(|other| by_rule.get(other)).flatten();
            findings.filter(|(_, finding)| finding.verdict == Verdict::Fail).copied().collect()
        };
        let is_explained = !failures(rule.follows).is_empty();
        let others = failures(rule.repeats);
        let Some(findings) = by_rule.get_mut(rule.id) else { continue };
        findings.retain(|(scene, finding)| {
            let says_the_same = |(place, other): &(usize, &Finding)| {
                place == scene
                    && other.role == finding.role
                    && finding.at.iter().any(|at| other.at.contains(at))
            };
            finding.verdict == Verdict::Pass || !(is_explained || others.iter().any(says_the_same))
        });
    }
}

/// Fail wins over pass; `None` if there is neither.
fn found(findings: &[(usize, &Finding)]) -> Option<(Status, Vec<(usize, Finding)>)> {
    let mut pass = None;
    let mut failures: Vec<(usize, Finding)> = Vec::new();
    for (scene, finding) in findings.iter().copied() {
        // A scenario and a watcher may report the same failure.
        let known = |(place, other): &(usize, Finding)| *place == scene && other.at == finding.at;
        match finding.verdict {
            Verdict::Fail if failures.iter().any(known) => {}
            Verdict::Fail if failures.len() < KEPT => failures.push((scene, finding.clone())),
            Verdict::Fail => {}
            Verdict::Pass => pass = pass.or_else(|| Some((scene, finding.clone()))),
        }
    }
    match (failures.is_empty(), pass) {
        (false, _) => Some((Status::Fail, failures)),
        (true, Some(pass)) => Some((Status::Pass, vec![pass])),
        (true, None) => None,
    }
}

/// Returns the status of a rule without findings.
fn unseen(rule: &Rule, options: &Options, played: &[ScenarioRun], all: &[Scenario]) -> Status {
    let role = options.role;
    if let Some(why) = rule.why_not_of(role, options.version) {
        return Status::NotExercised(why.to_owned());
    }
    if let Some(why) = not_advertised(rule, options, played) {
        return Status::NotApplicable(why);
    }
    let skipped = played.iter().flat_map(|done| &done.skipped).find(|(skipped, _)| *skipped == rule.id);
    if let Some((_, why)) = skipped {
        return Status::NotApplicable(why.clone());
    }
    let names = |scenario: &Scenario| scenario.rules.contains(&rule.id);
    let theirs: Vec<&ScenarioRun> = played.iter().filter(|done| names(&done.scenario)).collect();
    for done in &theirs {
        if let Some(Stop::NotApplicable(why)) = &done.scene.stop {
            return Status::NotApplicable(why.clone());
        }
    }
    if let Some((done, stop)) =
        theirs.iter().find_map(|done| done.scene.stop.as_ref().map(|stop| (done, stop)))
    {
        return Status::NotExercised(format!("{}: {stop}", done.scene.name));
    }
    if let Some(done) = theirs.first() {
        return Status::NotExercised(format!("{}: the {role} did nothing that shows it", done.scene.name));
    }
    Status::NotExercised(if all.iter().any(|scenario| scenario.fault && names(scenario)) {
        "shown only with --faults".to_owned()
    } else if all.iter().any(names) {
        "its scenarios were not chosen".to_owned()
    } else {
        silent(rule)
    })
}

/// Returns the reason if the rule needs a capability that the peer lacks. Capabilities of the other
/// role are the checker's own.
fn not_advertised(rule: &Rule, options: &Options, played: &[ScenarioRun]) -> Option<String> {
    let (role, version) = (options.role, options.version);
    let (side, path) = rule.when?.split_once('.')?;
    if side != role.name() || rule.roles.len() == 2 {
        return None;
    }
    let capabilities = played.iter().find_map(|done| done.capabilities.as_ref())?;
    let has = capability::has(version, role, capabilities, path);
    (!has).then(|| format!("the {role} does not advertise `{}`", capability::name(version, role, path)))
}

fn conclude(rules: &[Outcome]) -> Conclusion {
    let broken = |outcome: &Outcome| outcome.failed() && outcome.rule.tier().binds();
    if rules.iter().any(broken) { Conclusion::Broken } else { Conclusion::NothingBroken }
}

/// Returns the conclusion if no scenario got anywhere. `left` is the number of scenarios that did
/// not run.
fn could_not_run(played: &[ScenarioRun], left: usize, version: Version) -> Option<Conclusion> {
    // An agent that answers with another version ends scenarios of negotiation regularly.
    let ended = |done: &ScenarioRun| version == Version::V1 && done.scene.stop.is_none();
    let began = |done: &ScenarioRun| done.heard && (done.capabilities.is_some() || ended(done));
    if played.iter().any(began) {
        return None;
    }
    let Some(first) = played.first() else {
        return Some(Conclusion::CouldNotRun("no scenario was chosen".to_owned()));
    };
    let mut why = first.scene.stop.as_ref().map(ToString::to_string).unwrap_or_default();
    let entries = &first.scene.trace.entries;
    if first.scene.stop == Some(Stop::PeerGone)
        && let Some(EntryKind::Exit { code: Some(code), .. }) = entries.last().map(|entry| &entry.kind)
    {
        why = format!("{why} and ended with status {code}");
    }
    if left > 0 {
        why = format!("{why}; it took part in no scenario, so {left} others were not played");
    }
    for entry in entries {
        if let EntryKind::Stderr(text) = &entry.kind {
            let text = String::from_utf8_lossy(text);
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let tail = &lines[lines.len().saturating_sub(5)..];
            why = format!("{why}; stderr:\n{}", tail.join("\n"));
        }
    }
    Some(Conclusion::CouldNotRun(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, at: usize) -> Finding {
        Finding { rule, role: Role::Agent, verdict: Verdict::Fail, why: String::new(), at: vec![at] }
    }

    #[test]
    fn a_failure_is_dropped_beside_the_one_that_it_repeats_and_nowhere_else() {
        let (case, same) = (finding("TOOL-18", 4), finding("ROOT-04", 4));
        let (elsewhere, later) = (finding("ROOT-04", 5), finding("ROOT-04", 4));
        let mut all = by_rule([(0, &case), (0, &same), (0, &elsewhere), (1, &later)].into_iter());
        drop_repeated(&mut all);
        assert_eq!(all["TOOL-18"], [(0, &case)]);
        assert_eq!(all["ROOT-04"], [(0, &elsewhere), (1, &later)]);
    }

    #[test]
    fn a_failure_that_follows_from_another_rule_is_dropped_wherever_it_is() {
        let (cause, effect) = (finding("FS-02", 4), finding("INIT-19", 9));
        let mut all = by_rule([(0, &cause), (1, &effect)].into_iter());
        drop_repeated(&mut all);
        assert_eq!(all["INIT-19"], []);
    }
}
