//! The state of a conversation, derived from its messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::message::asked_tool;
use super::{Kind, Message};
use crate::{Role, Version, capability};

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id.
    pub id: Value,
    /// The method.
    pub method: String,
    /// The params; null if absent.
    pub params: Value,
    /// The sender.
    pub from: Role,
    /// The entry of the trace.
    pub index: usize,
}

impl Request {
    /// The session that the params name.
    pub fn session(&self) -> Option<&str> {
        self.params["sessionId"].as_str()
    }
}

/// The state of a conversation. It takes every message at face value, so that one wrong message
/// does not make all later ones look wrong.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// The `initialize` request.
    pub initialize: Option<Request>,
    /// The result of `initialize`; null until it came.
    pub initialized: Value,
    /// Requests without an answer, oldest first.
    pub open: Vec<Request>,
    /// Requests that were answered.
    pub done: Vec<Request>,
    /// Sessions by id.
    pub sessions: BTreeMap<String, Session>,
    /// Terminals by id.
    pub terminals: BTreeMap<String, Terminal>,
    /// The number of lines of each role, agent first.
    pub lines: [usize; 2],
    /// The number of invalid messages, which an error without an id may answer, agent first.
    pub odd: [usize; 2],
    /// Ids of sessions that `session/list` named.
    pub listed: BTreeSet<String>,
}

/// The state of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The method that opened it: `session/new`, `session/load`, `session/resume`, `session/fork`.
    pub opened_by: String,
    /// The entry of the request that opened it.
    pub asked: usize,
    /// The working directory.
    pub cwd: String,
    /// The additional directories.
    pub roots: Vec<String>,
    /// `modes` of the answer that opened it; null if none. `currentModeId` is kept current.
    pub modes: Value,
    /// `configOptions`, kept current; null if none.
    pub config: Value,
    /// The ids of open prompts.
    pub prompts: Vec<Value>,
    /// The number of answered prompts.
    pub turns: usize,
    /// Whether a `session/load` is unanswered.
    pub loading: bool,
    /// Whether the answer that opened it has come.
    pub opened: bool,
    /// Whether it was closed or deleted.
    pub closed: bool,
    /// Whether `session/cancel` was sent for the open prompt.
    pub cancelled: bool,
    /// Whether the last answered prompt had been cancelled.
    pub last_cancelled: bool,
    /// The `stopReason` of the last answered prompt; null if there is none.
    pub last_stop: Value,
    /// The number of updates of the open prompt, or of the last one.
    pub turn_updates: usize,
    /// The number of updates during `session/load` or `session/resume`.
    pub opening_updates: usize,
    /// Whether the answer that opens it is still to come.
    pub opening: bool,
    /// Tool calls by id.
    pub tools: BTreeMap<String, ToolCall>,
    /// `availableCommands` as last sent; null if never.
    pub commands: Value,
    /// The number of updates.
    pub updates: usize,
}

/// The state of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ToolCall {
    /// The status: `pending` if none was given.
    pub status: String,
    /// The kind.
    pub kind: String,
    /// The title.
    pub title: String,
    /// Whether a `tool_call` announced it, rather than an update or a permission request.
    pub announced: bool,
    /// The first trace entry that names it.
    pub first: usize,
    /// The last trace entry that names it.
    pub last: usize,
    /// The last turn of the session that names it.
    pub turn: usize,
}

/// The state of a terminal.
#[derive(Clone, Debug, Default)]
pub struct Terminal {
    /// The session.
    pub session: String,
    /// The entry of the answer that created it.
    pub created: usize,
    /// The entry of the request that released it.
    pub released: Option<usize>,
    /// Whether `terminal/kill` was requested.
    pub killed: bool,
    /// Whether the client reported the end of its command.
    pub ended: bool,
}

impl EventLog {
    /// The open request of `from` with this id.
    pub fn open(&self, from: Role, id: &Value) -> Option<&Request> {
        self.open.iter().find(|asked| asked.from == from && asked.id == *id)
    }

    /// The answered request of `from` with this id, the latest.
    pub fn done(&self, from: Role, id: &Value) -> Option<&Request> {
        self.done.iter().rev().find(|asked| asked.from == from && asked.id == *id)
    }

    /// Open requests of `from` for `method`.
    pub fn open_for<'a>(&'a self, from: Role, method: &'a str) -> impl Iterator<Item = &'a Request> {
        self.open.iter().filter(move |asked| asked.from == from && asked.method == method)
    }

    /// The capabilities of `role`; null if unknown.
    pub fn capabilities(&self, role: Role) -> &Value {
        self.stated_capabilities(role).1
    }

    /// The capabilities of `role`, and the version that their names are from.
    fn stated_capabilities(&self, role: Role) -> (Version, &Value) {
        let (stated, old) = match (role, &self.initialize) {
            (Role::Agent, _) => (&self.initialized, "agentCapabilities"),
            (Role::Client, Some(asked)) => (&asked.params, "clientCapabilities"),
            (Role::Client, None) => return (Version::V1, &Value::Null),
        };
        // Some peers of version 2 state capabilities under the name of version 1.
        match &stated["capabilities"] {
            Value::Object(_) if self.version() == Version::V2 => (Version::V2, &stated["capabilities"]),
            _ => (Version::V1, &stated[old]),
        }
    }

    /// Whether `role` has the capability that version 1 has at a path such as `fs.readTextFile`.
    pub fn can(&self, role: Role, path: &str) -> bool {
        let (version, stated) = self.stated_capabilities(role);
        capability::has(version, role, stated, path)
    }

    /// Whether capabilities of either role announce extensions in `_meta`.
    // INIT-28
    pub fn announces_extensions(&self) -> bool {
        let announces = |role| self.capabilities(role).to_string().contains("\"_meta\"");
        announces(Role::Agent) || announces(Role::Client)
    }

    /// The negotiated version; before the answer to `initialize` the one that the client offers.
    pub fn version(&self) -> Version {
        match &self.initialize {
            Some(asked) if self.initialized.is_null() => Version::of_json(&asked.params["protocolVersion"]),
            _ => Version::of_json(&self.initialized["protocolVersion"]),
        }
    }

    /// The version that `message` is judged by. Both messages of the negotiation name their own.
    pub fn version_at(&self, message: &Message) -> Version {
        if message.asks("initialize") {
            return Version::of_json(&message.params()["protocolVersion"]);
        }
        match self.result_of(message, "initialize") {
            Some((_, result)) => Version::of_json(&result["protocolVersion"]),
            None => self.version(),
        }
    }

    /// The open request that a response answers, and the outcome.
    pub fn response<'a>(
        &'a self,
        message: &'a Message,
    ) -> Option<(&'a Request, Result<&'a Value, &'a Value>)> {
        let Kind::Response { id, outcome } = &message.kind else { return None };
        Some((self.open(message.from.other(), id)?, outcome.as_ref()))
    }

    /// The request and the result, if `message` is a successful response to `method`.
    pub fn result_of<'a>(&'a self, message: &'a Message, method: &str) -> Option<(&'a Request, &'a Value)> {
        let (request, outcome) = self.response(message)?;
        outcome.ok().filter(|_| request.method == method).map(|result| (request, result))
    }

    /// The session that a message's params name.
    pub fn session(&self, params: &Value) -> Option<&Session> {
        self.sessions.get(params["sessionId"].as_str()?)
    }

    /// Updates the state with a message.
    pub fn take(&mut self, message: &Message) {
        let who = usize::from(message.from == Role::Client);
        self.lines[who] += 1;
        self.odd[who] += usize::from(message.is_odd());
        match &message.kind {
            Kind::Request { id, method, params } => {
                let asked = Request {
                    id: id.clone(),
                    method: method.clone(),
                    params: params.clone(),
                    from: message.from,
                    index: message.index,
                };
                self.asked(&asked);
                self.open.push(asked);
            }
            Kind::Notification { method, params } => self.noted(message, method, params),
            Kind::Response { id, outcome } => {
                let from = message.from.other();
                let Some(place) = self.open.iter().position(|asked| asked.from == from && asked.id == *id)
                else {
                    return;
                };
                let asked = self.open.remove(place);
                self.answered(&asked, outcome.as_ref(), message.index);
                self.done.push(asked);
            }
            Kind::Invalid { .. } => {}
        }
    }

    fn asked(&mut self, asked: &Request) {
        let session = asked.session().unwrap_or_default();
        match (asked.from, asked.method.as_str()) {
            (Role::Client, "initialize") => self.initialize = Some(asked.clone()),
            (Role::Client, "session/prompt") => {
                let session = self.sessions.entry(session.to_owned()).or_default();
                session.prompts.push(asked.id.clone());
                session.cancelled = false;
                session.turn_updates = 0;
            }
            (Role::Client, "session/load" | "session/resume") => {
                let entry = self.sessions.entry(session.to_owned()).or_default();
                entry.loading = asked.method == "session/load";
                entry.opening = true;
                entry.opening_updates = 0;
                entry.set_up(asked);
            }
            (Role::Agent, "session/request_permission") => {
                let call = asked_tool(&asked.params);
                self.tool(session, call, asked.index, false);
            }
            (Role::Agent, "terminal/release") => {
                if let Some(terminal) = self.terminal(asked) {
                    terminal.released = Some(asked.index);
                }
            }
            (Role::Agent, "terminal/kill") => {
                if let Some(terminal) = self.terminal(asked) {
                    terminal.killed = true;
                }
            }
            _ => {}
        }
    }

    fn terminal(&mut self, asked: &Request) -> Option<&mut Terminal> {
        self.terminals.get_mut(asked.params["terminalId"].as_str()?)
    }

    fn noted(&mut self, message: &Message, method: &str, params: &Value) {
        let name = params["sessionId"].as_str().unwrap_or_default();
        match (message.from, method) {
            (Role::Client, "session/cancel") => {
                if let Some(session) = self.sessions.get_mut(name) {
                    session.cancelled = !session.prompts.is_empty();
                }
            }
            (Role::Agent, "session/update") => self.update(name, &params["update"], message.index),
            _ => {}
        }
    }

    fn update(&mut self, name: &str, update: &Value, index: usize) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "tool_call" => self.tool(name, update, index, true),
            "tool_call_update" => self.tool(name, update, index, false),
            // SUBA-02: from here on the child's id is known, although no request opened it.
            "subagent_update" => {
                let child = update["sessionId"].as_str().unwrap_or_default();
                self.sessions.entry(child.to_owned()).or_default().opened = true;
            }
            _ => {}
        }
        // An update can come before the answer that names its session, so the session may be new.
        let session = self.sessions.entry(name.to_owned()).or_default();
        session.updates += 1;
        session.turn_updates += usize::from(!session.prompts.is_empty());
        session.opening_updates += usize::from(session.opening);
        match kind {
            "current_mode_update" if session.modes.is_object() => {
                session.modes["currentModeId"] = update["currentModeId"].clone();
            }
            "config_option_update" => session.config = update["configOptions"].clone(),
            "available_commands_update" => session.commands = update["availableCommands"].clone(),
            _ => {}
        }
    }

    fn tool(&mut self, session: &str, call: &Value, index: usize, announces: bool) {
        let session = self.sessions.entry(session.to_owned()).or_default();
        let Some(id) = call["toolCallId"].as_str() else { return };
        let turn = session.turns;
        let tool = session.tools.entry(id.to_owned()).or_insert_with(|| ToolCall {
            status: "pending".to_owned(),
            first: index,
            ..ToolCall::default()
        });
        for (key, place) in
            [("status", &mut tool.status), ("kind", &mut tool.kind), ("title", &mut tool.title)]
        {
            if let Some(value) = call[key].as_str() {
                value.clone_into(place);
            }
        }
        tool.announced |= announces;
        tool.last = index;
        tool.turn = turn;
    }

    fn answered(&mut self, asked: &Request, outcome: Result<&Value, &Value>, index: usize) {
        let name = asked.session().unwrap_or_default().to_owned();
        if asked.method == "session/prompt" {
            let session = self.sessions.entry(name).or_default();
            session.prompts.retain(|id| *id != asked.id);
            session.turns += 1;
            session.last_cancelled = session.cancelled;
            session.last_stop = outcome.map_or(Value::Null, |result| result["stopReason"].clone());
            return;
        }
        if matches!(asked.method.as_str(), "session/load" | "session/resume")
            && let Some(session) = self.sessions.get_mut(&name)
        {
            session.loading = false;
            session.opening = false;
        }
        let Ok(result) = outcome else { return };
        match (asked.from, asked.method.as_str()) {
            (Role::Client, "initialize") => self.initialized = result.clone(),
            (Role::Client, "session/new" | "session/fork" | "session/load" | "session/resume") => {
                let id = result["sessionId"].as_str().unwrap_or(&name);
                let session = self.sessions.entry(id.to_owned()).or_default();
                session.set_up(asked);
                session.opened = true;
                session.closed = false;
                session.modes = result["modes"].clone();
                if !result["configOptions"].is_null() {
                    session.config = result["configOptions"].clone();
                }
            }
            (Role::Client, "session/list") => {
                let sessions = result["sessions"].as_array().into_iter().flatten();
                self.listed.extend(sessions.filter_map(|one| one["sessionId"].as_str()).map(str::to_owned));
            }
            (Role::Client, "session/close" | "session/delete") => {
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.closed = true;
                }
            }
            (Role::Client, "session/set_mode") => {
                if let Some(session) = self.sessions.get_mut(&name)
                    && session.modes.is_object()
                {
                    session.modes["currentModeId"] = asked.params["modeId"].clone();
                }
            }
            (Role::Client, "session/set_config_option") => {
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.config = result["configOptions"].clone();
                }
            }
            (Role::Agent, "terminal/create") => {
                if let Some(id) = result["terminalId"].as_str() {
                    let terminal = Terminal { session: name, created: index, ..Terminal::default() };
                    self.terminals.insert(id.to_owned(), terminal);
                }
            }
            (Role::Agent, "terminal/wait_for_exit") => {
                if let Some(terminal) = self.terminal(asked) {
                    terminal.ended = true;
                }
            }
            (Role::Agent, "terminal/output") => {
                if let Some(terminal) = self.terminal(asked) {
                    terminal.ended |= result["exitStatus"].is_object();
                }
            }
            _ => {}
        }
    }
}

impl Session {
    fn set_up(&mut self, asked: &Request) {
        self.opened_by.clone_from(&asked.method);
        self.asked = asked.index;
        asked.params["cwd"].as_str().unwrap_or_default().clone_into(&mut self.cwd);
        let roots = asked.params["additionalDirectories"].as_array().into_iter().flatten();
        self.roots = roots.filter_map(Value::as_str).map(str::to_owned).collect();
    }
}
