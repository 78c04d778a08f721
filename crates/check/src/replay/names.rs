//! The peer's ids in this run, mapped from those of the recording.

use std::collections::HashMap;

use serde_json::Value;

use super::meaning::{Meaning, OpenRequests};
use crate::Role;
use crate::trace::{EntryKind, Trace};

/// Members whose text is a name that one side made up.
const NAMES: &[&str] = &[
    "sessionId",
    "terminalId",
    "toolCallId",
    "optionId",
    "elicitationId",
    "messageId",
    "planId",
    "compactionId",
    "nextCursor",
    "cursor",
    "suggestionId",
    "connectionId",
];

/// Names of the recording and those of this run.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// From the name then to the name now.
    now: HashMap<String, String>,
    /// The other way, for messages of the peer.
    then: HashMap<String, String>,
    /// Ids of the peer's requests.
    ids: HashMap<String, Value>,
    /// Directories: then and now.
    directories: Vec<(String, String)>,
    open: OpenRequests,
}

impl Names {
    /// A directory is another one now.
    pub(super) fn directory(&mut self, then: String, now: String) {
        if then != now && then.len() > 1 {
            self.directories.push((then, now));
        }
    }

    /// Notes a request of ours, so that its answer is recognised.
    pub(super) fn note_own(&mut self, message: &Value, part: Role) {
        self.open.note(message, part);
    }

    /// The meaning of a peer's message, in the names of the recording.
    pub(super) fn meaning(&self, message: &Value, from: Role) -> Option<Meaning> {
        Some(match Meaning::of(message, &self.open, from)? {
            Meaning::Call { method, session, kind, request } => {
                let session = session.map(|now| self.then.get(&now).cloned().unwrap_or(now));
                Meaning::Call { method, session, kind, request }
            }
            answer => answer,
        })
    }

    /// Maps the names in a recorded message to those in the same message of this run.
    pub(super) fn learn(&mut self, then: &Value, now: &Value) {
        if let (Some(old), Some(new), true) = (then.get("id"), now.get("id"), then.get("method").is_some()) {
            self.ids.insert(old.to_string(), new.clone());
        }
        if let (Some(old), Some(new)) = (cwd(then), cwd(now)) {
            self.directory(old.to_owned(), new.to_owned());
        }
        for part in ["params", "result"] {
            if let (Some(then), Some(now)) = (then.get(part), now.get(part)) {
                self.walk(then, now);
            }
        }
    }

    fn walk(&mut self, then: &Value, now: &Value) {
        match (then, now) {
            (Value::Object(old), Value::Object(new)) => {
                for (name, old) in old {
                    match (old, new.get(name)) {
                        (Value::String(old), Some(Value::String(new))) if NAMES.contains(&name.as_str()) => {
                            // The first meaning stays: names do not change within a run.
                            self.now.entry(old.clone()).or_insert_with(|| new.clone());
                            self.then.entry(new.clone()).or_insert_with(|| old.clone());
                        }
                        (old, Some(new)) => self.walk(old, new),
                        _ => {}
                    }
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                old.iter().zip(new).for_each(|(old, new)| self.walk(old, new))
            }
            _ => {}
        }
    }

    /// Returns a message of the recording with the names of this run.
    pub(super) fn put(&self, message: &Value) -> Value {
        let mut message = message.clone();
        // Answers carry the id that the peer chose now.
        if message.get("method").is_none() {
            if let Some(id) = message.get("id").and_then(|id| self.ids.get(&id.to_string())) {
                message["id"] = id.clone();
            }
        } else if message["method"] == "$/cancel_request" {
            // CANCEL-13: it names a request of ours, whose id is as recorded.
            return message;
        }
        for part in ["params", "result"] {
            if let Some(part) = message.get_mut(part) {
                self.rename(part);
            }
        }
        message
    }

    fn rename(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(text) if NAMES.contains(&name.as_str()) => {
                            if let Some(now) = self.now.get(text) {
                                now.clone_into(text);
                            }
                        }
                        value => self.rename(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item)),
            Value::String(text) => self.relocate(text),
            _ => {}
        }
    }

    fn relocate(&self, text: &mut String) {
        for (then, now) in &self.directories {
            for start in ["", "file://"] {
                let rest = text.strip_prefix(start).and_then(|path| path.strip_prefix(then.as_str()));
                if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\'])) {
                    *text = format!("{start}{now}{rest}");
                    return;
                }
            }
        }
    }
}

/// The directory that the first session of a recording was opened in.
pub(super) fn recorded_cwd(trace: &Trace) -> Option<String> {
    trace.entries.iter().find_map(|entry| {
        let EntryKind::Line { from: Role::Client, text, .. } = &entry.kind else { return None };
        let message: Value = serde_json::from_slice(text).ok()?;
        cwd(&message).map(str::to_owned)
    })
}

fn cwd(message: &Value) -> Option<&str> {
    message.get("method")?.as_str().filter(|method| method.starts_with("session/"))?;
    message.get("params")?.get("cwd")?.as_str()
}
