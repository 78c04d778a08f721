//! The events of a recording: sessions, requests and their times.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use attache_transcript::{Change, ItemKind, Plan, Transcript};
use attache_wire::v1::{ContentBlock, SessionUpdate, ToolCallStatus};
use serde::Deserialize as _;
use serde_json::Value;

use crate::Role;
use crate::trace::{EntryKind, Trace};

/// The contents of a recording, by session and by request.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The time from the first entry to the last.
    pub duration: Duration,
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

/// The events of one session.
#[derive(Clone, Debug, Default)]
pub struct SessionEvents {
    /// Its id.
    pub id: String,
    /// The conversation.
    pub transcript: Transcript,
    /// The events, with their times.
    pub events: Vec<(Duration, Event)>,
    /// The times of its tool calls.
    pub tools: Vec<ToolTime>,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message or a tool call began: its index in [`SessionEvents::transcript`].
    Item(u64),
    /// The plan.
    Plan(Plan),
    /// A request to the client, and its result.
    Request {
        /// The method.
        method: String,
        /// The subject.
        about: String,
        /// The answer in short.
        answer: Option<String>,
    },
    /// The client cancelled.
    Cancelled,
    /// A turn ended with this reason or error.
    Ended(String),
    /// Another kind of update.
    Other(String),
}

/// The times of one tool call.
#[derive(Clone, Debug)]
pub struct ToolTime {
    /// Its index in [`SessionEvents::transcript`].
    pub item: u64,
    /// The time of the first update.
    pub at: Duration,
    /// The time when it was in progress.
    pub began: Option<Duration>,
    /// The time when it was completed or failed.
    pub ended: Option<Duration>,
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
        let event = session.and_then(|session| self.event(at, session, method, params));
        if let Some(id) = id {
            self.open.insert(
                (from, id.to_string()),
                Open { request: self.summary.requests.len(), event: session.zip(event), session },
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
                update(session, at, params.get("update").unwrap_or(&Value::Null));
                return None;
            }
            "session/prompt" => {
                session.events.push((at, Event::Item(session.transcript.end())));
                session.transcript.fold(attache_transcript::Event::Prompt(blocks(&params["prompt"])));
                return None;
            }
            "session/cancel" => Event::Cancelled,
            "session/request_permission" | "elicitation/create" => {
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
        if let Some(id) = result.get("sessionId").and_then(Value::as_str) {
            self.session(id);
        }
        if let (Some(session), "session/prompt") = (open.session, method.as_str()) {
            let stop = error.map_or_else(
                || result["stopReason"].as_str().unwrap_or("?").to_owned(),
                |error| format!("error: {error}"),
            );
            self.summary.sessions[session].events.push((at, Event::Ended(stop)));
        } else if let Some((session, event)) = open.event
            && let (_, Event::Request { answer, .. }) = &mut self.summary.sessions[session].events[event]
        {
            *answer = Some(error.map_or_else(|| outcome(result), |error| format!("error: {error}")));
        }
    }

    fn session(&mut self, id: &str) -> usize {
        let sessions = &mut self.summary.sessions;
        sessions.iter().position(|session| session.id == id).unwrap_or_else(|| {
            sessions.push(SessionEvents { id: id.to_owned(), ..SessionEvents::default() });
            sessions.len() - 1
        })
    }
}

fn update(session: &mut SessionEvents, at: Duration, update: &Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    let Ok(update) = SessionUpdate::deserialize(update) else {
        return session.events.push((at, Event::Other(format!("{kind} (malformed)"))));
    };
    let next = session.transcript.end();
    let change = session.transcript.change(update.into());
    match &change {
        Some(Change::Push(item)) => match &item.kind {
            ItemKind::Message(_) => session.events.push((at, Event::Item(next))),
            ItemKind::ToolCall(_) => {
                session.events.push((at, Event::Item(next)));
                session.tools.push(ToolTime { item: next, at, began: None, ended: None });
            }
            _ => session.events.push((at, Event::Other(kind.to_owned()))),
        },
        Some(Change::AppendText(..) | Change::AppendBlock(..) | Change::ToolCall(..)) => {}
        Some(Change::Plan(plan)) => session.events.push((at, Event::Plan(plan.clone()))),
        _ => session.events.push((at, Event::Other(kind.to_owned()))),
    }
    if let Some(change) = change {
        let item = if let Change::ToolCall(item, _) = &change { *item } else { next };
        session.transcript.apply(change);
        note_time(session, at, item);
    }
}

/// Notes the time if the item is a tool call that has begun or ended.
fn note_time(session: &mut SessionEvents, at: Duration, item: u64) {
    let Some(ItemKind::ToolCall(call)) = session.transcript.get(item).map(|item| &item.kind) else { return };
    let Some(time) = session.tools.iter_mut().rev().find(|time| time.item == item) else { return };
    match call.status() {
        ToolCallStatus::InProgress => _ = time.began.get_or_insert(at),
        ToolCallStatus::Completed | ToolCallStatus::Failed => _ = time.ended.get_or_insert(at),
        _ => {}
    }
}

/// Reads the content blocks of a prompt; some clients send a text.
fn blocks(prompt: &Value) -> Vec<ContentBlock> {
    match prompt {
        Value::Array(items) => items.iter().filter_map(|item| ContentBlock::deserialize(item).ok()).collect(),
        Value::String(text) => vec![text.as_str().into()],
        other => ContentBlock::deserialize(other).into_iter().collect(),
    }
}

/// Returns the subject of a request.
fn about(params: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(command) = params["command"].as_str() {
        let args = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        return std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ");
    }
    [&params["toolCall"]["title"], &params["path"], &params["terminalId"], &params["message"]]
        .into_iter()
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
