//! The conversation of a session on version 2 of the protocol.
//!
//! Recordings may hold anything, so updates stay JSON: they are checked by their types, and then
//! merged as the protocol says.

use attache_transcript::Role;
use attache_wire::v1::ContentBlock;
use attache_wire::v2::SessionUpdate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::session::{Event, Item, describe, plan_line};

/// Messages, tool calls and terminals in the order of their first updates, and the state.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    items: Vec<Entry>,
    /// The last state, with its stop reason.
    state: String,
    /// Whether work goes on in the foreground.
    is_active: bool,
    background: Vec<String>,
}

#[derive(Clone, Debug)]
enum Entry {
    Message(Message),
    ToolCall { id: String, members: Map<String, Value> },
    Terminal { id: String, members: Map<String, Value>, output: Vec<u8> },
}

#[derive(Clone, Debug)]
struct Message {
    role: Role,
    /// `None` for a prompt that is not inserted yet.
    id: Option<String>,
    content: Vec<Value>,
    /// Whether the content came as a whole, and not in chunks.
    is_whole: bool,
    /// Whether an update of the agent shows the same message.
    is_hidden: bool,
}

impl Conversation {
    /// Adds a prompt of the client. Returns its index.
    pub(super) fn prompt(&mut self, prompt: &Value) -> u64 {
        let content = match prompt {
            Value::Array(blocks) => blocks.clone(),
            _ => Vec::new(),
        };
        self.push(Entry::Message(Message {
            role: Role::User,
            id: None,
            content,
            is_whole: true,
            is_hidden: false,
        }))
    }

    /// The agent has inserted a prompt under this id.
    pub(super) fn inserted(&mut self, prompt: u64, id: Option<&str>) {
        // V2-10: the same message may have come as an update before.
        let is_shown = id.is_some_and(|id| self.message(Role::User, id).is_some());
        self.is_active = true;
        if let Some(Entry::Message(message)) = self.items.get_mut(prompt as usize) {
            message.is_hidden = is_shown;
            message.id = id.map(str::to_owned);
        }
    }

    /// Takes in an update. Returns what is new.
    pub(crate) fn update(&mut self, update: &Value) -> Vec<Event> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        // V2-20: a known update with wrong content is not shown as something else.
        match SessionUpdate::deserialize(update) {
            Err(_) => return vec![Event::Other(format!("{kind} (malformed)"))],
            Ok(SessionUpdate::Other(_)) => return vec![Event::Other(kind.to_owned())],
            Ok(_) => {}
        }
        let begun = match kind {
            "user_message" | "user_message_chunk" => self.add_message(Role::User, update),
            "agent_message" | "agent_message_chunk" => self.add_message(Role::Agent, update),
            "agent_thought" | "agent_thought_chunk" => self.add_message(Role::Thought, update),
            "tool_call_update" | "tool_call_content_chunk" => self.add_tool_call(update),
            "terminal_update" | "terminal_output_chunk" => self.add_terminal(update),
            "state_update" => return self.add_state(update),
            "plan_update" => return vec![Event::Plan(plan(&update["plan"]))],
            "notice" => {
                let text = ["title", "description"].map(|name| update[name].as_str().unwrap_or_default());
                return vec![Event::Other(format!("notice {}", text.join(" ").trim_end()))];
            }
            _ => return vec![Event::Other(kind.to_owned())],
        };
        begun.map(Event::Item).into_iter().collect()
    }

    /// Returns an item as it is shown.
    pub(super) fn item(&self, index: u64) -> Option<Item> {
        match self.items.get(index as usize)? {
            Entry::Message(message) if message.is_hidden => None,
            Entry::Message(message) if message.content.is_empty() => {
                Some(Item::Message { role: message.role, text: "[no content]".to_owned() })
            }
            Entry::Message(message) => {
                let text: Vec<String> = message.content.iter().map(block).collect();
                // Chunks continue each other; the blocks of a prompt stand apart.
                let separator = if message.is_whole { "\n" } else { "" };
                Some(Item::Message { role: message.role, text: text.join(separator) })
            }
            Entry::ToolCall { members, .. } => {
                // V2-19: the defaults of a call.
                let text = |name: &str, default: &str| {
                    members.get(name).and_then(Value::as_str).unwrap_or(default).to_owned()
                };
                let title = text("title", &text("name", ""));
                let content = members.get("content").and_then(Value::as_array).into_iter().flatten();
                let content: Vec<String> = content.filter_map(tool_content).collect();
                Some(Item::ToolCall {
                    kind: text("kind", "tool"),
                    title,
                    status: text("status", "pending"),
                    content: content.join("\n"),
                })
            }
            Entry::Terminal { id, members, output } => {
                let command = members.get("command").and_then(Value::as_str).unwrap_or(id);
                // A terminal ends its lines with both characters.
                let output = String::from_utf8_lossy(output).replace("\r\n", "\n");
                Some(Item::Terminal {
                    command: command.to_owned(),
                    exit: members.get("exitStatus").map(exit_status),
                    output,
                })
            }
        }
    }

    pub(super) fn is_tool_call(&self, index: u64) -> bool {
        matches!(self.items.get(index as usize), Some(Entry::ToolCall { .. }))
    }

    /// Returns the tool call that an update was about, and its status now.
    pub(super) fn changed_tool_call(&self, update: &Value) -> Option<(u64, &str)> {
        update["sessionUpdate"].as_str().filter(|kind| kind.starts_with("tool_call_"))?;
        let wanted = update["toolCallId"].as_str()?;
        self.items.iter().zip(0..).find_map(|(entry, index)| match entry {
            Entry::ToolCall { id, members } if id == wanted => {
                Some((index, members.get("status").and_then(Value::as_str).unwrap_or("pending")))
            }
            _ => None,
        })
    }

    fn push(&mut self, entry: Entry) -> u64 {
        self.items.push(entry);
        self.items.len() as u64 - 1
    }

    fn message(&mut self, role: Role, id: &str) -> Option<&mut Message> {
        self.items.iter_mut().find_map(|entry| match entry {
            Entry::Message(message) if message.role == role && message.id.as_deref() == Some(id) => {
                Some(message)
            }
            _ => None,
        })
    }

    /// Returns the index of the message if it is new.
    fn add_message(&mut self, role: Role, update: &Value) -> Option<u64> {
        let id = update["messageId"].as_str().unwrap_or_default();
        let mut begun = None;
        if self.message(role, id).is_none() {
            begun = Some(self.push(Entry::Message(Message {
                role,
                id: Some(id.to_owned()),
                content: Vec::new(),
                is_whole: true,
                is_hidden: false,
            })));
        }
        let message = self.message(role, id)?;
        // V2-17: a chunk appends, a list replaces, null clears, absent keeps.
        match update.get("content") {
            Some(Value::Array(content)) => message.content.clone_from(content),
            Some(chunk @ Value::Object(_)) => {
                message.is_whole = false;
                message.content.push(chunk.clone());
            }
            Some(_) => message.content.clear(),
            None => {}
        }
        begun
    }

    fn add_tool_call(&mut self, update: &Value) -> Option<u64> {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let at = self
            .items
            .iter()
            .position(|entry| matches!(entry, Entry::ToolCall { id: known, .. } if known == id));
        let begun =
            at.is_none().then(|| self.push(Entry::ToolCall { id: id.to_owned(), members: Map::new() }));
        let at = at.unwrap_or(self.items.len() - 1);
        if let Some(Entry::ToolCall { members, .. }) = self.items.get_mut(at) {
            if update["sessionUpdate"] == "tool_call_content_chunk" {
                let content = members.entry("content").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(content) = content {
                    content.push(update["content"].clone());
                }
            } else {
                merge(members, update);
            }
        }
        begun
    }

    fn add_terminal(&mut self, update: &Value) -> Option<u64> {
        let id = update["terminalId"].as_str().unwrap_or_default();
        let at = self
            .items
            .iter()
            .position(|entry| matches!(entry, Entry::Terminal { id: known, .. } if known == id));
        let begun = at.is_none().then(|| {
            self.push(Entry::Terminal { id: id.to_owned(), members: Map::new(), output: Vec::new() })
        });
        let at = at.unwrap_or(self.items.len() - 1);
        if let Some(Entry::Terminal { members, output, .. }) = self.items.get_mut(at) {
            // V2-32: each piece is decoded by itself; a character may be cut between two.
            let bytes = |data: &Value| STANDARD.decode(data.as_str().unwrap_or_default()).unwrap_or_default();
            if update["sessionUpdate"] == "terminal_output_chunk" {
                output.extend(bytes(&update["data"]));
            } else {
                if let Some(whole) = update.get("output") {
                    *output = bytes(&whole["data"]);
                }
                merge(members, update);
            }
        }
        begun
    }

    fn add_state(&mut self, update: &Value) -> Vec<Event> {
        let state = update["state"].as_str().unwrap_or_default();
        let mut events = Vec::new();
        let reason = match (update["stopReason"].as_str(), update["error"]["message"].as_str()) {
            (Some("error"), Some(message)) => format!("error: {message}"),
            (Some(reason), _) => reason.to_owned(),
            (None, _) => "no reason reported".to_owned(),
        };
        // V2-35: only `idle` is idle. V2-37: a repeated state is not a new one.
        match (state, self.is_active) {
            ("idle", true) => events.push(Event::Ended(reason)),
            _ if state == self.state => {}
            _ => events.push(Event::State(state.to_owned())),
        }
        self.is_active = state != "idle";
        state.clone_into(&mut self.state);
        if let Some(Value::Array(work)) = update.get("background") {
            let work: Vec<String> = work.iter().map(background).collect();
            if work != self.background {
                let list = if work.is_empty() { "none".to_owned() } else { work.join(", ") };
                events.push(Event::State(format!("background: {list}")));
                self.background = work;
            }
        }
        events
    }
}

/// Null clears, absent keeps, a value replaces.
// V2-17
fn merge(members: &mut Map<String, Value>, update: &Value) {
    for (name, value) in update.as_object().into_iter().flatten() {
        match value {
            Value::Null => _ = members.remove(name),
            value => _ = members.insert(name.clone(), value.clone()),
        }
    }
}

fn plan(plan: &Value) -> Vec<String> {
    if let Some(entries) = plan["entries"].as_array() {
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        return entries
            .iter()
            .map(|entry| plan_line(&text(entry, "status"), &text(entry, "content")))
            .collect();
    }
    let text = ["content", "uri", "type"].into_iter().find_map(|name| plan[name].as_str());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The text of a content block, or its address or type.
fn block(block: &Value) -> String {
    match ContentBlock::deserialize(block) {
        Ok(block) => describe(&block).into_owned(),
        Err(_) => format!("[{}]", block["type"].as_str().unwrap_or("content")),
    }
}

/// The content of a tool call as text. A terminal is shown by itself.
fn tool_content(content: &Value) -> Option<String> {
    match content["type"].as_str()? {
        "content" => Some(block(&content["content"])),
        "diff" => Some(diff(content)),
        "terminal" => None,
        other => Some(format!("[{other}]")),
    }
}

/// The patch, or the list of changes if there is none.
// V2-33, V2-34
fn diff(diff: &Value) -> String {
    if let Some(patch) = diff["patch"]["text"].as_str() {
        return patch.trim_end_matches('\n').to_owned();
    }
    let changes = diff["changes"].as_array().into_iter().flatten().map(|change| {
        let text = |name: &str| change[name].as_str().unwrap_or_default();
        match text("oldPath") {
            "" => format!("{} {}", text("operation"), text("path")),
            old => format!("{} {old} to {}", text("operation"), text("path")),
        }
    });
    changes.collect::<Vec<_>>().join("\n")
}

fn exit_status(status: &Value) -> String {
    match (status["exitCode"].as_i64(), status["signal"].as_str()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn background(work: &Value) -> String {
    let kind = work["type"].as_str().unwrap_or_default();
    let id = ["terminalId", "toolCallId", "sessionId"].into_iter().find_map(|name| work[name].as_str());
    format!("{kind} {}", id.unwrap_or_default()).trim_end().to_owned()
}
