//! Session updates in the form of version 2, written straight from the model.

use attache_wire::v1::{
    ContentBlock, ContentChunk, MessageId, Plan, PlanEntry, RequestPermissionRequest, SessionId,
    SessionUpdate, ToolCall, ToolCallContent, ToolCallUpdate,
};
use attache_wire::{Meta, v2};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::super::client::TextBlock;
use super::convert;
use crate::Edit;
use crate::id::unique_id;

/// The plan of agents that have one plan.
const PLAN: &str = "plan";

/// The ids of the messages of one session. Version 2 requires an id per message; chunks without one belong to the message
/// of the chunk before, unless its kind differs or a tool call stands between.
#[derive(Debug, Default)]
pub(crate) struct MessageIds {
    run: Option<(&'static str, MessageId)>,
}

impl MessageIds {
    /// Returns the message of a chunk.
    pub(crate) fn chunk(&mut self, kind: &'static str, named: Option<&MessageId>) -> MessageId {
        let id = match (named, self.run.take()) {
            (Some(id), _) => id.clone(),
            (None, Some((last, id))) if last == kind => id,
            (None, _) => unique_id("msg"),
        };
        self.run = Some((kind, id.clone()));
        id
    }

    /// Ends the present message.
    pub(crate) fn end_message(&mut self) {
        self.run = None;
    }
}

/// Writes an update in the form of version 2. `current_mode_update` has none: the caller sends the options instead.
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
        SessionUpdate::ToolCallUpdate(change) => tool_call_update(change, None, serializer),
        SessionUpdate::Plan(plan) => plan_items(plan, serializer),
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

/// A changed tool call, with a status that version 1 may not have.
fn tool_call_update<S: Serializer>(
    change: &ToolCallUpdate,
    status: Option<&v2::ToolCallStatus>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "tool_call_update")?;
    tool_call_members(change, &mut map, status)?;
    map.end()
}

/// The end of a call that was cancelled with its turn.
pub(crate) fn cancelled_tool_call<S: Serializer>(
    change: &ToolCallUpdate,
    ids: &mut MessageIds,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    ids.end_message();
    tool_call_update(change, Some(&v2::ToolCallStatus::Cancelled), serializer)
}

/// The members that changed; absent ones are unchanged in both versions.
fn tool_call_members<M: SerializeMap>(
    change: &ToolCallUpdate,
    map: &mut M,
    status: Option<&v2::ToolCallStatus>,
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
    match status {
        Some(status) => map.serialize_entry("status", status)?,
        None => put(map, "status", &change.status)?,
    }
    put(map, "content", &change.content.as_deref().map(Contents))?;
    put(map, "locations", &change.locations)?;
    put(map, "rawInput", &change.raw_input)?;
    put(map, "rawOutput", &change.raw_output)?;
    meta(map, change.meta.as_ref())
}

/// `session/request_permission`; its title is that of the tool call.
// V2-24
pub(crate) struct PermissionRequest<'a>(pub(crate) &'a RequestPermissionRequest);

impl Serialize for PermissionRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct ToolCall<'a>(&'a ToolCallUpdate);
        impl Serialize for ToolCall<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                tool_call_members(self.0, &mut map, None)?;
                map.end()
            }
        }
        struct Subject<'a>(&'a ToolCallUpdate);
        impl Serialize for Subject<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "tool_call")?;
                map.serialize_entry("toolCall", &ToolCall(self.0))?;
                map.end()
            }
        }
        let RequestPermissionRequest { session_id, tool_call, options, .. } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sessionId", session_id)?;
        map.serialize_entry("title", tool_call.title.as_deref().unwrap_or("Permission"))?;
        map.serialize_entry("subject", &Subject(tool_call))?;
        map.serialize_entry("options", options)?;
        meta(&mut map, self.0.meta.as_ref())?;
        map.end()
    }
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

fn plan_items<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
    struct Items<'a>(&'a [PlanEntry]);
    impl Serialize for Items<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(3))?;
            map.serialize_entry("type", "items")?;
            map.serialize_entry("planId", PLAN)?;
            map.serialize_entry("entries", self.0)?;
            map.end()
        }
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "plan_update")?;
    map.serialize_entry("plan", &Items(&plan.entries))?;
    meta(&mut map, plan.meta.as_ref())?;
    map.end()
}

fn meta<M: SerializeMap>(map: &mut M, meta: Option<&Meta>) -> Result<(), M::Error> {
    meta.map_or(Ok(()), |meta| map.serialize_entry("_meta", meta))
}

/// The blocks of a prompt as a message of the user.
pub(crate) struct UserMessage<'a> {
    pub(crate) id: &'a MessageId,
    pub(crate) content: &'a [ContentBlock],
}

impl Serialize for UserMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("sessionUpdate", "user_message")?;
        map.serialize_entry("messageId", self.id)?;
        map.serialize_entry("content", self.content)?;
        map.end()
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
