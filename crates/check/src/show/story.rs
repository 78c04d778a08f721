//! The events of a recording: sessions, requests and their times.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use attache_transcript::{Change, ItemKind, Plan, Transcript};
use attache_wire::v1::{ContentBlock, SessionUpdate, ToolCallStatus};
use serde::Deserialize as _;
use serde_json::Value;

use crate::Role;
use crate::trace::{EntryKind, Trace};

/// Everything that happened, put in order.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// From the first entry to the last.
    pub lasted: Duration,
    /// How many messages of which method came from whom.
    pub counts: BTreeMap<(Role, String), usize>,
    /// Bytes of the agent and of the client.
    pub bytes: (u64, u64),
    /// The sessions, in the order in which they were named first.
    pub sessions: Vec<SessionStory>,
    /// Requests and how long they took.
    pub answered: Vec<Answered>,
    /// Lines that are no messages.
    pub noise: usize,
    /// How the program ended: code and signal.
    pub exit: Option<(Option<i32>, Option<i32>)>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Who asked.
    pub from: Role,
    /// What for.
    pub method: String,
    /// When.
    pub at: Duration,
    /// When the answer came, if it did.
    pub took: Option<Duration>,
    /// The error's message, if it was one.
    pub error: Option<String>,
}

/// One session.
#[derive(Clone, Debug, Default)]
pub struct SessionStory {
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
    /// A message or a tool call began: its index in [`SessionStory::transcript`].
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
    /// Its index in [`SessionStory::transcript`].
    pub item: u64,
    /// When it was first seen.
    pub at: Duration,
    /// When work began.
    pub began: Option<Duration>,
    /// When it was completed or failed.
    pub ended: Option<Duration>,
}

impl Story {
    /// Folds a trace.
    pub fn of(trace: &Trace) -> Story {
        let mut fold = Fold::default();
        for entry in &trace.entries {
            fold.story.lasted = entry.at;
            match &entry.kind {
                EntryKind::Line { from, text, .. } => fold.line(entry.at, *from, text),
                EntryKind::Exit { code, signal } => fold.story.exit = Some((*code, *signal)),
                _ => {}
            }
        }
        fold.story
    }
}

#[derive(Default)]
struct Fold {
    story: Story,
    /// Open requests: place in `answered`, and where the question stands in a session.
    open: HashMap<(Role, String), Open>,
}

struct Open {
    answered: usize,
    event: Option<(usize, usize)>,
    session: Option<usize>,
}

impl Fold {
    fn line(&mut self, at: Duration, from: Role, text: &[u8]) {
        let size = text.len() as u64 + 1;
        match from {
            Role::Agent => self.story.bytes.0 += size,
            Role::Client => self.story.bytes.1 += size,
        }
        let Ok(message) = serde_json::from_slice::<Value>(text) else {
            self.story.noise += usize::from(!text.trim_ascii().is_empty());
            return;
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), id) => {
                self.call(at, from, method, id, message.get("params").unwrap_or(&Value::Null))
            }
            (None, Some(id)) => self.answer(at, from, id, &message),
            (None, None) => self.story.noise += 1,
        }
    }

    fn call(&mut self, at: Duration, from: Role, method: &str, id: Option<&Value>, params: &Value) {
        *self.story.counts.entry((from, method.to_owned())).or_default() += 1;
        let session = params.get("sessionId").and_then(Value::as_str).map(|id| self.session(id));
        let event = session.and_then(|session| self.event(at, session, method, params));
        if let Some(id) = id {
            self.open.insert(
                (from, id.to_string()),
                Open { answered: self.story.answered.len(), event: session.zip(event), session },
            );
            self.story.answered.push(Answered {
                from,
                method: method.to_owned(),
                at,
                took: None,
                error: None,
            });
        }
    }

    /// Notes what a message means to its session; gives its place if an answer belongs to it.
    fn event(&mut self, at: Duration, session: usize, method: &str, params: &Value) -> Option<usize> {
        let story = &mut self.story.sessions[session];
        let event = match method {
            "session/update" => {
                update(story, at, params.get("update").unwrap_or(&Value::Null));
                return None;
            }
            "session/prompt" => {
                story.events.push((at, Event::Item(story.transcript.end())));
                story.transcript.fold(attache_transcript::Event::Prompt(blocks(&params["prompt"])));
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
        story.events.push((at, event));
        Some(story.events.len() - 1)
    }

    fn answer(&mut self, at: Duration, from: Role, id: &Value, message: &Value) {
        let Some(open) = self.open.remove(&(from.other(), id.to_string())) else {
            self.story.noise += 1;
            return;
        };
        let error =
            message.get("error").map(|error| error["message"].as_str().unwrap_or("an error").to_owned());
        let answered = &mut self.story.answered[open.answered];
        answered.took = Some(at.saturating_sub(answered.at));
        answered.error.clone_from(&error);
        let method = answered.method.clone();
        let result = message.get("result").unwrap_or(&Value::Null);
        if let Some(id) = result.get("sessionId").and_then(Value::as_str) {
            self.session(id);
        }
        if let (Some(session), "session/prompt") = (open.session, method.as_str()) {
            let stop = error.map_or_else(
                || result["stopReason"].as_str().unwrap_or("?").to_owned(),
                |error| format!("error: {error}"),
            );
            self.story.sessions[session].events.push((at, Event::Ended(stop)));
        } else if let Some((session, event)) = open.event
            && let (_, Event::Request { answer, .. }) = &mut self.story.sessions[session].events[event]
        {
            *answer = Some(error.map_or_else(|| outcome(result), |error| format!("error: {error}")));
        }
    }

    fn session(&mut self, id: &str) -> usize {
        let sessions = &mut self.story.sessions;
        sessions.iter().position(|session| session.id == id).unwrap_or_else(|| {
            sessions.push(SessionStory { id: id.to_owned(), ..SessionStory::default() });
            sessions.len() - 1
        })
    }
}

fn update(story: &mut SessionStory, at: Duration, update: &Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    let Ok(update) = SessionUpdate::deserialize(update) else {
        return story.events.push((at, Event::Other(format!("{kind} (malformed)"))));
    };
    let next = story.transcript.end();
    let change = story.transcript.change(update.into());
    match &change {
        Some(Change::Push(item)) => match &item.kind {
            ItemKind::Message(_) => story.events.push((at, Event::Item(next))),
            ItemKind::ToolCall(_) => {
                story.events.push((at, Event::Item(next)));
                story.tools.push(ToolTime { item: next, at, began: None, ended: None });
            }
            _ => story.events.push((at, Event::Other(kind.to_owned()))),
        },
        Some(Change::AppendText(..) | Change::AppendBlock(..) | Change::ToolCall(..)) => {}
        Some(Change::Plan(plan)) => story.events.push((at, Event::Plan(plan.clone()))),
        _ => story.events.push((at, Event::Other(kind.to_owned()))),
    }
    if let Some(change) = change {
        let item = if let Change::ToolCall(item, _) = &change { *item } else { next };
        story.transcript.apply(change);
        note_time(story, at, item);
    }
}

/// Notes the time if the item is a tool call that has begun or ended.
fn note_time(story: &mut SessionStory, at: Duration, item: u64) {
    let Some(ItemKind::ToolCall(call)) = story.transcript.get(item).map(|item| &item.kind) else { return };
    let Some(time) = story.tools.iter_mut().rev().find(|time| time.item == item) else { return };
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

/// What a request is about, in a few words.
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

/// An answer in a few words.
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
