//! The events of one session, on either version of the protocol.

use std::borrow::Cow;
use std::time::Duration;

use attache_transcript::{Change, ItemKind, Plan, PlanBody, Role, Transcript};
use attache_wire::v1::{ContentBlock, EmbeddedResourceResource, SessionUpdate, ToolCallStatus};
use serde::Deserialize as _;
use serde_json::Value;

use super::v2::Conversation;

/// The events of one session.
#[derive(Clone, Debug, Default)]
pub struct SessionEvents {
    /// Its id.
    pub id: String,
    /// The conversation, on version 1.
    pub(super) transcript: Transcript,
    /// The conversation, on version 2.
    pub(super) conversation: Conversation,
    pub(super) is_v2: bool,
    /// The events, with their times.
    pub events: Vec<(Duration, Event)>,
    /// The times of its tool calls.
    pub tools: Vec<ToolTime>,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message, a tool call or a terminal began: its index for [`SessionEvents::item`].
    Item(u64),
    /// A plan, line by line.
    Plan(Vec<String>),
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
    /// The agent refused a prompt with this error.
    Refused(String),
    /// The session is in another state, or its background work is another.
    State(String),
    /// A turn ended with this reason or error.
    Ended(String),
    /// Another kind of update.
    Other(String),
}

/// The times of one tool call.
#[derive(Clone, Debug)]
pub struct ToolTime {
    /// Its index for [`SessionEvents::item`].
    pub item: u64,
    /// The time of the first update.
    pub at: Duration,
    /// The time when it was in progress.
    pub began: Option<Duration>,
    /// The time when it was completed, failed or cancelled.
    pub ended: Option<Duration>,
}

/// A part of a conversation, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A message or a thought.
    Message {
        /// The author.
        role: Role,
        /// The text; other content is named in brackets.
        text: String,
    },
    /// A tool call.
    ToolCall {
        /// The kind of tool.
        kind: String,
        /// The title.
        title: String,
        /// The status.
        status: String,
        /// The content, on version 2: texts and patches.
        content: String,
    },
    /// A terminal of the agent, on version 2.
    Terminal {
        /// The command.
        command: String,
        /// The exit status, if the command has ended.
        exit: Option<String>,
        /// The output.
        output: String,
    },
}

impl SessionEvents {
    /// Returns the item with this index, in its last state. `None` if there is nothing to show.
    pub fn item(&self, index: u64) -> Option<Item> {
        if self.is_v2 {
            return self.conversation.item(index);
        }
        match &self.transcript.get(index)?.kind {
            ItemKind::Message(message) => {
                let separator = if message.prompt { "\n" } else { "" };
                let text: Vec<_> = message.content.iter().map(describe).collect();
                Some(Item::Message { role: message.role, text: text.join(separator) })
            }
            ItemKind::ToolCall(call) => Some(Item::ToolCall {
                kind: call.state.kind.map_or("tool", |kind| kind.as_str()).to_owned(),
                title: call.title().to_owned(),
                status: call.status().as_str().to_owned(),
                content: String::new(),
            }),
            _ => None,
        }
    }

    /// Adds a prompt of the client. Returns the index of its message.
    pub(super) fn prompt(&mut self, at: Duration, prompt: &Value) -> u64 {
        let index = match self.is_v2 {
            true => self.conversation.prompt(prompt),
            false => {
                let index = self.transcript.end();
                self.transcript.fold(attache_transcript::Event::Prompt(blocks(prompt)));
                index
            }
        };
        self.events.push((at, Event::Item(index)));
        index
    }

    /// Adds an update of the agent.
    pub(super) fn update(&mut self, at: Duration, update: &Value) {
        match self.is_v2 {
            true => self.update_v2(at, update),
            false => update_v1(self, at, update),
        }
    }

    fn update_v2(&mut self, at: Duration, update: &Value) {
        for event in self.conversation.update(update) {
            if let Event::Item(item) = event
                && self.conversation.is_tool_call(item)
            {
                self.tools.push(ToolTime { item, at, began: None, ended: None });
            }
            self.events.push((at, event));
        }
        if let Some((item, status)) = self.conversation.changed_tool_call(update)
            && let Some(time) = self.tools.iter_mut().find(|time| time.item == item)
        {
            match status {
                "in_progress" => _ = time.began.get_or_insert(at),
                "completed" | "failed" | "cancelled" => _ = time.ended.get_or_insert(at),
                _ => {}
            }
        }
    }
}

fn update_v1(session: &mut SessionEvents, at: Duration, update: &Value) {
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
        Some(Change::AppendText(..) | Change::AppendBlock(..)) => {}
        Some(Change::ToolCall(..) | Change::ReplaceToolCall(..)) => {}
        Some(Change::Plan(plan)) => session.events.push((at, Event::Plan(plan_lines(plan)))),
        _ => session.events.push((at, Event::Other(kind.to_owned()))),
    }
    if let Some(change) = change {
        let item = match &change {
            Change::ToolCall(item, _) | Change::ReplaceToolCall(item, _) => *item,
            _ => next,
        };
        session.transcript.apply(change);
        note_time(session, at, item);
    }
}

fn plan_lines(plan: &Plan) -> Vec<String> {
    match &plan.body {
        PlanBody::Entries(entries) => {
            entries.iter().map(|entry| plan_line(entry.status.as_str(), &entry.content)).collect()
        }
        PlanBody::Markdown(text) | PlanBody::File(text) => text.lines().map(str::to_owned).collect(),
    }
}

/// One step of a plan.
pub(super) fn plan_line(status: &str, content: &str) -> String {
    let mark = match status {
        "completed" => "x",
        "in_progress" => ">",
        "cancelled" => "-",
        _ => " ",
    };
    format!("[{mark}] {content}")
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

/// Returns the text of a content block, or its address or type.
pub(super) fn describe(block: &ContentBlock) -> Cow<'_, str> {
    match block {
        ContentBlock::Text(text) => Cow::Borrowed(&text.text),
        ContentBlock::ResourceLink(link) => Cow::Owned(format!("[{}]", link.uri)),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => Cow::Owned(format!("[{}]", text.uri)),
            EmbeddedResourceResource::Blob(blob) => Cow::Owned(format!("[{}]", blob.uri)),
            _ => Cow::Borrowed("[resource]"),
        },
        ContentBlock::Image(_) => Cow::Borrowed("[image]"),
        ContentBlock::Audio(_) => Cow::Borrowed("[audio]"),
        _ => Cow::Borrowed("[content]"),
    }
}
