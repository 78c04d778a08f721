//! Plans.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_one_of, items};
use crate::Version;

// PLAN-03, PLAN-06, PLAN-09
#[derive(Default)]
pub(super) struct Plans {
    /// By session and plan.
    plans: BTreeMap<(String, String), Entries>,
}

#[derive(Default)]
struct Entries {
    now: BTreeSet<String>,
    /// Entries that were there, not finished, and then were not.
    dropped: BTreeSet<String>,
    unfinished: BTreeSet<String>,
    updates: usize,
}

impl Watcher for Plans {
    fn rules(&self) -> &'static [&'static str] {
        &["PLAN-03", "PLAN-06", "PLAN-09"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        match message.update() {
            Some((session, "plan", update)) => {
                self.entries(log.version(), message, (session, ""), &update["entries"], out);
            }
            Some((session, "plan_update", update)) => {
                let plan = &update["plan"];
                let id = plan["planId"].as_str();
                // V2-22: the types of version 2 are open.
                let open = log.version() == Version::V2 && plan["type"].is_string();
                let known = open || is_one_of(&plan["type"], &["items", "markdown", "file"]);
                out.check("PLAN-09", message, known && id.is_some(), || {
                    "`plan` needs a `type` of items, markdown or file and a `planId`".to_owned()
                });
                if plan["type"] == "items" {
                    let plan_id = id.unwrap_or_default();
                    self.entries(log.version(), message, (session, plan_id), &plan["entries"], out);
                }
            }
            _ => {}
        }
    }
}

impl Plans {
    fn entries(
        &mut self,
        version: Version,
        message: &Message,
        (session, plan): (&str, &str),
        entries: &Value,
        out: &mut Findings,
    ) {
        // V2-22: the lists of version 2 are open.
        let is_listed = |value: &Value, names: &[&str]| match version {
            Version::V1 => is_one_of(value, names),
            Version::V2 => value.is_string(),
        };
        let mut now = BTreeSet::new();
        let mut unfinished = BTreeSet::new();
        out.check("PLAN-06", message, entries.is_array(), || "`entries` is no list".to_owned());
        for entry in items(entries) {
            let whole = entry["content"].is_string()
                && is_listed(&entry["priority"], &["high", "medium", "low"])
                && is_listed(&entry["status"], &["pending", "in_progress", "completed"]);
            out.check("PLAN-06", message, whole, || format!("an entry is {entry}"));
            let content = entry["content"].as_str().unwrap_or_default().to_owned();
            if entry["status"] != "completed" && entry["status"] != "cancelled" {
                unfinished.insert(content.clone());
            }
            now.insert(content);
        }
        let known = self.plans.entry((session.to_owned(), plan.to_owned())).or_default();
        // PLAN-03, PLAN-05: entries may be dropped for good. One that is gone and then there again
        // was left out.
        let back = now.iter().find(|content| known.dropped.contains(*content)).cloned();
        known.dropped.extend(known.unfinished.difference(&now).cloned());
        known.updates += 1;
        let again = known.updates > 1;
        known.now = now;
        known.unfinished = unfinished;
        if let Some(content) = back {
            out.fail(
                "PLAN-03",
                message,
                format!("the entry {content:?} was left out of an update and is back"),
            );
        } else if again {
            out.pass("PLAN-03", message);
        }
    }
}
