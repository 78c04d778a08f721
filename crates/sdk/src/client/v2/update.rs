//! Updates of version 2, as updates and events of the model.

use std::borrow::Cow;
use std::sync::Arc;

use attache_wire::v1::{
    Content, ContentBlock, ContentChunk, PlanEntry, PlanEntryPriority, SessionInfoUpdate, SessionUpdate,
    Terminal, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, UsageUpdate,
};
use attache_wire::{Json, Meta, Patch, v2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{convert, diff};
use crate::client::event::{
    AgentTerminal, Event, MessageChange, Speaker, TerminalChange, ToolExtra, patch_meta,
};
use crate::client::v2::messages::{Messages, Replacement};
use crate::{Edit, plan_status, tool_status};

/// A part of the model that an update stands for.
pub(crate) enum Item {
    /// The same as an update of version 1.
    Update(SessionUpdate),
    /// A change of a tool call, with what version 1 cannot express.
    Tool(Box<ToolCallUpdate>, Box<ToolExtra>),
    /// The state of the session.
    State(Box<v2::StateUpdate>),
    /// A change that version 1 cannot express.
    Event(Event),
}

/// Why an update cannot be used.
pub(crate) type Reason = Cow<'static, str>;

/// The accumulated state of the updates of a session and its subagents.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    messages: Messages,
    /// The cost so far, which an update may leave out.
    cost: Option<v2::Cost>,
    /// `_meta` of the session so far.
    meta: Option<Meta>,
}

impl Updates {
    /// A piece of a message: most updates are one.
    // V2-16
    pub(crate) fn chunk(
        &mut self,
        child: &str,
        speaker: Speaker,
        chunk: v2::ContentChunk,
    ) -> Option<SessionUpdate> {
        // V2-21: content of an unknown type is not shown.
        let content = convert::content(chunk.content)?;
        self.messages.append(child, speaker, &chunk.message_id, &content);
        let converted = ContentChunk::new(content).message_id(chunk.message_id).meta(chunk.meta);
        Some(spoken(speaker, converted))
    }

    /// A message, which replaces all pieces so far.
    // V2-17
    pub(crate) fn message(
        &mut self,
        child: &str,
        speaker: Speaker,
        id: v2::MessageId,
        content: Patch<Vec<v2::ContentBlock>>,
        patch: Patch<Meta>,
    ) -> Vec<Item> {
        let content: Vec<ContentBlock> = match content {
            Patch::Keep => return Vec::new(),
            Patch::Clear => Vec::new(),
            Patch::Set(blocks) => blocks.into_iter().filter_map(convert::content).collect(),
        };
        // No message is kept, so its metadata is that of this change.
        let mut meta = None;
        patch_meta(&mut meta, patch);
        let chunk = |block: ContentBlock| {
            let chunk = ContentChunk::new(block).message_id(id.clone()).meta(meta.clone());
            Item::Update(spoken(speaker, chunk))
        };
        match self.messages.replace(child, speaker, &id, &content) {
            Replacement::New => content.into_iter().map(chunk).collect(),
            Replacement::Same => Vec::new(),
            Replacement::Longer(rest) => vec![chunk(rest.into())],
            Replacement::Other => {
                let change = MessageChange { speaker, message_id: id, content, meta };
                vec![Item::Event(Event::Message(Box::new(change)))]
            }
        }
    }

    /// The parts that an update stands for.
    pub(crate) fn items(&mut self, child: &str, update: v2::SessionUpdate) -> Result<Vec<Item>, Reason> {
        let one = |update: SessionUpdate| Ok(vec![Item::Update(update)]);
        match update {
            v2::SessionUpdate::UserMessageChunk(chunk) => Ok(self.piece(child, Speaker::User, chunk)),
            v2::SessionUpdate::AgentMessageChunk(chunk) => Ok(self.piece(child, Speaker::Agent, chunk)),
            v2::SessionUpdate::AgentThoughtChunk(chunk) => Ok(self.piece(child, Speaker::Thought, chunk)),
            v2::SessionUpdate::UserMessage(message) => {
                Ok(self.message(child, Speaker::User, message.message_id, message.content, message.meta))
            }
            v2::SessionUpdate::AgentMessage(message) => {
                Ok(self.message(child, Speaker::Agent, message.message_id, message.content, message.meta))
            }
            v2::SessionUpdate::AgentThought(message) => {
                Ok(self.message(child, Speaker::Thought, message.message_id, message.content, message.meta))
            }
            v2::SessionUpdate::StateUpdate(state) => Ok(vec![Item::State(state)]),
            v2::SessionUpdate::ToolCallUpdate(update) => {
                let (update, extra) = tool_call(*update);
                Ok(vec![Item::Tool(Box::new(update), Box::new(extra))])
            }
            v2::SessionUpdate::ToolCallContentChunk(chunk) => {
                let edits = edits(std::slice::from_ref(&chunk.content));
                let append = tool_content(chunk.content);
                let extra = ToolExtra { append, edits: Some(edits), ..ToolExtra::default() };
                let update = Box::new(ToolCallUpdate::new(chunk.tool_call_id));
                Ok(vec![Item::Tool(update, Box::new(extra))])
            }
            v2::SessionUpdate::TerminalUpdate(update) => {
                let output = match &update.output {
                    // A malformed member is absent; the others, such as the exit status, hold.
                    Patch::Set(output) => bytes(&output.data).ok(),
                    Patch::Clear => Some(Vec::new()),
                    Patch::Keep => None,
                };
                let replaced = output.is_some();
                Ok(terminal(update, output.unwrap_or_default(), replaced))
            }
            v2::SessionUpdate::TerminalOutputChunk(chunk) => {
                let append = bytes(&chunk.data)?;
                let update = Box::new(v2::TerminalUpdate::new(chunk.terminal_id));
                Ok(terminal(update, append, false))
            }
            v2::SessionUpdate::PlanUpdate(update) => Ok(plan(update).into_iter().map(Item::Update).collect()),
            #[cfg(feature = "unstable")]
            v2::SessionUpdate::PlanRemoved(removed) => one(removed.into()),
            v2::SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = convert::commands(update.available_commands);
                one(attache_wire::v1::AvailableCommandsUpdate::new(commands).meta(update.meta).into())
            }
            v2::SessionUpdate::ConfigOptionUpdate(update) => {
                let options = convert::options(update.config_options);
                one(attache_wire::v1::ConfigOptionUpdate::new(options).meta(update.meta).into())
            }
            v2::SessionUpdate::SessionInfoUpdate(update) => {
                let mut converted = SessionInfoUpdate::new();
                converted.title = update.title;
                converted.updated_at = update.updated_at;
                if !update.meta.is_keep() {
                    let mut stored = if child.is_empty() { self.meta.take() } else { None };
                    patch_meta(&mut stored, update.meta);
                    // Absent metadata would be unchanged.
                    converted.meta = stored.clone().or_else(|| Meta::from_json(Json::from_text("{}").ok()?));
                    if child.is_empty() {
                        self.meta = stored;
                    }
                }
                one(converted.into())
            }
            v2::SessionUpdate::UsageUpdate(update) => {
                let mut cost = if child.is_empty() { self.cost.take() } else { None };
                update.cost.apply(&mut cost);
                if child.is_empty() {
                    self.cost.clone_from(&cost);
                }
                one(UsageUpdate::new(update.used, update.size).cost(cost).meta(update.meta).into())
            }
            v2::SessionUpdate::Notice(notice) => one(notice.into()),
            v2::SessionUpdate::CompactionUpdate(update) => {
                one(same::<_, attache_wire::v1::CompactionUpdate>(&update)?.into())
            }
            v2::SessionUpdate::CompactionSummaryChunk(chunk) => {
                one(same::<_, attache_wire::v1::CompactionSummaryChunk>(&chunk)?.into())
            }
            #[cfg(feature = "unstable")]
            v2::SessionUpdate::SubagentUpdate(update) => {
                one(same::<_, attache_wire::v1::SubagentUpdate>(&update)?.into())
            }
            #[cfg(feature = "unstable")]
            v2::SessionUpdate::SessionMessage(message) => {
                one(same::<_, attache_wire::v1::SessionMessage>(&message)?.into())
            }
            #[cfg(feature = "unstable")]
            v2::SessionUpdate::SessionMessageChunk(chunk) => {
                one(same::<_, attache_wire::v1::SessionMessageChunk>(&chunk)?.into())
            }
            v2::SessionUpdate::Other(unknown) => one(SessionUpdate::Other(unknown)),
            _ => Ok(Vec::new()),
        }
    }

    fn piece(&mut self, child: &str, speaker: Speaker, chunk: v2::ContentChunk) -> Vec<Item> {
        self.chunk(child, speaker, chunk).map(Item::Update).into_iter().collect()
    }
}

fn terminal(update: Box<v2::TerminalUpdate>, appended: Vec<u8>, replaced: bool) -> Vec<Item> {
    let terminal = Arc::new(AgentTerminal::new(update.terminal_id.as_str().into()));
    let change = TerminalChange { terminal, appended, replaced, update: Some(update) };
    vec![Item::Event(Event::Terminal(Box::new(change)))]
}

fn spoken(speaker: Speaker, chunk: ContentChunk) -> SessionUpdate {
    match speaker {
        Speaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
        Speaker::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        Speaker::User => SessionUpdate::UserMessageChunk(chunk),
    }
}

/// A rare value with the same JSON in both versions.
fn same<T: Serialize, U: DeserializeOwned>(value: &T) -> Result<U, Reason> {
    let text = serde_json::to_string(value).map_err(|error| Cow::Owned(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| Cow::Owned(error.to_string()))
}

// V2-32
fn bytes(data: &str) -> Result<Vec<u8>, Reason> {
    STANDARD
        .decode(data)
        .map_err(|error| Cow::Owned(format!("the output of a terminal is not base64: {error}")))
}

/// A change of a tool call. A member that is cleared gets the value of a call without it.
pub(crate) fn tool_call(update: v2::ToolCallUpdate) -> (ToolCallUpdate, ToolExtra) {
    let mut converted = ToolCallUpdate::new(update.tool_call_id);
    let mut extra = ToolExtra { name: update.name, ..ToolExtra::default() };
    converted.title = member(update.title, String::new);
    converted.kind = member(update.kind, || v2::ToolKind::Other).map(|kind| convert::tool_kind(&kind));
    extra.status = member(update.status, || v2::ToolCallStatus::Pending);
    // A status that this crate does not know is none of an ended call.
    let status = |status| tool_status::to_v1(status).unwrap_or(ToolCallStatus::InProgress);
    converted.status = extra.status.as_ref().map(status);
    let content = member(update.content, Vec::new);
    extra.edits = content.as_deref().map(edits);
    converted.content = content.map(|content| content.into_iter().flat_map(tool_content).collect());
    let locations = member(update.locations, Vec::new);
    converted.locations = locations.map(|locations| locations.into_iter().map(location).collect());
    converted.raw_input = json(update.raw_input);
    converted.raw_output = json(update.raw_output);
    let capabilities = member(update.capabilities, v2::ToolCallCapabilities::new);
    extra.cancellable = capabilities.map(|capabilities| capabilities.cancel.is_some());
    extra.meta = update.meta;
    (converted, extra)
}

fn edits(content: &[v2::ToolCallContent]) -> Vec<Edit> {
    let of_diff = |content: &v2::ToolCallContent| match content {
        v2::ToolCallContent::Diff(diff) => Edit::from_v2(diff),
        _ => Vec::new(),
    };
    content.iter().flat_map(of_diff).collect()
}

/// The value of a member after a change; `None` if it stays.
fn member<T>(patch: Patch<T>, cleared: impl FnOnce() -> T) -> Option<T> {
    match patch {
        Patch::Keep => None,
        Patch::Clear => Some(cleared()),
        Patch::Set(value) => Some(value),
    }
}

fn json(patch: Patch<Json>) -> Option<Json> {
    match patch {
        Patch::Keep => None,
        Patch::Clear => Json::from_text("null").ok(),
        Patch::Set(value) => Some(value),
    }
}

fn location(location: v2::ToolCallLocation) -> ToolCallLocation {
    ToolCallLocation::new(location.path).line(location.line).meta(location.meta)
}

/// Content of a tool call. Content of an unknown type is left out.
fn tool_content(content: v2::ToolCallContent) -> Vec<ToolCallContent> {
    match content {
        v2::ToolCallContent::Content(content) => {
            let block = convert::content(content.content);
            let convert = |block| ToolCallContent::Content(Content::new(block).meta(content.meta));
            block.map(convert).into_iter().collect()
        }
        v2::ToolCallContent::Diff(diff) => diff::contents(diff),
        v2::ToolCallContent::Terminal(terminal) => {
            vec![ToolCallContent::Terminal(Terminal::new(terminal.terminal_id.as_str()).meta(terminal.meta))]
        }
        _ => Vec::new(),
    }
}

/// A plan. Version 1 has no word for an entry that was given up; it counts as completed.
#[cfg(feature = "unstable")]
fn plan(update: v2::PlanUpdate) -> Option<SessionUpdate> {
    use attache_wire::v1::{PlanItems, PlanUpdate, PlanUpdateContent};
    let plan: PlanUpdateContent = match update.plan {
        v2::PlanUpdateContent::Items(items) => {
            PlanItems::new(items.plan_id.as_str(), entries(items.entries)).meta(items.meta).into()
        }
        plan => same(&plan).ok()?,
    };
    Some(PlanUpdate::new(plan).meta(update.meta).into())
}

/// A plan. Without unstable types there is one plan of entries.
#[cfg(not(feature = "unstable"))]
fn plan(update: v2::PlanUpdate) -> Option<SessionUpdate> {
    match update.plan {
        v2::PlanUpdateContent::Items(items) => {
            Some(attache_wire::v1::Plan::new(entries(items.entries)).meta(update.meta).into())
        }
        _ => None,
    }
}

fn entries(entries: Vec<v2::PlanEntry>) -> Vec<PlanEntry> {
    let convert = |entry: v2::PlanEntry| {
        let priority = match entry.priority {
            v2::PlanEntryPriority::High => PlanEntryPriority::High,
            v2::PlanEntryPriority::Low => PlanEntryPriority::Low,
            _ => PlanEntryPriority::Medium,
        };
        let meta = match entry.status {
            v2::PlanEntryStatus::Cancelled => plan_status::cancelled(entry.meta),
            _ => entry.meta,
        };
        PlanEntry::new(entry.content, priority, plan_status::to_v1(&entry.status)).meta(meta)
    };
    entries.into_iter().map(convert).collect()
}
