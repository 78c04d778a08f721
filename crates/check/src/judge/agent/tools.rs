//! Tool calls.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{Book, Findings, Kind, Said, Watcher};
use super::{is_one_of, is_text, items};
use crate::Party;

/// TOOL-02, TOOL-03, TOOL-05, TOOL-10, TOOL-11, TOOL-12, TOOL-14, TOOL-16, TOOL-20.
#[derive(Default)]
pub(super) struct Tools {
    /// Sessions whose history is or was being replayed: there every id comes a second time.
    replayed: BTreeSet<String>,
}

pub(super) const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
const ITEMS: [&str; 3] = ["content", "diff", "terminal"];

/// A call in one of these goes no further.
pub(super) fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed")
}

impl Watcher for Tools {
    fn rules(&self) -> &'static [&'static str] {
        &["TOOL-02", "TOOL-03", "TOOL-05", "TOOL-10", "TOOL-11", "TOOL-12", "TOOL-14", "TOOL-16"]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        match said.kind {
            Kind::Request { method: "session/load" | "session/fork", params, .. } => {
                self.replayed.insert(params["sessionId"].as_str().unwrap_or_default().to_owned());
            }
            Kind::Request { method: "session/request_permission", params, .. } => {
                shape(said, book, &params["toolCall"], out);
            }
            Kind::Answer { to: Some(asked), outcome: Ok(_), .. } if asked.method == "session/prompt" => {
                finished(said, book, asked.session().unwrap_or_default(), out);
            }
            _ => {}
        }
        let Some((session, kind, update)) = said.update() else { return };
        match kind {
            "tool_call" => {
                self.announced(said, book, session, update, out);
                let named = is_text(&update["toolCallId"]) && update["title"].is_string();
                out.check("TOOL-03", said, named, || "a tool call needs `toolCallId` and `title`".to_owned());
                shape(said, book, update, out);
            }
            "tool_call_update" => {
                out.check("TOOL-05", said, is_text(&update["toolCallId"]), || {
                    "`toolCallId` is missing".to_owned()
                });
                shape(said, book, update, out);
            }
            _ => {}
        }
    }
}

impl Tools {
    /// TOOL-02: an id that stood for a finished call does not stand for another one. (Saying `tool_call` again for one that is not
    /// finished happens, and means an update.)
    fn announced(&self, said: &Said<'_>, book: &Book, session: &str, update: &Value, out: &mut Findings) {
        if self.replayed.contains(session) {
            return;
        }
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let known = book.sessions.get(session).and_then(|session| session.tools.get(id));
        match known {
            Some(known) if known.announced && is_final(&known.status) => {
                let why = format!("the id {id:?} stood for a call that is finished");
                out.fail_at("TOOL-02", Party::Agent, &[known.first, said.index], why);
            }
            _ => out.pass("TOOL-02", said),
        }
    }
}

fn shape(said: &Said<'_>, book: &Book, call: &Value, out: &mut Findings) {
    let (status, kind) = (&call["status"], &call["kind"]);
    if !status.is_null() {
        out.check("TOOL-11", said, is_one_of(status, &STATUSES), || format!("the status is {status}"));
    }
    if !kind.is_null() {
        out.check("TOOL-12", said, is_one_of(kind, &KINDS), || format!("the kind is {kind}"));
    }
    for item in items(&call["content"]) {
        out.check("TOOL-14", said, is_one_of(&item["type"], &ITEMS), || {
            format!("an item of type {}", item["type"])
        });
        if item["type"] == "terminal" {
            terminal(said, book, &item["terminalId"], out);
        }
    }
}

/// TOOL-16: the client made it, and it has not been released.
fn terminal(said: &Said<'_>, book: &Book, id: &Value, out: &mut Findings) {
    let known = book.terminals.get(id.as_str().unwrap_or_default());
    out.check("TOOL-16", said, known.is_some_and(|known| known.released.is_none()), || match known {
        Some(_) => format!("the terminal {id} was released already"),
        None => format!("no terminal {id} was made"),
    });
}

/// TOOL-10: what was announced in a turn has ended with it.
fn finished(said: &Said<'_>, book: &Book, session: &str, out: &mut Findings) {
    let Some(session) = book.sessions.get(session) else { return };
    for (id, tool) in session.tools.iter().filter(|(_, tool)| tool.announced && tool.turn == session.turns) {
        out.check("TOOL-10", said, is_final(&tool.status), || {
            format!("the tool call {id:?} is still `{}` at the end of its turn", tool.status)
        });
    }
}
