//! A line of the wire, read without prejudice: whatever it is, it becomes a message that can be spoken about.

use std::time::Duration;

use serde_json::Value;

use super::{Asked, Book};
use crate::Role;
use crate::trace::End;

/// A line that was received or sent, with what it means.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Its place in the trace.
    pub index: usize,
    /// When it was.
    pub at: Duration,
    /// Who said it.
    pub from: Role,
    /// The line without its end.
    pub line: Vec<u8>,
    /// How the line ended.
    pub end: End,
    /// The whole line as JSON; null if it is none.
    pub json: Value,
    /// What it means.
    pub message: Message,
}

/// What a line means, owned.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
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
    /// Something with `result` or `error` and no method.
    Answer {
        /// The id; null if absent.
        id: Value,
        /// The result, or the error.
        outcome: Result<Value, Value>,
    },
    /// Nothing of these.
    Broken {
        /// What is wrong.
        why: String,
    },
}

impl Heard {
    /// Reads a line.
    pub fn read(index: usize, at: Duration, from: Role, line: &[u8], end: End) -> Heard {
        let (json, message) = read(line);
        Heard { index, at, from, line: line.to_vec(), end, json, message }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.message {
            Message::Request { method, .. } | Message::Notification { method, .. } => Some(method),
            _ => None,
        }
    }

    /// The params of a request or notification, else null.
    pub fn params(&self) -> &Value {
        match &self.message {
            Message::Request { params, .. } | Message::Notification { params, .. } => params,
            _ => &Value::Null,
        }
    }

    /// The id of a request or an answer.
    pub fn id(&self) -> Option<&Value> {
        match &self.message {
            Message::Request { id, .. } | Message::Answer { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether it is a request for `method`.
    pub fn asks(&self, wanted: &str) -> bool {
        matches!(&self.message, Message::Request { method, .. } if method == wanted)
    }

    /// The `sessionUpdate` kind, and the update itself, if it is a `session/update`.
    pub fn update(&self) -> Option<(&str, &Value)> {
        if self.method() != Some("session/update") {
            return None;
        }
        let update = &self.params()["update"];
        Some((update["sessionUpdate"].as_str().unwrap_or_default(), update))
    }

    /// Whether a receiver may answer it with an error that names no id (RPC-09, RPC-10): it is not a good message of JSON-RPC 2.0.
    pub fn is_odd(&self) -> bool {
        let good_id = self.id().is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64());
        matches!(self.message, Message::Broken { .. })
            || self.json["jsonrpc"] != "2.0"
            || !good_id
            || !matches!(self.params(), Value::Object(_) | Value::Null)
    }

    /// The borrowed form, with the request that an answer answers.
    pub fn said<'a>(&'a self, book: &'a Book) -> Said<'a> {
        let kind = match &self.message {
            Message::Request { id, method, params } => Kind::Request { id, method, params },
            Message::Notification { method, params } => Kind::Notification { method, params },
            Message::Answer { id, outcome } => {
                Kind::Answer { id, to: book.open(self.from.other(), id), outcome: outcome.as_ref() }
            }
            Message::Broken { why } => Kind::Broken { why },
        };
        Said {
            index: self.index,
            at: self.at,
            from: self.from,
            line: &self.line,
            end: self.end,
            json: &self.json,
            kind,
        }
    }
}

/// What a watcher sees.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The place in the trace.
    pub index: usize,
    /// When it was said.
    pub at: Duration,
    /// Who said it.
    pub from: Role,
    /// The line without its end.
    pub line: &'a [u8],
    /// How the line ended.
    pub end: End,
    /// The whole line as JSON; null if it is none.
    pub json: &'a Value,
    /// What it means.
    pub kind: Kind<'a>,
}

/// What a line means, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// A method with an id.
    Request {
        /// The id.
        id: &'a Value,
        /// The method.
        method: &'a str,
        /// The params; null if absent.
        params: &'a Value,
    },
    /// A method without an id.
    Notification {
        /// The method.
        method: &'a str,
        /// The params; null if absent.
        params: &'a Value,
    },
    /// Something with `result` or `error` and no method.
    Answer {
        /// The id; null if absent.
        id: &'a Value,
        /// The open request of the other side that it answers, if there is one.
        to: Option<&'a Asked>,
        /// The result, or the error.
        outcome: Result<&'a Value, &'a Value>,
    },
    /// Nothing of these.
    Broken {
        /// What is wrong.
        why: &'a str,
    },
}

impl<'a> Said<'a> {
    /// Method and params, if `from` says a request or notification.
    pub fn call(&self, from: Role) -> Option<(&'a str, &'a Value)> {
        match self.kind {
            Kind::Request { method, params, .. } | Kind::Notification { method, params }
                if self.from == from =>
            {
                Some((method, params))
            }
            _ => None,
        }
    }

    /// The request and its result, if this is a good answer to a request for `method`.
    pub fn result_of(&self, method: &str) -> Option<(&'a Asked, &'a Value)> {
        match self.kind {
            Kind::Answer { to: Some(asked), outcome: Ok(result), .. } if asked.method == method => {
                Some((asked, result))
            }
            _ => None,
        }
    }

    /// The session, the `sessionUpdate` kind and the update, if this is a `session/update` of the agent.
    pub fn update(&self) -> Option<(&'a str, &'a str, &'a Value)> {
        let (method, params) = self.call(Role::Agent)?;
        if method != "session/update" {
            return None;
        }
        let update = &params["update"];
        Some((
            params["sessionId"].as_str().unwrap_or_default(),
            update["sessionUpdate"].as_str().unwrap_or_default(),
            update,
        ))
    }
}

fn read(line: &[u8]) -> (Value, Message) {
    let broken = |why: String| (Value::Null, Message::Broken { why });
    let Ok(text) = std::str::from_utf8(line) else {
        return broken("not UTF-8".to_owned());
    };
    if text.trim().is_empty() {
        return broken("a blank line".to_owned());
    }
    match serde_json::from_str::<Value>(text) {
        Err(error) => broken(format!("not JSON: {error}")),
        Ok(json) => {
            let message = classify(&json);
            (json, message)
        }
    }
}

fn classify(json: &Value) -> Message {
    let broken = |why: &str| Message::Broken { why: why.to_owned() };
    let Some(object) = json.as_object() else {
        return broken(if json.is_array() { "a batch" } else { "JSON, but no object" });
    };
    let params = || object.get("params").cloned().unwrap_or(Value::Null);
    match (object.get("method"), object.get("id")) {
        (Some(Value::String(method)), Some(id)) => {
            Message::Request { id: id.clone(), method: method.clone(), params: params() }
        }
        (Some(Value::String(method)), None) => {
            Message::Notification { method: method.clone(), params: params() }
        }
        (Some(_), _) => broken("`method` is not a string"),
        (None, id) => {
            let id = id.cloned().unwrap_or(Value::Null);
            match (object.get("result"), object.get("error")) {
                (Some(result), _) => Message::Answer { id, outcome: Ok(result.clone()) },
                (None, Some(error)) => Message::Answer { id, outcome: Err(error.clone()) },
                (None, None) => broken("an object that is neither request, notification nor answer"),
            }
        }
    }
}
