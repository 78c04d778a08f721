//! Tool calls.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{items, text};
use crate::Role;

/// TOOL-02, TOOL-10, TOOL-16, TOOL-20. Their shape is looked at with all others.
#[derive(Default)]
pub(super) struct Tools {
    /// Sessions whose history is or was being replayed: there every id comes a second time.
    replayed: BTreeSet<String>,
    /// The names of calls, by session and id.
    names: BTreeMap<(String, String), String>,
}

/// A call in one of these goes no further.
fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed")
}

impl Watcher for Tools {
    fn rules(&self) -> &'static [&'static str] {
        &["TOOL-02", "TOOL-10", "TOOL-16", "TOOL-20"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.asks("session/load") || message.asks("session/fork") {
            self.replayed.insert(text(&message.params()["sessionId"]).to_owned());
        } else if message.asks("session/request_permission") {
            terminals(message, log, &message.params()["toolCall"], out);
        } else if let Some((asked, _)) = log.result_of(message, "session/prompt") {
            finished(message, log, asked.session().unwrap_or_default(), out);
        }
        let Some((session, kind, update)) = message.update() else { return };
        match kind {
            "tool_call" => {
                self.announced(message, log, session, update, out);
                self.names.remove(&key(session, update));
                self.named(message, session, update, out);
                terminals(message, log, update, out);
            }
            "tool_call_update" => {
                terminals(message, log, update, out);
                self.named(message, session, update, out);
            }
            _ => {}
        }
    }
}

fn key(session: &str, update: &Value) -> (String, String) {
    (session.to_owned(), update["toolCallId"].as_str().unwrap_or_default().to_owned())
}

impl Tools {
    /// TOOL-20: a name stays.
    fn named(&mut self, message: &Message, session: &str, update: &Value, out: &mut Findings) {
        let Some(name) = update["name"].as_str() else { return };
        let known = self.names.entry(key(session, update)).or_insert_with(|| name.to_owned());
        out.check("TOOL-20", message, known == name, || format!("the tool {known:?} is now called {name:?}"));
    }

    /// TOOL-02: an id that stood for a finished call does not stand for another one. (Saying
    /// `tool_call` again for one that is not finished happens, and means an update.)
    fn announced(
        &self,
        message: &Message,
        log: &EventLog,
        session: &str,
        update: &Value,
        out: &mut Findings,
    ) {
        if self.replayed.contains(session) {
            return;
        }
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let known = log.sessions.get(session).and_then(|session| session.tools.get(id));
        match known {
            Some(known) if known.announced && is_final(&known.status) => {
                let why = format!("the id {id:?} stood for a call that is finished");
                out.fail_at("TOOL-02", Role::Agent, &[known.first, message.index], why);
            }
            _ => out.pass("TOOL-02", message),
        }
    }
}

fn terminals(message: &Message, log: &EventLog, call: &Value, out: &mut Findings) {
    for item in items(&call["content"]).filter(|item| item["type"] == "terminal") {
        terminal(message, log, &item["terminalId"], out);
    }
}

/// TOOL-16: the client made it, and it has not been released.
fn terminal(message: &Message, log: &EventLog, id: &Value, out: &mut Findings) {
    let known = log.terminals.get(id.as_str().unwrap_or_default());
    out.check("TOOL-16", message, known.is_some_and(|known| known.released.is_none()), || match known {
        Some(_) => format!("the terminal {id} was released already"),
        None => format!("no terminal {id} was made"),
    });
}

/// TOOL-10: what was announced in a turn has ended with it.
fn finished(message: &Message, log: &EventLog, session: &str, out: &mut Findings) {
    // With two turns at once it is unknown to which one a call belongs.
    let Some(session) = log.sessions.get(session).filter(|session| session.prompts.len() == 1) else {
        return;
    };
    for (id, tool) in session.tools.iter().filter(|(_, tool)| tool.announced && tool.turn == session.turns) {
        out.check("TOOL-10", message, is_final(&tool.status), || {
            format!("the tool call {id:?} is still `{}` at the end of its turn", tool.status)
        });
    }
}
