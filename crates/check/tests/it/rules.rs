//! The list of rules is complete.

use std::collections::BTreeSet;

use attache_check::{Role, rules, scenarios};

#[test]
fn every_checked_line_is_a_rule_with_an_id_of_its_own() {
    let lines = include_str!("../../rules.jsonl").lines();
    let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), lines.len());
    let checked = lines.iter().filter(|line| line["checked"].as_bool().unwrap());
    assert!(checked.map(|line| &line["id"]).eq(rules::all().iter().map(|rule| rule.id)));
}

#[test]
fn scenarios_have_names_of_their_own_and_name_rules_that_exist() {
    for role in Role::ALL {
        let mut names = BTreeSet::new();
        for scenario in scenarios(role) {
            assert!(names.insert(scenario.name), "{} is there twice", scenario.name);
            assert_eq!(scenario.judges, role, "{}", scenario.name);
            for rule in scenario.rules {
                let known = rules::get(rule).unwrap_or_else(|| panic!("{}: no rule {rule}", scenario.name));
                assert!(known.binds(role), "{}: {rule} does not bind the {role}", scenario.name);
                let shared = scenario.versions.iter().any(|version| known.is_of(*version));
                assert!(shared, "{}: {rule} is of another version", scenario.name);
            }
        }
    }
}
