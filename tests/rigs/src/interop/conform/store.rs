//! The results that are kept: tests/interop/results.jsonl, one line per peer, version and protocol.
//!
//! The page and the site are made from it, so neither needs a run. A new run replaces the line of
//! the same version; lines of earlier versions stay, as the history of the peer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::table::{shown, without_places};
use crate::repo;

const RESULTS: &str = "tests/interop/results.jsonl";

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) peer: String,
    /// The version of the peer.
    pub(super) version: String,
    /// `agent`, `client`, `server` or `remote`.
    pub(super) side: String,
    /// The version of the protocol.
    pub(super) protocol: u64,
    /// The day of the run; absent for runs of which only the failures were kept.
    pub(super) date: Option<String>,
    /// The version of the checker, absent as the date.
    pub(super) checker: Option<String>,
    pub(super) conclusion: String,
    /// Rules by status.
    pub(super) counts: BTreeMap<String, u64>,
    /// The rules that were not broken, with their status; empty if only the failures were kept.
    pub(super) status: BTreeMap<String, String>,
    pub(super) broken: Vec<Broken>,
}

/// A rule that a peer broke.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Broken {
    pub(super) id: String,
    pub(super) level: String,
    pub(super) tier: String,
    pub(super) text: String,
    /// How many failures were seen; the first one is kept.
    pub(super) failures: u64,
    pub(super) scenario: String,
    pub(super) why: String,
    /// Lines of the wire, each with its sender, shortened.
    pub(super) lines: Vec<(String, String)>,
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

impl Record {
    /// What is kept of a report.
    pub(super) fn of_report(peer: &super::Peer, report: &Value) -> Record {
        let (mut status, mut counts, mut broken) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for rule in list(report, "rules") {
            let (id, name) = (text(rule, "id"), text(rule, "status"));
            *counts.entry(name.clone()).or_insert(0) += 1;
            if name == "fail" {
                broken.push(Broken::of_report(rule));
            } else {
                status.insert(id, name);
            }
        }
        let day = report["date"].as_str().and_then(|date| date.get(..10)).map(str::to_owned);
        Record {
            peer: peer.name.clone(),
            version: peer.version.clone(),
            side: peer.side().to_owned(),
            protocol: u64::from(peer.protocol),
            date: day,
            checker: report["checker"].as_str().map(str::to_owned),
            conclusion: text(report, "conclusion"),
            counts,
            status,
            broken,
        }
    }

    fn read(line: &str) -> Result<Record, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let counts = value["counts"].as_object().into_iter().flatten();
        let status = value["status"].as_object().into_iter().flatten().flat_map(|(name, ids)| {
            let ids = ids.as_str().unwrap_or_default().split_whitespace();
            ids.map(|id| (id.to_owned(), name.clone())).collect::<Vec<_>>()
        });
        Ok(Record {
            peer: text(&value, "peer"),
            version: text(&value, "version"),
            side: text(&value, "side"),
            protocol: value["protocol"].as_u64().ok_or("no protocol")?,
            date: value["date"].as_str().map(str::to_owned),
            checker: value["checker"].as_str().map(str::to_owned),
            conclusion: text(&value, "conclusion"),
            counts: counts.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect(),
            status: status.collect(),
            broken: list(&value, "broken").map(Broken::read).collect(),
        })
    }

    fn write(&self) -> Value {
        let mut status: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (id, name) in &self.status {
            status.entry(name).or_default().push(id);
        }
        let status: BTreeMap<&str, String> =
            status.into_iter().map(|(name, ids)| (name, ids.join(" "))).collect();
        json!({
            "peer": self.peer, "version": self.version, "side": self.side, "protocol": self.protocol,
            "date": self.date, "checker": self.checker, "conclusion": self.conclusion,
            "counts": self.counts, "status": status,
            "broken": self.broken.iter().map(Broken::write).collect::<Vec<_>>(),
        })
    }

    /// Whether it is about the same peer, in whichever version.
    pub(super) fn is_of(&self, other: &Record) -> bool {
        self.peer == other.peer && self.side == other.side && self.protocol == other.protocol
    }

    /// How many rules have this status.
    pub(super) fn count(&self, status: &str) -> u64 {
        self.counts.get(status).copied().unwrap_or_default()
    }

    /// How many broken rules are of these tiers.
    pub(super) fn broken_in(&self, tiers: &[&str]) -> usize {
        self.broken.iter().filter(|rule| tiers.contains(&rule.tier.as_str())).count()
    }

    /// The status of a rule; `None` if the run did not keep it or did not judge it.
    pub(super) fn status_of(&self, id: &str) -> Option<&str> {
        match self.broken.iter().find(|rule| rule.id == id) {
            Some(rule) if ["mandatory", "capability"].contains(&rule.tier.as_str()) => Some("broken"),
            Some(_) => Some("advice"),
            None => self.status.get(id).map(String::as_str),
        }
    }
}

impl Broken {
    fn of_report(rule: &Value) -> Broken {
        let failures: Vec<&Value> = list(rule, "failures").collect();
        let first = failures.first().copied().unwrap_or(&Value::Null);
        let why = without_places(&text(first, "why").replace('\n', " "));
        let line = |line: &Value| {
            let clean: String =
                text(line, "text").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            (text(line, "from"), shown(&without_places(&clean), &why))
        };
        Broken {
            id: text(rule, "id"),
            level: text(rule, "level"),
            tier: text(rule, "tier"),
            text: text(rule, "text"),
            failures: failures.len() as u64,
            scenario: text(first, "scenario"),
            lines: list(first, "lines").map(line).collect(),
            why,
        }
    }

    fn read(value: &Value) -> Broken {
        Broken {
            id: text(value, "id"),
            level: text(value, "level"),
            tier: text(value, "tier"),
            text: text(value, "text"),
            failures: value["failures"].as_u64().unwrap_or(1),
            scenario: text(value, "scenario"),
            why: text(value, "why"),
            lines: list(value, "lines").map(|line| (text(line, "from"), text(line, "text"))).collect(),
        }
    }

    fn write(&self) -> Value {
        let lines = self.lines.iter().map(|(from, text)| json!({"from": from, "text": text}));
        json!({
            "id": self.id, "level": self.level, "tier": self.tier, "text": self.text, "failures": self.failures,
            "scenario": self.scenario, "why": self.why, "lines": lines.collect::<Vec<_>>(),
        })
    }
}

/// All results, those of one peer from the oldest to the newest.
pub(super) fn read() -> Result<Vec<Record>, String> {
    let text = repo::read(RESULTS)?;
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| {
            Record::read(line).map_err(|error| format!("{RESULTS}:{}: {error}", number + 1))
        })
        .collect()
}

/// The newest result of each peer.
pub(super) fn newest(records: &[Record]) -> Vec<&Record> {
    let is_newest = |at: usize| !records[at + 1..].iter().any(|later| later.is_of(&records[at]));
    (0..records.len()).filter(|at| is_newest(*at)).map(|at| &records[at]).collect()
}

/// Adds results to the kept ones and writes them.
pub(super) fn keep(new: Vec<Record>) -> Result<Vec<Record>, String> {
    let mut records = read()?;
    for record in new {
        merge(&mut records, record);
    }
    let lines: String = records.iter().map(|record| format!("{}\n", record.write())).collect();
    std::fs::write(repo::root().join(RESULTS), lines).map_err(|error| format!("{RESULTS}: {error}"))?;
    println!("{RESULTS} is written");
    Ok(records)
}

/// Puts a result in the place of that of the same version, after those of earlier versions, or
/// after those of its side.
fn merge(records: &mut Vec<Record>, record: Record) {
    if let Some(same) = records.iter_mut().find(|one| one.is_of(&record) && one.version == record.version) {
        *same = record;
        return;
    }
    let of_peer = records.iter().rposition(|one| one.is_of(&record));
    let of_side =
        || records.iter().rposition(|one| one.side == record.side && one.protocol == record.protocol);
    let at = of_peer.or_else(of_side).map_or(records.len(), |at| at + 1);
    records.insert(at, record);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let records = read().unwrap();
        assert!(records.len() > 40);
        for record in &records {
            assert_eq!(Record::read(&record.write().to_string()).unwrap(), *record);
            let total: u64 = record.counts.values().sum();
            assert_eq!(record.count("fail"), record.broken.len() as u64, "{}", record.peer);
            if !record.status.is_empty() {
                assert_eq!(total, (record.status.len() + record.broken.len()) as u64, "{}", record.peer);
            }
        }
    }

    #[test]
    fn a_new_version_follows_the_old_one_and_the_same_replaces_it() {
        let mut records = read().unwrap();
        let before = records.len();
        let first = records.iter().find(|record| record.peer == "gemini").unwrap().clone();
        merge(&mut records, Record { conclusion: "again".to_owned(), ..first.clone() });
        assert_eq!(records.len(), before);
        merge(&mut records, Record { version: "99.0.0".to_owned(), ..first.clone() });
        let of: Vec<&Record> = records.iter().filter(|record| record.is_of(&first)).collect();
        assert_eq!((of[0].conclusion.as_str(), of[1].version.as_str()), ("again", "99.0.0"));
        assert!(newest(&records).iter().any(|record| record.version == "99.0.0"));
        assert!(newest(&records).iter().all(|record| record.conclusion != "again"));
    }
}
