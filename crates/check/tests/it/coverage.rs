//! How much of the protocol the checker covers, and how much of that has been shown to fail.
//!
//! That each variant is really found is what `agent_mutants` and `client_mutants` show; here they are counted.
//! `cargo xtask check-coverage` runs all three and prints the table.

use std::collections::BTreeSet;

use attache_check::rules::Rule;
use attache_check::{Level, Role, judge, rules, scenarios};
use attache_mutants::{Variant, agent, client};

const LEVELS: [(&str, &[Level]); 3] = [
    ("MUST, MUST NOT", &[Level::Must, Level::MustNot]),
    ("SHOULD, SHOULD NOT", &[Level::Should, Level::ShouldNot]),
    ("MAY, REC", &[Level::May, Level::Rec]),
];

fn observable(role: Role) -> Vec<&'static Rule> {
    rules::all()
        .iter()
        .filter(|rule| rule.binds(role) && rule.observable && rule.why_not_of(role).is_none())
        .collect()
}

/// Rules with a scenario or a watcher.
fn shown(role: Role) -> BTreeSet<&'static str> {
    let of_scenarios = scenarios(role).into_iter().flat_map(|scenario| scenario.rules.iter().copied());
    let of_watchers = judge::watchers(Some(role));
    of_scenarios.chain(of_watchers.iter().flat_map(|watcher| watcher.rules().iter().copied())).collect()
}

fn broken(role: Role) -> BTreeSet<&'static str> {
    let variants = match role {
        Role::Agent => agent::variants(),
        Role::Client => client::variants(),
    };
    variants.iter().map(Variant::rule).collect()
}

#[test]
fn every_duty_can_be_seen_and_seen_to_fail() {
    let mut missing = Vec::new();
    println!("{:<8}{:<22}{:>12}{:>20}{:>20}", "side", "level", "observable", "with a check", "with a mutant");
    for role in [Role::Agent, Role::Client] {
        let (rules, shown, broken) = (observable(role), shown(role), broken(role));
        for (name, levels) in LEVELS {
            let of: Vec<&str> =
                rules.iter().filter(|rule| levels.contains(&rule.level)).map(|rule| rule.id).collect();
            let checked = of.iter().filter(|id| shown.contains(*id)).count();
            let killed = of.iter().filter(|id| broken.contains(*id)).count();
            println!("{:<8}{name:<22}{:>12}{checked:>20}{killed:>20}", role.name(), of.len());
            if !levels.contains(&Level::May) {
                let without = of.iter().filter(|id| !shown.contains(*id) || !broken.contains(*id));
                missing.extend(without.map(|id| format!("{role} {id}")));
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
