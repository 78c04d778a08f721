//! The meaning of a message, apart from the ids that differ in each run.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::Role;

/// By what a message of another run is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A request or a notification.
    Call {
        method: String,
        /// Of the recording.
        session: Option<String>,
        /// The kind of update, for `session/update`.
        kind: Option<String>,
        request: bool,
    },
    /// An answer to a request of ours.
    Answer {
        /// The id of the request.
        id: String,
        /// The request.
        method: String,
        failed: bool,
    },
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meaning::Call { method, session, kind, .. } => {
                f.write_str(method)?;
                if let Some(kind) = kind {
                    write!(f, " {kind}")?;
                }
                if let Some(session) = session {
                    write!(f, " of session {session}")?;
                }
                Ok(())
            }
            Meaning::Answer { method, failed, id } => {
                write!(
                    f,
                    "{} to {method} (id {id})",
                    if *failed { "an error in answer" } else { "the answer" }
                )
            }
        }
    }
}

/// The open requests by their sender.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRequests(HashMap<(Role, String), String>);

impl OpenRequests {
    /// Adds a request.
    pub(super) fn note(&mut self, message: &Value, from: Role) {
        if let (Some(method), Some(id)) = (message.get("method").and_then(Value::as_str), message.get("id")) {
            self.0.insert((from, id.to_string()), method.to_owned());
        }
    }

    fn method(&self, id: &Value, asker: Role) -> Option<&str> {
        self.0.get(&(asker, id.to_string())).map(String::as_str)
    }
}

impl Meaning {
    /// Whether it is a chunk of a text, which the next message may continue.
    pub(super) fn is_piece(&self) -> bool {
        matches!(self, Meaning::Call { kind: Some(kind), .. } if kind.ends_with("_chunk"))
    }

    /// Whether it may come earlier or later than recorded. Answers come when they are ready; the
    /// message of a prompt and the state `running` come before or after its answer, in any order.
    // RPC-20, V2-10
    pub(super) fn is_unordered(&self) -> bool {
        match self {
            Meaning::Answer { .. } => true,
            Meaning::Call { kind: Some(kind), .. } => {
                matches!(kind.as_str(), "user_message" | "user_message_chunk" | "state_update running")
            }
            Meaning::Call { .. } => false,
        }
    }

    /// Reads a message; `None` if it is none.
    pub(super) fn of(message: &Value, open: &OpenRequests, from: Role) -> Option<Meaning> {
        let id = message.get("id");
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            let params = message.get("params");
            let text = |at: &[&str]| {
                at.iter().try_fold(params?, |value, name| value.get(name))?.as_str().map(str::to_owned)
            };
            let kind = match method {
                "session/update" => text(&["update", "sessionUpdate"]),
                _ => None,
            };
            // States are events of their own: `running` does not stand for `idle`.
            let kind = kind.map(|kind| match text(&["update", "state"]) {
                Some(state) if kind == "state_update" => format!("{kind} {state}"),
                _ => kind,
            });
            return Some(Meaning::Call {
                method: method.to_owned(),
                session: text(&["sessionId"]),
                kind,
                request: id.is_some(),
            });
        }
        let failed = message.get("error").is_some();
        if !failed && message.get("result").is_none() {
            return None;
        }
        let id = id?;
        let method = open.method(id, from.other()).unwrap_or("a request that was never made");
        Some(Meaning::Answer { id: id.to_string(), method: method.to_owned(), failed })
    }
}

/// Returns the first few places where two messages differ, apart from their ids.
pub(super) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["params", "result", "error"] {
        walk(
            one.get(part).unwrap_or(&Value::Null),
            other.get(part).unwrap_or(&Value::Null),
            format!("/{part}"),
            &mut found,
        );
    }
    found.truncate(5);
    found
}

fn walk(one: &Value, other: &Value, at: String, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one_members), Value::Object(other_members)) => {
            let mut names: Vec<&String> = one_members.keys().chain(other_members.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let member = |value: &'_ Value| value.get(name).cloned().unwrap_or(Value::Null);
                walk(
                    &member(one),
                    &member(other),
                    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        (Value::Array(one_items), Value::Array(other_items)) if one_items.len() == other_items.len() => {
            for (index, (one, other)) in one_items.iter().zip(other_items).enumerate() {
                walk(one, other, format!("{at}/{index}"), found);
            }
        }
        _ if one == other => {}
        _ => found.push(at),
    }
}
