//! Session updates in the form of version 2, written straight from the model.

use attache_wire::v1::{
    ContentBlock, ContentChunk, MessageId, Plan, PlanEntry, SessionId, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallUpdate,
};
use attache_wire::{Meta, v2};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::super::client::TextBlock;
use super::convert;
use crate::Edit;
use crate::id::unique_id;
use crate::plan_status::plan_status;

/// The plan of agents that have one plan.
pub(crate) const PLAN: &str = "plan";

/// The ids of the messages of one session. Version 2 requires an id per message; chunks without one
/// belong to the message of the chunk before, unless its kind differs or a tool call stands
/// between.
#[derive(Debug, Default)]
pub(crate) struct MessageIds {
    run: Option<(&'static str, MessageId)>,
    /// The id of the next message without one; by default it is drawn.
    next: Option<MessageId>,
}

impl MessageIds {
    /// Returns the message of a chunk.
    pub(crate) fn chunk(&mut self, kind: &'static str, named: Option<&MessageId>) -> MessageId {
        let id = match (named, self.run.take()) {
            (Some(id), _) => id.clone(),
            (None, Some((last, id))) if last == kind => id,
            (None, _) => self.next.take().unwrap_or_else(|| unique_id("msg")),
        };
        self.run = Some((kind, id.clone()));
        id
    }

    /// Sets the id of the next message without one.
    pub(super) fn name_next(&mut self, id: MessageId) {
        self.next = Some(id);
    }

    /// Begins a message, to which the following chunks of its kind belong.
    pub(super) fn begin(&mut self, kind: &'static str, id: MessageId) {
        self.run = Some((kind, id));
    }

    /// The present message.
    pub(super) fn present(&self) -> Option<&MessageId> {
        self.run.as_ref().map(|(_, id)| id)
    }

    /// Ends the present message.
    pub(crate) fn end_message(&mut self) {
        self.run = None;
    }
}

/// Writes an update in the form of version 2. `current_mode_update` has none: the caller sends the
/// options instead.
pub(crate) fn update<S: Serializer>(
    update: &SessionUpdate,
    ids: &mut MessageIds,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if !matches!(
        update,
        SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::UsageUpdate(_)
    ) {
        ids.end_message();
    }
    match update {
        SessionUpdate::UserMessageChunk(piece) => chunk("user_message_chunk", piece, ids, serializer),
        SessionUpdate::AgentMessageChunk(piece) => chunk("agent_message_chunk", piece, ids, serializer),
        SessionUpdate::AgentThoughtChunk(piece) => chunk("agent_thought_chunk", piece, ids, serializer),
        SessionUpdate::ToolCall(call) => tool_call(call, serializer),
        SessionUpdate::ToolCallUpdate(change) => tool_call_update(change, serializer),
        SessionUpdate::Plan(plan) => plan_items(&PLAN.into(), plan, serializer),
        SessionUpdate::AvailableCommandsUpdate(update) => {
            let commands = convert::commands(&update.available_commands);
            typed(v2::AvailableCommandsUpdate::new(commands).meta(update.meta.clone()), serializer)
        }
        SessionUpdate::ConfigOptionUpdate(update) => {
            let options = convert::options(&update.config_options);
            typed(v2::ConfigOptionUpdate::new(options).meta(update.meta.clone()), serializer)
        }
        // The other kinds are written alike in both versions.
        other => other.serialize(serializer),
    }
}

fn typed<S: Serializer>(update: impl Into<v2::SessionUpdate>, serializer: S) -> Result<S::Ok, S::Error> {
    update.into().serialize(serializer)
}

fn chunk<S: Serializer>(
    kind: &'static str,
    piece: &ContentChunk,
    ids: &mut MessageIds,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let id = ids.chunk(kind, piece.message_id.as_ref());
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", kind)?;
    map.serialize_entry("messageId", &id)?;
    map.serialize_entry("content", &piece.content)?;
    meta(&mut map, piece.meta.as_ref())?;
    map.end()
}

/// Writes a chunk of text.
pub(crate) fn text<S: Serializer>(
    kind: &'static str,
    text: &str,
    ids: &mut MessageIds,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let id = ids.chunk(kind, None);
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("sessionUpdate", kind)?;
    map.serialize_entry("messageId", &id)?;
    map.serialize_entry("content", &TextBlock(text))?;
    map.end()
}

/// A new tool call replaces one of the same id, as in a replay, so absent members are `null`.
fn tool_call<S: Serializer>(call: &ToolCall, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "tool_call_update")?;
    map.serialize_entry("toolCallId", &call.tool_call_id)?;
    map.serialize_entry("title", &call.title)?;
    map.serialize_entry("name", &call.name)?;
    map.serialize_entry("kind", &call.kind)?;
    map.serialize_entry("status", &call.status)?;
    map.serialize_entry("content", &call.content.as_deref().map(Contents))?;
    map.serialize_entry("locations", &call.locations)?;
    map.serialize_entry("rawInput", &call.raw_input)?;
    map.serialize_entry("rawOutput", &call.raw_output)?;
    meta(&mut map, call.meta.as_ref())?;
    map.end()
}

/// A changed tool call; absent members are unchanged in both versions.
fn tool_call_update<S: Serializer>(change: &ToolCallUpdate, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "tool_call_update")?;
    tool_call_members(change, &mut map)?;
    map.end()
}

/// The members of a tool call that are there.
pub(super) fn tool_call_members<M: SerializeMap>(
    change: &ToolCallUpdate,
    map: &mut M,
) -> Result<(), M::Error> {
    fn put<M: SerializeMap, T: Serialize>(
        map: &mut M,
        name: &str,
        value: &Option<T>,
    ) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| map.serialize_entry(name, value))
    }
    map.serialize_entry("toolCallId", &change.tool_call_id)?;
    put(map, "title", &change.title)?;
    put(map, "name", &change.name)?;
    put(map, "kind", &change.kind)?;
    put(map, "status", &change.status)?;
    put(map, "content", &change.content.as_deref().map(Contents))?;
    put(map, "locations", &change.locations)?;
    put(map, "rawInput", &change.raw_input)?;
    put(map, "rawOutput", &change.raw_output)?;
    meta(map, change.meta.as_ref())
}

/// The content of a tool call: diffs have another form in version 2.
struct Contents<'a>(&'a [ToolCallContent]);

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for content in self.0 {
            match content {
                ToolCallContent::Diff(diff) => {
                    list.serialize_element(&v2::ToolCallContent::Diff(Edit::from_v1(diff).to_v2()))?;
                }
                other => list.serialize_element(other)?,
            }
        }
        list.end()
    }
}

/// Writes the entries of one plan.
pub(crate) fn plan_items<S: Serializer>(
    id: &v2::PlanId,
    plan: &Plan,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Items<'a>(&'a v2::PlanId, &'a [PlanEntry]);
    impl Serialize for Items<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(3))?;
            map.serialize_entry("type", "items")?;
            map.serialize_entry("planId", self.0)?;
            map.serialize_entry("entries", &Entries(self.1))?;
            map.end()
        }
    }
    struct Entries<'a>(&'a [PlanEntry]);
    impl Serialize for Entries<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.0.iter().map(Entry))
        }
    }
    struct Entry<'a>(&'a PlanEntry);
    impl Serialize for Entry<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Entry(entry) = self;
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("content", &entry.content)?;
            map.serialize_entry("priority", &entry.priority)?;
            map.serialize_entry("status", &plan_status(entry))?;
            meta(&mut map, entry.meta.as_ref())?;
            map.end()
        }
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "plan_update")?;
    map.serialize_entry("plan", &Items(id, &plan.entries))?;
    meta(&mut map, plan.meta.as_ref())?;
    map.end()
}

/// Writes content of a message with this id: a piece of it, or all of it.
pub(crate) fn message<S: Serializer>(
    kind: &str,
    id: &MessageId,
    content: &(impl Serialize + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("sessionUpdate", kind)?;
    map.serialize_entry("messageId", id)?;
    map.serialize_entry("content", content)?;
    map.end()
}

/// Writes output of a terminal.
// V2-32
pub(crate) fn terminal_chunk<S: Serializer>(
    id: &v2::TerminalId,
    bytes: &[u8],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Base64<'a>(&'a [u8]);
    impl Serialize for Base64<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
        }
    }
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("sessionUpdate", "terminal_output_chunk")?;
    map.serialize_entry("terminalId", id)?;
    map.serialize_entry("data", &Base64(bytes))?;
    map.end()
}

pub(super) fn meta<M: SerializeMap>(map: &mut M, meta: Option<&Meta>) -> Result<(), M::Error> {
    meta.map_or(Ok(()), |meta| map.serialize_entry("_meta", meta))
}

/// The blocks of a prompt as a message of the user.
pub(crate) struct UserMessage<'a> {
    pub(crate) id: &'a MessageId,
    pub(crate) content: &'a [ContentBlock],
}

impl Serialize for UserMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        message("user_message", self.id, self.content, serializer)
    }
}

/// `session/update` with an update that is written as it is.
pub(crate) struct Params<'a, U> {
    pub(crate) session: &'a SessionId,
    pub(crate) update: U,
}

impl<U: Serialize> Serialize for Params<'_, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionId", self.session)?;
        map.serialize_entry("update", &self.update)?;
        map.end()
    }
}
