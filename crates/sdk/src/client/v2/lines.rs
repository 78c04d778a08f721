//! Lines of version 2 as lines of version 1, for programs that show or store conversations.

use std::collections::{HashMap, HashSet};

use attache_conn::Flow;
use attache_wire::v1::{
    ContentChunk, MessageId, RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate,
    ToolCall, ToolCallContent, ToolCallUpdate,
};
use attache_wire::{Notification, Request, v2};
use serde_json::json;
use serde_json::value::RawValue;

use super::update::{Item, Updates};
use super::{HeldMessage, Prompts, convert, requests};
use crate::client::calls::Calls;
use crate::client::event::{Event, Speaker, ToolCallChange};
use crate::client::lane::TurnEnd;

/// Sessions and open requests that are followed; others pass unchanged.
const FOLLOWED: usize = 1_024;

/// The lines of a connection in the form of version 1, whichever version it speaks.
///
/// Give it every line of a [tap](crate::Link::tap). On a connection of version 1 all lines pass
/// unchanged. On one of version 2 updates, questions and ends of turns are given in the form of
/// version 1; other lines pass.
///
/// ```
/// use attache::Flow;
/// use attache::client::LinesAsV1;
///
/// let mut lines = LinesAsV1::new();
/// let mut shown = Vec::new();
/// for (flow, line) in [
///     (Flow::Out, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}"#),
///     (Flow::In, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#),
///     (Flow::In, r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":
///         {"sessionUpdate":"state_update","state":"running"}}}"#),
/// ] {
///     lines.line(flow, line.as_bytes(), |line| shown.push(line.to_owned()));
/// }
/// assert_eq!(shown.len(), 2, "version 1 has no states");
/// ```
#[derive(Default)]
pub struct LinesAsV1 {
    version: Version,
    /// Requests of the client that have no answer yet, with their methods and sessions.
    requests: HashMap<String, (&'static str, Option<SessionId>)>,
    sessions: HashMap<SessionId, Session>,
}

#[derive(Debug, Default, PartialEq)]
enum Version {
    /// Not known yet; the id of the latest `initialize`.
    #[default]
    Open,
    Asked(String),
    V1,
    V2,
}

#[derive(Default)]
struct Session {
    updates: Updates,
    prompts: Prompts,
    /// The id of the running prompt.
    prompt: Option<String>,
    calls: Calls,
    known: HashSet<String>,
    /// The call that shows a terminal.
    shown: HashMap<String, ToolCallUpdate>,
    outputs: HashMap<String, Vec<u8>>,
    /// How often the content of a message was replaced. Each time the message has another id from
    /// then on.
    replaced: HashMap<(Speaker, MessageId), usize>,
}

/// The members of a message.
type Members<'a> = HashMap<&'a str, &'a RawValue>;

impl LinesAsV1 {
    /// Starts with the first line of a connection.
    pub fn new() -> Self {
        LinesAsV1::default()
    }

    /// Takes a line and gives out the lines that stand for it: mostly one, sometimes none or
    /// several.
    pub fn line(&mut self, flow: Flow, line: &[u8], mut out: impl FnMut(&[u8])) {
        if self.version == Version::V1 {
            return out(line);
        }
        let members: Option<Members<'_>> = serde_json::from_slice(line).ok();
        let Some(members) = members else { return out(line) };
        let taken = match (&self.version, flow) {
            (Version::V2, Flow::In) => self.incoming(&members, &mut out),
            (Version::V2, Flow::Out) => self.outgoing(&members),
            (_, flow) => self.negotiate(flow, &members),
        };
        if taken.is_none() {
            out(line);
        }
    }

    /// Looks for the answer to `initialize`. Never takes a line.
    fn negotiate(&mut self, flow: Flow, members: &Members<'_>) -> Option<()> {
        let id = members.get("id")?.get();
        match flow {
            Flow::Out if text(members.get("method")?)? == "initialize" => {
                self.version = Version::Asked(id.to_owned());
            }
            Flow::In if self.version == Version::Asked(id.to_owned()) => {
                let result: Members<'_> = serde_json::from_str(members.get("result")?.get()).ok()?;
                // Some agents of version 1 repeat the number that they are offered.
                let is_v2 = result.get("protocolVersion").is_some_and(|version| version.get() == "2")
                    && result.contains_key("info");
                self.version = if is_v2 { Version::V2 } else { Version::V1 };
            }
            _ => {}
        }
        None
    }

    /// Notes the requests of the client, whose answers have another form. Never takes a line.
    fn outgoing(&mut self, members: &Members<'_>) -> Option<()> {
        const METHODS: [&str; 4] =
            ["session/prompt", "session/new", "session/resume", "session/set_config_option"];
        let (id, method) = (members.get("id")?.get(), text(members.get("method")?)?);
        let method = METHODS.into_iter().find(|known| *known == method)?;
        let params: Members<'_> = serde_json::from_str(members.get("params")?.get()).ok()?;
        let session = params.get("sessionId").and_then(|id| text(id)).map(SessionId::from);
        if self.requests.len() >= FOLLOWED {
            return None;
        }
        if let (v2::PromptRequest::METHOD, Some(session)) = (method, &session) {
            let session = self.session(session)?;
            session.prompts.sent();
            session.prompt = Some(id.to_owned());
        }
        self.requests.insert(id.to_owned(), (method, session));
        None
    }

    fn session(&mut self, id: &SessionId) -> Option<&mut Session> {
        if !self.sessions.contains_key(id) && self.sessions.len() >= FOLLOWED {
            return None;
        }
        Some(self.sessions.entry(id.clone()).or_default())
    }

    /// Takes a message of the agent, if version 1 has another form for it.
    fn incoming(&mut self, members: &Members<'_>, out: &mut impl FnMut(&[u8])) -> Option<()> {
        let Some(method) = members.get("method") else { return self.response(members, out) };
        let params = members.get("params")?.get();
        match text(method)?.as_str() {
            v2::UpdateSessionNotification::METHOD => {
                let read: v2::UpdateSessionNotification = serde_json::from_str(params).ok()?;
                let session = self.session(&read.session_id)?;
                let is_same = session.replaced.is_empty()
                    && matches!(
                        read.update,
                        v2::SessionUpdate::AgentMessageChunk(_) | v2::SessionUpdate::AgentThoughtChunk(_)
                    );
                let lines = session.update(&read.session_id, read.update);
                match is_same {
                    true => None,
                    false => {
                        lines.iter().for_each(|line| out(line.as_bytes()));
                        Some(())
                    }
                }
            }
            v2::RequestPermissionRequest::METHOD => {
                let read: v2::RequestPermissionRequest = serde_json::from_str(params).ok()?;
                let (request, _) = requests::permission(read).ok()?;
                let line = json!({
                    "jsonrpc": "2.0",
                    "id": members.get("id")?,
                    "method": RequestPermissionRequest::METHOD,
                    "params": request,
                });
                out(line.to_string().as_bytes());
                Some(())
            }
            _ => None,
        }
    }

    fn response(&mut self, members: &Members<'_>, out: &mut impl FnMut(&[u8])) -> Option<()> {
        let id = members.get("id")?.get();
        let (method, session) = self.requests.remove(id)?;
        let result = members.get("result").map(|result| result.get());
        if method == v2::PromptRequest::METHOD {
            let session_id = session?;
            let session = self.sessions.get_mut(&session_id)?;
            let Some(result) = result else {
                session.prompt = None;
                drop(session.prompts.forget());
                return None;
            };
            let answer: v2::PromptResponse = serde_json::from_str(result).ok()?;
            let answer = session.prompts.answered(answer.message_id);
            for update in answer.others.into_iter().filter_map(HeldMessage::into_update) {
                session.items(&session_id, update).iter().for_each(|line| out(line.as_bytes()));
            }
            let end = answer.end.and_then(|end| session.end(end));
            end.iter().for_each(|line| out(line.as_bytes()));
            return Some(());
        }
        let mut result: serde_json::Value = serde_json::from_str(result?).ok()?;
        let members_of = result.as_object_mut()?;
        let options: Vec<v2::SessionConfigOption> =
            members_of.remove("configOptions").and_then(|list| serde_json::from_value(list).ok())?;
        let options = convert::options(options);
        if method != v2::SetSessionConfigOptionRequest::METHOD
            && let Some(modes) = convert::modes(&options)
        {
            members_of.insert("modes".to_owned(), serde_json::to_value(modes).ok()?);
        }
        members_of.insert("configOptions".to_owned(), serde_json::to_value(options).ok()?);
        out(json!({"jsonrpc": "2.0", "id": members.get("id")?, "result": result}).to_string().as_bytes());
        Some(())
    }
}

impl Session {
    fn update(&mut self, id: &SessionId, update: v2::SessionUpdate) -> Vec<String> {
        self.prompts.note(&update);
        let update = match update {
            update @ (v2::SessionUpdate::UserMessage(_) | v2::SessionUpdate::UserMessageChunk(_)) => {
                // The bound on bytes does not matter here: the lines are gone after this call.
                match self.prompts.take(update, 0) {
                    Some(update) => update,
                    None => return Vec::new(),
                }
            }
            update => update,
        };
        self.items(id, update)
    }

    fn items(&mut self, id: &SessionId, update: v2::SessionUpdate) -> Vec<String> {
        let Ok(items) = self.updates.items("", update) else { return Vec::new() };
        let mut lines = Vec::new();
        for item in items {
            match item {
                Item::Update(update) => lines.extend(notification(id, self.renamed(update))),
                Item::Tool(update, extra) => {
                    let mut change = ToolCallChange::new(false, update);
                    change.extra = Some(extra);
                    let mut event = Event::ToolCall(change);
                    self.calls.complete(&mut event);
                    let Event::ToolCall(change) = event else { continue };
                    lines.extend(self.tool(id, *change.update));
                }
                Item::State(state) => match *state {
                    v2::StateUpdate::Idle(idle) => {
                        lines.extend(self.prompts.idle(idle).and_then(|end| self.end(end)));
                    }
                    _ => self.prompts.busy(),
                },
                Item::Event(Event::Message(change)) => {
                    // A message cannot be taken back: the whole text comes as another one, and so
                    // does what follows.
                    let key = (change.speaker, change.message_id.clone());
                    if self.replaced.len() < FOLLOWED || self.replaced.contains_key(&key) {
                        *self.replaced.entry(key).or_default() += 1;
                    }
                    for block in change.content {
                        let chunk = ContentChunk::new(block).message_id(change.message_id.clone());
                        let update = match change.speaker {
                            Speaker::User => SessionUpdate::UserMessageChunk(chunk),
                            Speaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
                            Speaker::Thought => SessionUpdate::AgentThoughtChunk(chunk),
                        };
                        lines.extend(notification(id, self.renamed(update)));
                    }
                }
                Item::Event(mut event) => {
                    self.calls.complete(&mut event);
                    let Event::Terminal(change) = event else { continue };
                    let terminal = change.terminal;
                    let name = terminal.id.as_str().to_owned();
                    let has_ended = terminal.exit_status.is_some();
                    if self.outputs.len() < FOLLOWED || self.outputs.contains_key(&name) {
                        self.outputs.insert(name.clone(), terminal.output.clone());
                    }
                    // The output is shown when the command has ended; version 1 would repeat it
                    // each time.
                    if let Some(update) = self.shown.get(&name).cloned().filter(|_| has_ended) {
                        lines.extend(notification(id, SessionUpdate::from(self.with_outputs(update))));
                    }
                }
            }
        }
        lines
    }

    /// A piece of a message whose content was replaced belongs to another message.
    fn renamed(&self, mut update: SessionUpdate) -> SessionUpdate {
        let (speaker, chunk) = match &mut update {
            SessionUpdate::UserMessageChunk(chunk) => (Speaker::User, chunk),
            SessionUpdate::AgentMessageChunk(chunk) => (Speaker::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => (Speaker::Thought, chunk),
            _ => return update,
        };
        if let Some(id) = chunk.message_id.clone()
            && let Some(times) = self.replaced.get(&(speaker, id.clone()))
        {
            chunk.message_id = Some(format!("{id}-{times}").into());
        }
        update
    }

    /// A change of a tool call, with the output of terminals as text.
    fn tool(&mut self, id: &SessionId, update: ToolCallUpdate) -> Option<String> {
        let name = update.tool_call_id.as_str().to_owned();
        for content in update.content.iter().flatten() {
            if let ToolCallContent::Terminal(terminal) = content
                && self.shown.len() < FOLLOWED
            {
                let mut shown = ToolCallUpdate::new(update.tool_call_id.clone());
                shown.content.clone_from(&update.content);
                self.shown.insert(terminal.terminal_id.as_str().to_owned(), shown);
            }
        }
        let update = self.with_outputs(update);
        let is_new = self.known.len() < 64 * FOLLOWED && self.known.insert(name);
        match is_new {
            false => notification(id, update),
            true => {
                let mut call = ToolCall::new(update.tool_call_id, update.title.unwrap_or_default());
                call.name = update.name;
                call.kind = update.kind;
                call.status = update.status;
                call.content = update.content;
                call.locations = update.locations;
                call.raw_input = update.raw_input;
                call.raw_output = update.raw_output;
                call.meta = update.meta;
                notification(id, call)
            }
        }
    }

    fn with_outputs(&self, mut update: ToolCallUpdate) -> ToolCallUpdate {
        for content in update.content.iter_mut().flatten() {
            if let ToolCallContent::Terminal(terminal) = content {
                let output = self.outputs.get(terminal.terminal_id.as_str());
                let output = output.map(|output| String::from_utf8_lossy(output).into_owned());
                *content = output.unwrap_or_default().into();
            }
        }
        update
    }

    /// The answer to the prompt.
    fn end(&mut self, end: TurnEnd) -> Option<String> {
        let id = self.prompt.take()?;
        let answer = match end {
            Ok(response) => format!(r#""result":{}"#, serde_json::to_string(&response?).ok()?),
            Err(error) => format!(r#""error":{}"#, serde_json::to_string(&error.to_wire()).ok()?),
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
    }
}

fn notification(id: &SessionId, update: impl Into<SessionUpdate>) -> Option<String> {
    let params = serde_json::to_string(&SessionNotification::new(id.clone(), update.into())).ok()?;
    let method = SessionNotification::METHOD;
    Some(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

impl std::fmt::Debug for LinesAsV1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinesAsV1").field("version", &self.version).finish_non_exhaustive()
    }
}
