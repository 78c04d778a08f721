//! What the site says of rules: their texts, sources, scenarios and mutants, read from the files of
//! the repository.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::repo;

const RULES: &str = "crates/check/rules.jsonl";
const SOURCES: &str = "crates/check/sources.jsonl";
/// Has the addresses of the documents.
const DOCUMENTS: &str = "crates/check/src/sources.rs";
const SCENARIOS: &str = "crates/check/src/scenarios/";
const MUTANTS: &str = "tests/mutants/src/";

/// A rule with what is known about it.
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) level: String,
    pub(super) text: String,
    pub(super) sides: &'static str,
    pub(super) versions: Vec<u64>,
    /// The capability that makes it binding.
    pub(super) when: Option<String>,
    /// Why it does not count for the verdict.
    pub(super) strictness: Option<String>,
    pub(super) quotes: Vec<Quote>,
    /// Whether the specification asks for it.
    pub(super) asked: String,
    pub(super) cause: Option<String>,
    pub(super) scenarios: Vec<Scenario>,
    /// The variants of the correct peers that break it, such as `agent: CANCEL-05/late`.
    pub(super) mutants: Vec<String>,
}

pub(super) struct Quote {
    pub(super) text: String,
    pub(super) url: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scenario {
    /// Who is judged.
    pub(super) side: String,
    pub(super) name: String,
    pub(super) about: String,
}

impl Rule {
    /// The part of the id before the number.
    pub(super) fn section(&self) -> &str {
        self.id.rsplit_once('-').map_or(&self.id, |(section, _)| section)
    }
}

fn lines(path: &str) -> Result<Vec<Value>, String> {
    let text = repo::read(path)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{path}: {error}"))).collect()
}

/// Every rule, in the order of the list.
pub(super) fn rules() -> Result<Vec<Rule>, String> {
    let documents = documents(&repo::read(DOCUMENTS)?);
    let sources: BTreeMap<String, Value> =
        lines(SOURCES)?.into_iter().map(|line| (word(&line, "id"), line)).collect();
    let (mut scenarios, mut mutants) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for path in repo::files()? {
        if path.starts_with(SCENARIOS) && path.ends_with(".rs") {
            for (scenario, rules) in scenarios_in(&repo::read(&path)?) {
                for rule in rules {
                    scenarios.entry(rule).or_default().push(scenario.clone());
                }
            }
        }
        if let Some(name) = path.strip_prefix(MUTANTS).filter(|path| path.ends_with(".txt")) {
            let text = repo::read(&path)?;
            let peer = peer_of(name);
            for name in text.lines().filter_map(|line| line.split_whitespace().next()) {
                let rule = name.split('/').next().unwrap_or(name).to_owned();
                mutants.entry(rule).or_default().push(format!("{peer}: {name}"));
            }
        }
    }
    let mut rules = Vec::new();
    for line in lines(RULES)? {
        let id = word(&line, "id");
        let source = sources.get(&id).unwrap_or(&Value::Null);
        let some = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let quotes = source["quotes"].as_array().into_iter().flatten().map(|quote| {
            let base = documents.get(&word(quote, "doc")).cloned().unwrap_or_default();
            let path = word(quote, "path");
            Quote { text: word(quote, "text"), url: base + path.trim_start_matches('-') }
        });
        let versions = line["versions"]
            .as_array()
            .map_or_else(|| vec![1], |list| list.iter().filter_map(Value::as_u64).collect());
        rules.push(Rule {
            level: word(&line, "level"),
            text: word(&line, "text"),
            sides: match line["side"].as_str() {
                Some("A") => "agents",
                Some("C") => "clients",
                Some("B") => "agents and clients",
                Some("T") => "transports",
                _ => "proxies",
            },
            versions,
            when: some(&line, "when"),
            strictness: some(&line, "strictness"),
            quotes: quotes.collect(),
            asked: word(source, "asked"),
            cause: some(source, "cause"),
            scenarios: scenarios.remove(&id).unwrap_or_default(),
            mutants: mutants.remove(&id).unwrap_or_default(),
            id,
        });
    }
    Ok(rules)
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// The peer of a table of variants.
fn peer_of(path: &str) -> &'static str {
    match path {
        "agent/variants.txt" => "agent",
        "agent/variants_v2.txt" => "agent, version 2",
        "client/variants.txt" => "client",
        "client/variants_v2.txt" => "client, version 2",
        "server/variants.txt" => "server",
        _ => "remote client",
    }
}

/// The addresses of documents by name, from the table `DOCUMENTS`.
fn documents(code: &str) -> BTreeMap<String, String> {
    let table = code.split_once("const DOCUMENTS").and_then(|(_, rest)| rest.split_once("];"));
    let words: Vec<String> = table.map_or_else(Vec::new, |(table, _)| literals(table));
    words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// The string literals of some code.
fn literals(code: &str) -> Vec<String> {
    code.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The scenarios of a file with the rules that they exercise, from its tables `scenario_table!`.
fn scenarios_in(code: &str) -> Vec<(Scenario, Vec<String>)> {
    let mut found = Vec::new();
    for table in code.split("scenario_table! {").skip(1) {
        let table = table.split_once("\n}").map_or(table, |(table, _)| table);
        let Some((head, entries)) = table.split_once(':') else { continue };
        let side = head.split([',', ' ']).find(|word| !word.is_empty()).unwrap_or_default().to_lowercase();
        for entry in entries.split(";\n") {
            let Some((words, _)) = entry.split_once(']') else { continue };
            let Some((names, rules)) = words.split_once('[') else { continue };
            let [name, about] = &literals(names)[..] else { continue };
            let scenario = Scenario { side: side.clone(), name: name.clone(), about: about.clone() };
            found.push((scenario, literals(rules)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn tables_of_scenarios_are_understood() {
        let code = "scenario_table! { Agent, faults in V2:\n    \"one\": \"the first: of two\", [\"A-01\"] needs [X(Y)] => one(1);\n    \
                    \"two\": \"the second\",\n        [\"A-01\", \"B-02\"] => two;\n}\n";
        let found = scenarios_in(code);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0.side.as_str(), found[0].0.about.as_str()), ("agent", "the first: of two"));
        assert_eq!(found[1].1, ["A-01", "B-02"]);
    }

    #[test]
    fn rules_have_their_facts() {
        let rules = rules().unwrap();
        let rule = rules.iter().find(|rule| rule.id == "CANCEL-05").unwrap();
        assert!(rule.quotes[0].url.starts_with("https://") && rule.quotes[0].text.contains("MUST"));
        assert!(rule.scenarios.iter().any(|scenario| scenario.name == "cancel-at-once"));
        assert!(rule.mutants.iter().any(|mutant| mutant.starts_with("agent: CANCEL-05")));
        let quotes = rules.iter().flat_map(|rule| &rule.quotes);
        assert!(
            quotes.clone().count() > 300 && quotes.into_iter().all(|quote| quote.url.starts_with("https://"))
        );
        assert!(rules.iter().filter(|rule| !rule.scenarios.is_empty()).count() > 250);
    }
}
