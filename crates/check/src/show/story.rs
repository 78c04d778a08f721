//! What happened in a recording.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

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
    /// What happened in it, with its time.
    pub events: Vec<(Duration, Event)>,
    /// Its tool calls.
    pub tools: Vec<ToolTime>,
}

/// Something in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The user's words.
    User(String),
    /// The agent's words.
    Agent(String),
    /// The agent's thoughts.
    Thought(String),
    /// A tool call: its place in [`SessionStory::tools`].
    Tool(usize),
    /// The plan: entries with their status.
    Plan(Vec<(String, String)>),
    /// A request to the client, and what came of it.
    Request {
        /// The method.
        method: String,
        /// What about.
        about: String,
        /// The answer in short.
        answer: Option<String>,
    },
    /// The client cancelled.
    Cancelled,
    /// A turn ended so.
    Ended(String),
    /// Another kind of update.
    Other(String),
}

/// One tool call over time.
#[derive(Clone, Debug, Default)]
pub struct ToolTime {
    /// Its id.
    pub id: String,
    /// Its last title.
    pub title: String,
    /// Its kind.
    pub kind: String,
    /// Its last status.
    pub status: String,
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
            "session/prompt" => Event::User(blocks(params.get("prompt").unwrap_or(&Value::Null))),
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
    let content = || update.get("content").map(block).unwrap_or_default();
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "agent_message_chunk" => grow(story, at, content(), Event::Agent, |event| {
            if let Event::Agent(text) = event { Some(text) } else { None }
        }),
        "agent_thought_chunk" => grow(story, at, content(), Event::Thought, |event| {
            if let Event::Thought(text) = event { Some(text) } else { None }
        }),
        "user_message_chunk" => grow(story, at, content(), Event::User, |event| {
            if let Event::User(text) = event { Some(text) } else { None }
        }),
        "tool_call" | "tool_call_update" => tool(story, at, update),
        "plan" => {
            let entries = update["entries"].as_array().into_iter().flatten();
            let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let plan =
                Event::Plan(entries.map(|entry| (text(entry, "content"), text(entry, "status"))).collect());
            story.events.push((at, plan));
        }
        kind => story.events.push((at, Event::Other(kind.to_owned()))),
    }
}

/// Text that goes on where the last event of its kind ended.
fn grow(
    story: &mut SessionStory,
    at: Duration,
    text: String,
    new: fn(String) -> Event,
    of: fn(&mut Event) -> Option<&mut String>,
) {
    match story.events.last_mut().and_then(|(_, event)| of(event)) {
        Some(so_far) => so_far.push_str(&text),
        None => story.events.push((at, new(text))),
    }
}

fn tool(story: &mut SessionStory, at: Duration, update: &Value) {
    let Some(id) = update["toolCallId"].as_str() else { return };
    let index = story.tools.iter().position(|tool| tool.id == id).unwrap_or_else(|| {
        story.events.push((at, Event::Tool(story.tools.len())));
        story.tools.push(ToolTime { id: id.to_owned(), at, status: "pending".into(), ..ToolTime::default() });
        story.tools.len() - 1
    });
    let tool = &mut story.tools[index];
    for (name, member) in [("title", &mut tool.title), ("kind", &mut tool.kind), ("status", &mut tool.status)]
    {
        if let Some(text) = update[name].as_str() {
            text.clone_into(member);
        }
    }
    match tool.status.as_str() {
        "in_progress" => _ = tool.began.get_or_insert(at),
        "completed" | "failed" => _ = tool.ended.get_or_insert(at),
        _ => {}
    }
}

/// Content blocks as text.
fn blocks(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(block).collect::<Vec<_>>().join("\n"),
        Value::String(text) => text.clone(),
        other => block(other),
    }
}

fn block(value: &Value) -> String {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    match text("type") {
        "text" => text("text").to_owned(),
        "resource_link" => format!("[{}]", text("uri")),
        "resource" => format!("[{}]", value["resource"]["uri"].as_str().unwrap_or("resource")),
        kind => format!("[{kind}]"),
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
