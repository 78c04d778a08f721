//! How much of the protocol the checker covers, and how much of that has been shown to fail.
//!
//! That each variant is really found is what `agent_mutants` and `client_mutants` show; here they are counted.
//! `cargo xtask check-coverage` runs all three and prints the table.

use std::collections::BTreeSet;

use attache_check::rules::Rule;
use attache_check::{Level, Role, Scenario, Version, judge, rules, scenarios};
use attache_mutants::{Variant, agent, client};

const LEVELS: [(&str, &[Level]); 3] = [
    ("MUST, MUST NOT", &[Level::Must, Level::MustNot]),
    ("SHOULD, SHOULD NOT", &[Level::Should, Level::ShouldNot]),
    ("MAY, REC", &[Level::May, Level::Rec]),
];

/// The peers that can be judged.
const JUDGED: [(Role, Version); 4] = [
    (Role::Agent, Version::V1),
    (Role::Client, Version::V1),
    (Role::Agent, Version::V2),
    (Role::Client, Version::V2),
];

fn observable(role: Role, version: Version) -> Vec<&'static Rule> {
    let wanted = |rule: &&Rule| {
        rule.binds(role) && rule.is_of(version) && rule.observable && rule.why_not_of(role).is_none()
    };
    rules::all().iter().filter(wanted).collect()
}

/// Rules with a scenario or a watcher of this version.
fn shown(role: Role, version: Version) -> BTreeSet<&'static str> {
    let of_version = |scenario: &Scenario| scenario.versions.contains(&version);
    let of_scenarios = scenarios(role).into_iter().filter(of_version);
    let of_watchers = judge::watchers(Some(role)).into_iter();
    let of_watchers = of_watchers.filter(|watcher| watcher.versions().contains(&version));
    let rules = of_scenarios.flat_map(|scenario| scenario.rules.iter().copied());
    rules.chain(of_watchers.flat_map(|watcher| watcher.rules().iter().copied())).collect()
}

fn broken(role: Role, version: Version) -> BTreeSet<&'static str> {
    let variants = match (role, version) {
        (Role::Agent, Version::V1) => agent::variants(),
        (Role::Client, Version::V1) => client::variants(),
        (Role::Agent, Version::V2) => agent::variants_v2(),
        (Role::Client, Version::V2) => client::variants_v2(),
    };
    variants.iter().map(Variant::rule).collect()
}

#[test]
fn every_duty_can_be_seen_and_seen_to_fail() {
    let mut missing = Vec::new();
    println!(
        "{:<8}{:<9}{:<22}{:>12}{:>20}{:>20}",
        "side", "version", "level", "observable", "with a check", "with a mutant"
    );
    for (role, version) in JUDGED {
        let rules = observable(role, version);
        let (shown, broken) = (shown(role, version), broken(role, version));
        for (name, levels) in LEVELS {
            let of: Vec<&str> =
                rules.iter().filter(|rule| levels.contains(&rule.level)).map(|rule| rule.id).collect();
            let checked = of.iter().filter(|id| shown.contains(*id)).count();
            let killed = of.iter().filter(|id| broken.contains(*id)).count();
            println!(
                "{:<8}{:<9}{name:<22}{:>12}{checked:>20}{killed:>20}",
                role.name(),
                version.number(),
                of.len()
            );
            if !levels.contains(&Level::May) {
                let without = of.iter().filter(|id| !shown.contains(*id) || !broken.contains(*id));
                missing.extend(without.map(|id| format!("{role} {version} {id}")));
            }
        }
    }
    let exempt = rules::all().iter().filter(|rule| rule.level.is_must() && rule.why_not.is_some());
    println!("{} MUST and MUST NOT cannot be seen over stdio; rules.jsonl says why of each", exempt.count());
    assert!(missing.is_empty(), "duties without a check or without a mutant: {}", missing.join(", "));
}

#[test]
fn an_exemption_has_a_reason() {
    for rule in rules::all() {
        assert!(
            rule.why_not.is_none_or(|why| why.len() > 20),
            "{}: {:?} is no reason",
            rule.id,
            rule.why_not
        );
        assert!(
            rule.observable || rule.why_not.is_some(),
            "{} cannot be seen, and nothing says why",
            rule.id
        );
    }
}
