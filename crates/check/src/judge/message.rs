//! A line of the wire, parsed leniently: a judge must see wrong messages too, so params stay JSON.

use std::time::Duration;

use serde_json::Value;

use crate::Role;
use crate::trace::LineEnd;

/// A line that was received or sent.
#[derive(Clone, Debug)]
pub struct Message {
    /// The index of the trace entry.
    pub index: usize,
    /// The time since the start of the trace.
    pub at: Duration,
    /// The sender.
    pub from: Role,
    /// The line without its line end.
    pub line: Vec<u8>,
    /// The line end.
    pub end: LineEnd,
    /// The line as JSON; null if it is not JSON.
    pub json: Value,
    /// The kind of message, with its parts.
    pub kind: Kind,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A method with an id.
    Request {
        /// The id.
        id: Value,
        /// The method.
        method: String,
        /// The params; null if absent.
        params: Value,
    },
    /// A method without an id.
    Notification {
        /// The method.
        method: String,
        /// The params; null if absent.
        params: Value,
    },
    /// An object with `result` or `error` and no method.
    Response {
        /// The id; null if absent.
        id: Value,
        /// The result, or the error.
        outcome: Result<Value, Value>,
    },
    /// None of these.
    Invalid {
        /// The reason.
        why: String,
    },
}

impl Message {
    /// Reads a line.
    pub fn read(index: usize, at: Duration, from: Role, line: &[u8], end: LineEnd) -> Message {
        let (json, kind) = read(line);
        Message { index, at, from, line: line.to_vec(), end, json, kind }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            Kind::Request { method, .. } | Kind::Notification { method, .. } => Some(method),
            _ => None,
        }
    }

    /// The params of a request or notification, else null.
    pub fn params(&self) -> &Value {
        match &self.kind {
            Kind::Request { params, .. } | Kind::Notification { params, .. } => params,
            _ => &Value::Null,
        }
    }

    /// The id of a request or an answer.
    pub fn id(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Request { id, .. } | Kind::Response { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether it is a request for `method`.
    pub fn asks(&self, wanted: &str) -> bool {
        matches!(&self.kind, Kind::Request { method, .. } if method == wanted)
    }

    /// The method and params of a request or notification from `role`.
    pub fn call(&self, role: Role) -> Option<(&str, &Value)> {
        self.method().filter(|_| self.from == role).map(|method| (method, self.params()))
    }

    /// The session, the `sessionUpdate` kind and the update of a `session/update` from the agent.
    pub fn update(&self) -> Option<(&str, &str, &Value)> {
        let (_, params) = self.call(Role::Agent).filter(|(method, _)| *method == "session/update")?;
        let update = &params["update"];
        Some((text(&params["sessionId"]), text(&update["sessionUpdate"]), update))
    }

    /// Whether a receiver may answer it with an error without an id, because it is
    /// not valid JSON-RPC 2.0.
    // RPC-09, RPC-10
    pub fn is_odd(&self) -> bool {
        let good_id = self.id().is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64());
        matches!(self.kind, Kind::Invalid { .. })
            || self.json["jsonrpc"] != "2.0"
            || !good_id
            || !matches!(self.params(), Value::Object(_) | Value::Null)
    }
}

/// The text of a value, empty if it is not a string.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The tool call that a permission request is about; null if it is about none.
pub(super) fn asked_tool(params: &Value) -> &Value {
    match &params["subject"] {
        Value::Null => &params["toolCall"],
        // Version 2 has other subjects too.
        subject => &subject["toolCall"],
    }
}

fn read(line: &[u8]) -> (Value, Kind) {
    let broken = |why: String| (Value::Null, Kind::Invalid { why });
    let Ok(text) = std::str::from_utf8(line) else {
        return broken("not UTF-8".to_owned());
    };
    if text.trim().is_empty() {
        return broken("a blank line".to_owned());
    }
    match serde_json::from_str::<Value>(text) {
        Err(error) => broken(format!("not JSON: {error}")),
        Ok(json) => {
            let kind = classify(&json);
            (json, kind)
        }
    }
}

fn classify(json: &Value) -> Kind {
    let broken = |why: &str| Kind::Invalid { why: why.to_owned() };
    let Some(object) = json.as_object() else {
        return broken(if json.is_array() { "a batch" } else { "JSON, but no object" });
    };
    let params = || object.get("params").cloned().unwrap_or(Value::Null);
    match (object.get("method"), object.get("id")) {
        (Some(Value::String(method)), Some(id)) => {
            Kind::Request { id: id.clone(), method: method.clone(), params: params() }
        }
        (Some(Value::String(method)), None) => {
            Kind::Notification { method: method.clone(), params: params() }
        }
        (Some(_), _) => broken("`method` is not a string"),
        (None, id) => {
            let id = id.cloned().unwrap_or(Value::Null);
            match (object.get("result"), object.get("error")) {
                (Some(result), _) => Kind::Response { id, outcome: Ok(result.clone()) },
                (None, Some(error)) => Kind::Response { id, outcome: Err(error.clone()) },
                (None, None) => broken("an object that is neither request, notification nor answer"),
            }
        }
    }
}
