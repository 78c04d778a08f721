//! How much of the protocol the checker covers, and how much of that has been shown to fail.
//!
//! That each variant is really found is what `agent_mutants` and `client_mutants` show; here they
//! are counted. `cargo xtask check-coverage` runs all three and prints the table.

use std::collections::{BTreeMap, BTreeSet};

use attache_check::rules::Rule;
use attache_check::{Level, Role, Scenario, Transport, Version, judge, rules, scenarios};
use attache_mutants::{Variant, agent, client, server};

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

type Variants = fn() -> &'static [Variant];

/// The peers whose transports can be judged, each with its variants.
const REMOTE: [(&str, Role, Variants); 2] =
    [("server", Role::Agent, server::variants), ("remote", Role::Client, server::client_variants)];

/// Observable rules over stdio, or of the other transports.
fn observable(role: Role, version: Version, is_remote: bool) -> Vec<&'static Rule> {
    let wanted = |rule: &&Rule| {
        rule.binds(role)
            && rule.is_of(version)
            && rule.observable
            && rule.why_not_of(role, version).is_none()
            && rule.is_over(&[Transport::Stdio]) != is_remote
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
    let over_stdio = JUDGED.map(|(role, version)| {
        let (name, rules) = (role.name(), observable(role, version, false));
        (name, version, rules, shown(role, version), broken(role, version))
    });
    let remote = REMOTE.map(|(name, role, variants)| {
        let (version, broken) = (Version::V1, variants().iter().map(Variant::rule).collect());
        (name, version, observable(role, version, true), shown(role, version), broken)
    });
    for (side, version, rules, shown, broken) in over_stdio.into_iter().chain(remote) {
        for (name, levels) in LEVELS {
            let of: Vec<&str> =
                rules.iter().filter(|rule| levels.contains(&rule.level)).map(|rule| rule.id).collect();
            let checked = of.iter().filter(|id| shown.contains(*id)).count();
            let killed = of.iter().filter(|id| broken.contains(*id)).count();
            println!("{:<8}{:<9}{name:<22}{:>12}{checked:>20}{killed:>20}", side, version.number(), of.len());
            if !levels.contains(&Level::May) || side == "server" || side == "remote" {
                let without = of.iter().filter(|id| !shown.contains(*id) || !broken.contains(*id));
                missing.extend(without.map(|id| format!("{side} {version} {id}")));
            }
        }
    }
    let exempt = rules::all().iter().filter(|rule| rule.level.is_must() && rule.why_not.is_some());
    println!("{} MUST and MUST NOT cannot be seen; rules.jsonl says why of each", exempt.count());
    assert!(missing.is_empty(), "duties without a check or without a mutant: {}", missing.join(", "));
}

/// A reason why rules have one variant only.
#[derive(serde::Deserialize)]
struct OneWay {
    side: String,
    why: String,
    /// There are more ways, and a variant is missing.
    #[serde(default)]
    open: bool,
    rules: Vec<String>,
}

/// The names of the variants that break each MUST, over both versions.
fn ways(role: Role) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let tables = match role {
        Role::Agent => [agent::variants(), agent::variants_v2()],
        Role::Client => [client::variants(), client::variants_v2()],
    };
    let mut ways: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for variant in tables.into_iter().flatten() {
        if rules::get(variant.rule()).is_some_and(|rule| rule.level.is_must()) {
            ways.entry(variant.rule()).or_default().insert(variant.name);
        }
    }
    ways
}

#[test]
fn a_must_is_broken_in_two_ways_or_there_is_only_one() {
    let reasons: Vec<OneWay> = include_str!("../data/one_way.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of one_way.jsonl"))
        .collect();
    assert!(reasons.iter().all(|reason| reason.why.len() > 20));
    for role in [Role::Agent, Role::Client] {
        let listed = |open: bool| -> BTreeSet<&str> {
            let of = reasons.iter().filter(|reason| reason.side == role.name() && reason.open == open);
            of.flat_map(|reason| reason.rules.iter().map(String::as_str)).collect()
        };
        let (one, open) = (listed(false), listed(true));
        let ways = ways(role);
        let single: BTreeSet<&str> =
            ways.iter().filter(|(_, names)| names.len() == 1).map(|(rule, _)| *rule).collect();
        println!(
            "{:<8}{} MUST with two or more different mutants, {} that can be broken in one way, {} where a second is missing",
            role.name(),
            ways.len() - single.len(),
            one.len(),
            open.len()
        );
        let known: BTreeSet<&str> = one.union(&open).copied().collect();
        let unknown: Vec<_> = single.difference(&known).collect();
        assert!(unknown.is_empty(), "{role}: {unknown:?} have one variant and are not in one_way.jsonl");
        let stale: Vec<_> = known.difference(&single).collect();
        assert!(stale.is_empty(), "{role}: {stale:?} are in one_way.jsonl and have another variant or none");
    }
}

#[test]
fn a_rule_of_version_1_only_has_a_reason() {
    for rule in rules::all() {
        let only_v1 = rule.versions == [Version::V1];
        let has_reason = rule.why_v1.is_some_and(|why| why.len() > 20);
        assert_eq!(only_v1, has_reason, "{}: {:?} for {:?}", rule.id, rule.why_v1, rule.versions);
    }
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
