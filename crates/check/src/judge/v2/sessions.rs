//! Opening, resuming and closing sessions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::is_conversation;
use crate::judge::{EventLog, Findings, Message, Watcher};
use crate::role::Role;

/// Judges how sessions are opened and closed.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Sessions that are being resumed.
    resuming: BTreeMap<String, Resume>,
    /// Sessions whose close was answered, each with the entry of the answer.
    closed: BTreeMap<String, usize>,
    /// Sessions whose last state is not idle.
    busy: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Resume {
    /// Whether the client asked for the history.
    replays: bool,
    /// Whether the session works meanwhile, so that messages may be new ones.
    busy: bool,
    history: bool,
    state: bool,
}

impl Watcher for Sessions {
    fn rules(&self) -> &'static [&'static str] {
        &["V2-26", "V2-27", "V2-28", "V2-44"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((session, kind, update)) = message.update() {
            return self.update(message, session, kind, update, out);
        }
        if let Some(("session/resume", params)) = message.call(Role::Client) {
            let id = params["sessionId"].as_str().unwrap_or_default();
            self.closed.remove(id);
            let resume = Resume {
                replays: params["replayFrom"].is_object(),
                busy: self.busy.contains(id),
                ..Resume::default()
            };
            self.resuming.insert(id.to_owned(), resume);
            return;
        }
        let Some((asked, outcome)) = log.response(message) else { return };
        let id = asked.session().unwrap_or_default().to_owned();
        match (asked.method.as_str(), outcome) {
            ("session/resume", outcome) => {
                let resume = self.resuming.remove(&id).unwrap_or_default();
                let Ok(result) = outcome else { return };
                opened(message, result, out);
                out.check("V2-27", message, resume.state, || {
                    "session/resume is answered, and no state was reported before".to_owned()
                });
                if !resume.replays && !resume.history {
                    out.pass("V2-26", message);
                }
            }
            ("session/new" | "session/fork", Ok(result)) => {
                // An agent may give the id of a closed session again.
                self.closed.remove(result["sessionId"].as_str().unwrap_or_default());
                opened(message, result, out);
            }
            ("session/close", Ok(_)) => {
                self.closed.insert(id, message.index);
            }
            _ => {}
        }
    }
}

impl Sessions {
    fn update(&mut self, message: &Message, session: &str, kind: &str, update: &Value, out: &mut Findings) {
        if let Some(answer) = self.closed.get(session) {
            let why = format!("`{kind}` comes after session/close was answered");
            out.fail_at("V2-28", message.from, &[*answer, message.index], why);
        }
        if kind == "state_update" {
            if update["state"] == "idle" {
                self.busy.remove(session);
            } else {
                self.busy.insert(session.to_owned());
            }
        }
        let Some(resume) = self.resuming.get_mut(session) else { return };
        resume.state |= kind == "state_update";
        if is_conversation(kind) {
            resume.history = true;
            if !resume.replays && !resume.busy {
                out.fail("V2-26", message, "history is sent, and the client did not ask for it");
            }
        }
    }
}

/// Absent lists are left out.
// V2-44
fn opened(message: &Message, result: &Value, out: &mut Findings) {
    let null = ["configOptions", "availableCommands"]
        .into_iter()
        .find(|name| result.get(name).is_some_and(Value::is_null));
    out.check("V2-44", message, null.is_none(), || {
        format!("`{}` is null in the answer", null.unwrap_or_default())
    });
}
