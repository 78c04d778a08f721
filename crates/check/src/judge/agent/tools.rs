//! Tool calls.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{items, text};
use crate::{Role, Version};

/// Judges ids, order and ends of tool calls. Their shape is judged with all others.
// TOOL-02, TOOL-10, TOOL-16, TOOL-20
#[derive(Default)]
pub(super) struct Tools {
    /// Sessions whose history is or was being replayed: there every id comes a second time.
    replayed: BTreeSet<String>,
    /// Terminals that a call named before their release, by session, call and terminal.
    embedded: BTreeSet<(String, String, String)>,
    /// The names of calls, by session and id.
    names: BTreeMap<(String, String), String>,
}

/// A call in one of these goes no further.
fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

impl Watcher for Tools {
    fn rules(&self) -> &'static [&'static str] {
        &["TOOL-02", "TOOL-10", "TOOL-16", "TOOL-20"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let replays = message.asks("session/load")
            || message.asks("session/fork")
            || (message.asks("session/resume") && !message.params()["replayFrom"].is_null());
        if replays {
            self.replayed.insert(text(&message.params()["sessionId"]).to_owned());
        } else if message.asks("session/request_permission") {
            let params = message.params();
            self.terminals(message, log, text(&params["sessionId"]), &params["toolCall"], out);
        } else if let Some((asked, _)) = log.result_of(message, "session/prompt") {
            finished(message, log, asked.session().unwrap_or_default(), out);
        }
        let Some((session, kind, update)) = message.update() else { return };
        match kind {
            "tool_call" => {
                self.announced(message, log, session, update, out);
                self.names.remove(&key(session, update));
                self.named(message, session, update, out);
                self.terminals(message, log, session, update, out);
            }
            "tool_call_update" => {
                if log.version() == Version::V2 {
                    self.upserted(message, log, session, update, out);
                }
                self.terminals(message, log, session, update, out);
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
    /// A name stays.
    // TOOL-20
    fn named(&mut self, message: &Message, session: &str, update: &Value, out: &mut Findings) {
        let Some(name) = update["name"].as_str() else { return };
        let known = self.names.entry(key(session, update)).or_insert_with(|| name.to_owned());
        out.check("TOOL-20", message, known == name, || format!("the tool {known:?} is now called {name:?}"));
    }

    /// An id that stood for a finished call does not stand for another one. (Saying
    /// `tool_call` again for one that is not finished happens, and means an update.)
    // TOOL-02
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

impl Tools {
    /// Judges ids in version 2, where the first update of an id creates its call: a call that has
    /// ended and runs again under another title is another call.
    // TOOL-02
    fn upserted(&self, message: &Message, log: &EventLog, session: &str, update: &Value, out: &mut Findings) {
        if self.replayed.contains(session) {
            return;
        }
        let id = text(&update["toolCallId"]);
        let Some(known) = log.sessions.get(session).and_then(|session| session.tools.get(id)) else {
            return out.pass("TOOL-02", message);
        };
        let runs = update["status"].as_str().is_some_and(|status| !is_final(status));
        let title = update["title"].as_str().unwrap_or(&known.title);
        if is_final(&known.status) && runs && *title != known.title {
            let why = format!(
                "the id {id:?} stood for {:?}, which has ended, and stands for {title:?}",
                known.title
            );
            out.fail_at("TOOL-02", Role::Agent, &[known.first, message.index], why);
        }
    }
}

impl Tools {
    /// The client made the terminal, and the call named it before its release. Later updates
    /// of the call may repeat it.
    // TOOL-16
    fn terminals(
        &mut self,
        message: &Message,
        log: &EventLog,
        session: &str,
        call: &Value,
        out: &mut Findings,
    ) {
        for item in items(&call["content"]).filter(|item| item["type"] == "terminal") {
            let id = text(&item["terminalId"]);
            let key = (session.to_owned(), text(&call["toolCallId"]).to_owned(), id.to_owned());
            let known = log.terminals.get(id);
            let open = known.is_some_and(|known| known.released.is_none());
            out.check("TOOL-16", message, open || self.embedded.contains(&key), || match known {
                Some(_) => format!("the terminal {id:?} was released already"),
                None => format!("no terminal {id:?} was made"),
            });
            if open {
                self.embedded.insert(key);
            }
        }
    }
}

/// What was announced in a turn has ended with it.
// TOOL-10
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
