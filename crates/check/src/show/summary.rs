//! The events of a recording: sessions, requests and their times. `session.rs` folds the updates.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::session::{Event, SessionEvents};
use crate::Role;
use crate::trace::{EntryKind, Trace};

/// The contents of a recording, by session and by request.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The time from the first entry to the last.
    pub duration: Duration,
    /// The protocol version that the agent answered.
    pub version: Option<u64>,
    /// The number of messages by sender and method.
    pub counts: BTreeMap<(Role, String), usize>,
    /// Bytes of the agent and of the client.
    pub bytes: (u64, u64),
    /// The sessions, in the order in which they were named first.
    pub sessions: Vec<SessionEvents>,
    /// The requests.
    pub requests: Vec<Request>,
    /// The number of lines that are no messages.
    pub noise: usize,
    /// Exit code and signal of the program.
    pub exit: Option<(Option<i32>, Option<i32>)>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The sender.
    pub from: Role,
    /// The method.
    pub method: String,
    /// The time of the request.
    pub at: Duration,
    /// The time until the response; `None` if there was none.
    pub took: Option<Duration>,
    /// The message of an error response.
    pub error: Option<String>,
}

impl Summary {
    /// Reads a trace.
    pub fn new(trace: &Trace) -> Summary {
        let mut fold = Fold::default();
        for entry in &trace.entries {
            fold.summary.duration = entry.at;
            match &entry.kind {
                EntryKind::Line { from, text, .. } => fold.line(entry.at, *from, text),
                EntryKind::Exit { code, signal } => fold.summary.exit = Some((*code, *signal)),
                _ => {}
            }
        }
        fold.summary
    }
}

#[derive(Default)]
struct Fold {
    summary: Summary,
    /// The open requests.
    open: HashMap<(Role, String), Open>,
}

struct Open {
    /// Index in [`Summary::requests`].
    request: usize,
    /// Session and index of the event that the response completes.
    event: Option<(usize, usize)>,
    session: Option<usize>,
    /// The message of a prompt.
    prompt: Option<u64>,
}

impl Fold {
    fn line(&mut self, at: Duration, from: Role, text: &[u8]) {
        let size = text.len() as u64 + 1;
        match from {
            Role::Agent => self.summary.bytes.0 += size,
            Role::Client => self.summary.bytes.1 += size,
        }
        let Ok(message) = serde_json::from_slice::<Value>(text) else {
            self.summary.noise += usize::from(!text.trim_ascii().is_empty());
            return;
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), id) => {
                self.call(at, from, method, id, message.get("params").unwrap_or(&Value::Null))
            }
            (None, Some(id)) => self.answer(at, from, id, &message),
            (None, None) => self.summary.noise += 1,
        }
    }

    fn call(&mut self, at: Duration, from: Role, method: &str, id: Option<&Value>, params: &Value) {
        *self.summary.counts.entry((from, method.to_owned())).or_default() += 1;
        let session = params.get("sessionId").and_then(Value::as_str).map(|id| self.session(id));
        let prompt = (method == "session/prompt")
            .then(|| Some(self.summary.sessions[session?].prompt(at, &params["prompt"])))
            .flatten();
        let event = session.and_then(|session| self.event(at, session, method, params));
        if let Some(id) = id {
            self.open.insert(
                (from, id.to_string()),
                Open { request: self.summary.requests.len(), event: session.zip(event), session, prompt },
            );
            self.summary.requests.push(Request {
                from,
                method: method.to_owned(),
                at,
                took: None,
                error: None,
            });
        }
    }

    /// Adds an event to a session. Returns its index if a response completes it.
    fn event(&mut self, at: Duration, session: usize, method: &str, params: &Value) -> Option<usize> {
        let session = &mut self.summary.sessions[session];
        let event = match method {
            "session/update" => {
                session.update(at, params.get("update").unwrap_or(&Value::Null));
                return None;
            }
            "session/cancel" => Event::Cancelled,
            "session/request_permission" | "elicitation/create" | "tool_call/cancel" => {
                Event::Request { method: method.to_owned(), about: about(params), answer: None }
            }
            method if method.starts_with("fs/") || method.starts_with("terminal/") => {
                Event::Request { method: method.to_owned(), about: about(params), answer: None }
            }
            _ => return None,
        };
        session.events.push((at, event));
        Some(session.events.len() - 1)
    }

    fn answer(&mut self, at: Duration, from: Role, id: &Value, message: &Value) {
        let Some(open) = self.open.remove(&(from.other(), id.to_string())) else {
            self.summary.noise += 1;
            return;
        };
        let error =
            message.get("error").map(|error| error["message"].as_str().unwrap_or("an error").to_owned());
        let request = &mut self.summary.requests[open.request];
        request.took = Some(at.saturating_sub(request.at));
        request.error.clone_from(&error);
        let method = request.method.clone();
        let result = message.get("result").unwrap_or(&Value::Null);
        if let ("initialize", Some(version)) = (method.as_str(), result["protocolVersion"].as_u64()) {
            self.summary.version = Some(version);
        }
        if let Some(id) = result.get("sessionId").and_then(Value::as_str) {
            self.session(id);
        }
        if let (Some(session), Some(prompt)) = (open.session, open.prompt) {
            let session = &mut self.summary.sessions[session];
            if session.is_v2 {
                // V2-08: the answer says that the message was inserted, and nothing about the end.
                match error {
                    None => session.conversation.inserted(prompt, result["messageId"].as_str()),
                    Some(error) => session.events.push((at, Event::Refused(error))),
                }
                return;
            }
            let stop = error.map_or_else(
                || result["stopReason"].as_str().unwrap_or("?").to_owned(),
                |error| format!("error: {error}"),
            );
            session.events.push((at, Event::Ended(stop)));
        } else if let Some((session, event)) = open.event
            && let (_, Event::Request { answer, .. }) = &mut self.summary.sessions[session].events[event]
        {
            *answer = Some(error.map_or_else(|| outcome(result), |error| format!("error: {error}")));
        }
    }

    fn session(&mut self, id: &str) -> usize {
        let is_v2 = self.summary.version.is_some_and(|version| version >= 2);
        let sessions = &mut self.summary.sessions;
        sessions.iter().position(|session| session.id == id).unwrap_or_else(|| {
            sessions.push(SessionEvents { id: id.to_owned(), is_v2, ..SessionEvents::default() });
            sessions.len() - 1
        })
    }
}

/// Returns the subject of a request.
fn about(params: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // V2-24: the title is the question, the subject may be a command.
    if let Some(title) = params["title"].as_str() {
        return match params["subject"]["command"].as_str() {
            Some(command) => format!("{title} ($ {command})"),
            None => title.to_owned(),
        };
    }
    if let Some(command) = params["command"].as_str() {
        let args = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        return std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ");
    }
    let named = ["path", "terminalId", "toolCallId", "message"].map(|name| &params[name]);
    std::iter::once(&params["toolCall"]["title"])
        .chain(named)
        .map(text)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Returns a short form of a result.
fn outcome(result: &Value) -> String {
    if let Some(option) = result["outcome"]["optionId"].as_str() {
        return format!("chose {option}");
    }
    let words = [&result["outcome"]["outcome"], &result["action"], &result["terminalId"]];
    if let Some(word) = words.into_iter().find_map(Value::as_str) {
        return word.to_owned();
    }
    match (result["content"].as_str(), result["output"].as_str(), result["exitCode"].as_i64()) {
        (Some(content), ..) => format!("{} bytes", content.len()),
        (_, Some(output), _) => format!("{} bytes of output", output.len()),
        (_, _, Some(code)) => format!("exit {code}"),
        _ => "done".to_owned(),
    }
}
