//! The list of rules is whole.

use std::collections::BTreeSet;

use attache_check::{Party, rules, scenarios};

#[test]
fn every_line_is_a_rule_with_an_id_of_its_own() {
    let lines = include_str!("../../rules.jsonl").lines().count();
    let ids: BTreeSet<&str> = rules::all().iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), lines);
}

#[test]
fn scenarios_have_names_of_their_own_and_name_rules_that_exist() {
    for party in [Party::Agent, Party::Client] {
        let mut names = BTreeSet::new();
        for scenario in scenarios(party) {
            assert!(names.insert(scenario.name), "{} is there twice", scenario.name);
            assert_eq!(scenario.judges, party, "{}", scenario.name);
            for rule in scenario.rules {
                let known = rules::get(rule).unwrap_or_else(|| panic!("{}: no rule {rule}", scenario.name));
                assert!(known.side.binds(party), "{}: {rule} does not bind the {party}", scenario.name);
            }
        }
    }
}
