//! Notices, compactions, subagents.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::is_text;
use crate::Role;

// NOTE-02, NOTE-07, NOTE-08, NOTE-09, NOTE-10, SUBA-02, SUBA-05, SUBA-06
#[derive(Default)]
pub(super) struct Notes {
    /// By session and id: whether it is over.
    compactions: BTreeMap<(String, String), bool>,
    children: BTreeSet<String>,
}

impl Watcher for Notes {
    fn rules(&self) -> &'static [&'static str] {
        &["NOTE-02", "NOTE-07", "NOTE-08", "NOTE-09", "NOTE-10", "SUBA-02", "SUBA-05", "SUBA-06"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        let Some((session, kind, update)) = message.update() else { return };
        match kind {
            "notice" => {
                let whole = is_text(&update["severity"]) && is_text(&update["title"]);
                out.check("NOTE-02", message, whole, || {
                    "a notice needs `severity` and a `title` with text".to_owned()
                });
            }
            "compaction_update" => self.compaction(message, session, update, out),
            "compaction_summary_chunk" => {
                let over = self.compactions.get(&key(session, update));
                out.check("NOTE-07", message, over == Some(&false), || match over {
                    Some(_) => "a summary chunk after the end of its compaction".to_owned(),
                    None => "a summary chunk before the compaction was announced".to_owned(),
                });
            }
            "subagent_update" => {
                self.child(message, log, update, out);
                patch(message, update, out);
                let state = &update["state"];
                if state["stopReason"] == "error" {
                    out.check("SUBA-06", message, state["error"]["code"].is_i64(), || {
                        "a child ended with an error that is not reported".to_owned()
                    });
                }
            }
            _ => self.traffic(message, log, session, out),
        }
    }
}

fn key(session: &str, update: &Value) -> (String, String) {
    (session.to_owned(), update["compactionId"].as_str().unwrap_or_default().to_owned())
}

impl Notes {
    fn compaction(&mut self, message: &Message, session: &str, update: &Value, out: &mut Findings) {
        let (summary, error) = (&update["summary"], &update["error"]);
        let fits = (summary.is_null() || summary.is_array()) && (error.is_null() || error.is_string());
        out.check("NOTE-09", message, fits, || {
            "`summary` is a list or null, `error` a text or null".to_owned()
        });
        let status = update["status"].as_str().unwrap_or_default();
        let ends = matches!(status, "completed" | "failed" | "cancelled");
        let key = key(session, update);
        match self.compactions.get(&key) {
            None => out.pass("NOTE-10", message),
            Some(true) if ends => {
                out.fail("NOTE-08", message, format!("the compaction {:?} ends twice", key.1))
            }
            Some(true) => out.fail(
                "NOTE-10",
                message,
                format!("the id {:?} stood for a compaction that is over", key.1),
            ),
            Some(false) if ends => out.pass("NOTE-08", message),
            Some(false) => {}
        }
        self.compactions.insert(key, ends);
    }

    /// The announcement comes before everything that bears the child's id.
    // SUBA-02
    fn child(&mut self, message: &Message, log: &EventLog, update: &Value, out: &mut Findings) {
        let id = update["sessionId"].as_str().unwrap_or_default();
        if self.children.insert(id.to_owned()) {
            let early =
                log.sessions.get(id).is_some_and(|child| child.updates > 0 && child.opened_by.is_empty());
            out.check("SUBA-02", message, !early, || {
                format!("updates of {id:?} came before it was announced")
            });
        }
    }

    fn traffic(&self, message: &Message, log: &EventLog, session: &str, out: &mut Findings) {
        if self.children.contains(session)
            && log.sessions.get(session).is_some_and(|known| known.opened_by.is_empty())
        {
            out.pass("SUBA-02", message);
        }
    }
}

/// Each member is absent, null or of its type.
// SUBA-05
fn patch(message: &Message, update: &Value, out: &mut Findings) {
    let texts = ["title", "description", "cwd"].into_iter();
    let objects = ["capabilities", "state"].into_iter();
    let wrong = texts
        .filter(|key| !update[key].is_null() && !update[key].is_string())
        .chain(objects.filter(|key| !update[key].is_null() && !update[key].is_object()))
        .next();
    out.check("SUBA-05", message, wrong.is_none(), || {
        let key = wrong.unwrap_or_default();
        format!("`{key}` is {}, neither null nor a value of its type", update[key])
    });
}
