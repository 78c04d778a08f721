//! Tool calls and permission requests in the form of version 2.

use attache_wire::v1::{PermissionOption, SessionId, ToolCallId};
use attache_wire::{Patch, v2};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::super::ask::Subject;
use super::super::content::{Kind, ToolContent};
use super::super::tool_state::{ToolChange, ToolState};
use super::encode::meta;

/// A new tool call replaces one of the same id, as in a replay, so absent members are `null`.
pub(crate) fn tool_start<S: Serializer>(
    id: &ToolCallId,
    state: &ToolState,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "tool_call_update")?;
    map.serialize_entry("toolCallId", id)?;
    map.serialize_entry("title", &state.title)?;
    map.serialize_entry("name", &state.name)?;
    map.serialize_entry("kind", &state.kind)?;
    map.serialize_entry("status", status(state))?;
    map.serialize_entry("content", &state.content.as_deref().map(Contents))?;
    map.serialize_entry("locations", &state.locations)?;
    map.serialize_entry("rawInput", &state.raw_input)?;
    map.serialize_entry("rawOutput", &state.raw_output)?;
    // V2-30
    if state.cancellable {
        let cancel = v2::ToolCallCapabilities::new().cancel(v2::ToolCallCancelCapabilities::new());
        map.serialize_entry("capabilities", &cancel)?;
    }
    meta(&mut map, state.meta.as_ref())?;
    map.end()
}

/// A changed tool call.
// V2-17
pub(crate) fn tool_update<S: Serializer>(
    id: &ToolCallId,
    change: &ToolChange,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    fn put<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, patch: &Patch<T>) -> Result<(), M::Error> {
        match patch {
            Patch::Keep => Ok(()),
            Patch::Clear => map.serialize_entry(name, &()),
            Patch::Set(value) => map.serialize_entry(name, value),
        }
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("sessionUpdate", "tool_call_update")?;
    map.serialize_entry("toolCallId", id)?;
    put(&mut map, "title", &change.title)?;
    put(&mut map, "name", &change.name)?;
    put(&mut map, "kind", &change.kind)?;
    if let Some(status) = &change.status {
        map.serialize_entry("status", status)?;
    }
    match &change.content {
        Patch::Set(content) => map.serialize_entry("content", &Contents(content))?,
        other => put(&mut map, "content", &clear(other))?,
    }
    put(&mut map, "locations", &change.locations)?;
    put(&mut map, "rawInput", &change.raw_input)?;
    put(&mut map, "rawOutput", &change.raw_output)?;
    // V2-18
    put(&mut map, "_meta", &change.meta)?;
    map.end()
}

fn clear<T>(patch: &Patch<T>) -> Patch<()> {
    if patch.is_keep() { Patch::Keep } else { Patch::Clear }
}

/// Content that is appended to a tool call.
pub(crate) fn tool_chunk<S: Serializer>(
    id: &ToolCallId,
    item: &ToolContent,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("sessionUpdate", "tool_call_content_chunk")?;
    map.serialize_entry("toolCallId", id)?;
    map.serialize_entry("content", &Item(item))?;
    map.end()
}

fn status(state: &ToolState) -> &v2::ToolCallStatus {
    state.status.as_ref().unwrap_or(&v2::ToolCallStatus::Pending)
}

struct Contents<'a>(&'a [ToolContent]);

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|item| list.serialize_element(&Item(item)))?;
        list.end()
    }
}

struct Item<'a>(&'a ToolContent);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.0 {
            Kind::Same(content) => content.serialize(serializer),
            Kind::Edit(edit) => v2::ToolCallContent::Diff(edit.to_v2()).serialize(serializer),
            Kind::Terminal(terminal) => {
                let terminal = v2::Terminal::new(terminal.id.clone());
                v2::ToolCallContent::Terminal(terminal).serialize(serializer)
            }
        }
    }
}

/// `session/request_permission`.
// V2-24
pub(crate) struct PermissionRequest<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) title: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) subject: &'a Subject,
    pub(crate) options: &'a [PermissionOption],
}

impl Serialize for PermissionRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sessionId", self.session)?;
        map.serialize_entry("title", self.title)?;
        if let Some(description) = self.description {
            map.serialize_entry("description", description)?;
        }
        match self.subject {
            Subject::None => {}
            Subject::Tool(id, state) => map.serialize_entry("subject", &ToolSubject(id, state))?,
            Subject::Command { command, cwd, tool } => {
                let subject = v2::CommandPermissionSubject::new(command.clone(), cwd.clone());
                let subject = subject.tool_call_id(tool.as_ref().map(|(id, _)| id.clone()));
                map.serialize_entry("subject", &v2::RequestPermissionSubject::Command(subject))?;
            }
        }
        map.serialize_entry("options", self.options)?;
        map.end()
    }
}

struct ToolSubject<'a>(&'a ToolCallId, &'a ToolState);

impl Serialize for ToolSubject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Members<'a>(&'a ToolCallId, &'a ToolState);
        impl Serialize for Members<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                fn put<M: SerializeMap, T: Serialize>(
                    map: &mut M,
                    name: &str,
                    value: Option<T>,
                ) -> Result<(), M::Error> {
                    value.map_or(Ok(()), |value| map.serialize_entry(name, &value))
                }
                let Members(id, state) = self;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("toolCallId", id)?;
                map.serialize_entry("title", &state.title)?;
                put(&mut map, "name", state.name.as_ref())?;
                put(&mut map, "kind", state.kind.as_ref())?;
                map.serialize_entry("status", status(state))?;
                put(&mut map, "content", state.content.as_deref().map(Contents))?;
                put(&mut map, "locations", state.locations.as_ref())?;
                put(&mut map, "rawInput", state.raw_input.as_ref())?;
                put(&mut map, "rawOutput", state.raw_output.as_ref())?;
                meta(&mut map, state.meta.as_ref())?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "tool_call")?;
        map.serialize_entry("toolCall", &Members(self.0, self.1))?;
        map.end()
    }
}
