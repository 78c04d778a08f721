//! Tool calls as both versions see them: their state, changes, and the updates that report them.

use std::collections::BTreeMap;

use attache_wire::v1::{SessionUpdate, ToolCall, ToolCallId, ToolCallLocation, ToolCallUpdate, ToolKind};
use attache_wire::v2::ToolCallStatus as ToolStatus;
use attache_wire::{Json, Meta, Patch};
use serde::ser::{Serialize, Serializer};

use super::client::Recordable;
use super::content::{self, ToolContent};
use super::v2::{self, MessageIds};
use crate::tool_status;

/// A change of a tool call. Members that are kept stay as they are.
///
/// Version 1 cannot clear: cleared lists are empty there, and other cleared members stay.
///
/// ```
/// use attache::agent::{Tool, ToolChange, ToolStatus};
/// use attache::{Json, Patch};
///
/// async fn pause(tool: &Tool) -> attache::Result<()> {
///     let mut change = ToolChange::new().status(ToolStatus::Paused).meta_key("example.org/retry", Json::new(&3)?);
///     change.raw_output = Patch::Clear;
///     tool.update(change).await
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolChange {
    /// The title to show.
    pub title: Patch<String>,
    /// The name by which the model calls the tool.
    pub name: Patch<String>,
    /// The kind of tool.
    pub kind: Patch<ToolKind>,
    /// The status.
    pub status: Option<ToolStatus>,
    /// The whole content.
    pub content: Patch<Vec<ToolContent>>,
    /// All files that the tool works on.
    pub locations: Patch<Vec<ToolCallLocation>>,
    /// The input: any JSON.
    pub raw_input: Patch<Json>,
    /// The output: any JSON.
    pub raw_output: Patch<Json>,
    /// `_meta`, patched by key: `null` removes a key, and other values replace it. Version 1 gets
    /// the whole `_meta`.
    pub meta: Patch<Meta>,
}

impl ToolChange {
    /// A change of nothing.
    pub fn new() -> Self {
        ToolChange::default()
    }

    /// Sets the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Patch::Set(title.into());
        self
    }

    /// Sets the name by which the model calls the tool.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Patch::Set(name.into());
        self
    }

    /// Sets the kind.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kind = Patch::Set(kind);
        self
    }

    /// Sets the status. Version 1 shows a paused call as running and a cancelled one as failed.
    pub fn status(mut self, status: ToolStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Replaces the content.
    pub fn content(mut self, content: impl IntoIterator<Item = ToolContent>) -> Self {
        self.content = Patch::Set(content.into_iter().collect());
        self
    }

    /// Replaces the locations.
    pub fn locations(mut self, locations: Vec<ToolCallLocation>) -> Self {
        self.locations = Patch::Set(locations);
        self
    }

    /// Sets the input.
    pub fn raw_input(mut self, input: impl Into<Json>) -> Self {
        self.raw_input = Patch::Set(input.into());
        self
    }

    /// Sets the output.
    pub fn raw_output(mut self, output: impl Into<Json>) -> Self {
        self.raw_output = Patch::Set(output.into());
        self
    }

    /// Changes one key of `_meta`; `null` removes it.
    // V2-18
    pub fn meta_key(mut self, key: &str, value: impl Into<Json>) -> Self {
        let mut members: BTreeMap<String, Json> = match &self.meta {
            Patch::Set(meta) => meta.as_json().parse().unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        members.insert(key.to_owned(), value.into());
        if let Ok(meta) = Meta::new(&members) {
            self.meta = Patch::Set(meta);
        }
        self
    }

    /// The change in the form of version 1, such as for a log. `_meta` is the patch.
    pub fn to_v1(&self, id: impl Into<ToolCallId>) -> ToolCallUpdate {
        ToolUpdate { id: &id.into(), change: self, meta: set(&self.meta), unrecorded: None }.to_v1()
    }
}

fn set<T>(patch: &Patch<T>) -> Option<&T> {
    match patch {
        Patch::Set(value) => Some(value),
        _ => None,
    }
}

impl From<ToolCallUpdate> for ToolChange {
    fn from(update: ToolCallUpdate) -> Self {
        fn patch<T>(value: Option<T>) -> Patch<T> {
            value.map_or(Patch::Keep, Patch::Set)
        }
        ToolChange {
            title: patch(update.title),
            name: patch(update.name),
            kind: patch(update.kind),
            status: update.status.map(tool_status::from_v1),
            content: patch(update.content.map(|items| items.into_iter().map(ToolContent::from).collect())),
            locations: patch(update.locations),
            raw_input: patch(update.raw_input),
            raw_output: patch(update.raw_output),
            meta: patch(update.meta),
        }
    }
}

/// A tool call as the client knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolState {
    pub(super) title: String,
    pub(super) name: Option<String>,
    pub(super) kind: Option<ToolKind>,
    /// Pending if there is none.
    pub(super) status: Option<ToolStatus>,
    pub(super) content: Option<Vec<ToolContent>>,
    pub(super) locations: Option<Vec<ToolCallLocation>>,
    pub(super) raw_input: Option<Json>,
    pub(super) raw_output: Option<Json>,
    pub(super) meta: Option<Meta>,
    /// Whether the client can cancel the call alone.
    pub(super) cancellable: bool,
    /// Whether content was appended that no recorded update holds.
    pub(super) unrecorded: bool,
}

impl ToolState {
    // TOOL-05, TOOL-06, V2-17: members of a change replace the known ones.
    pub(super) fn apply(&mut self, change: &ToolChange) {
        fn put<T: Clone>(known: &mut Option<T>, patch: &Patch<T>) {
            match patch {
                Patch::Keep => {}
                Patch::Clear => *known = None,
                Patch::Set(new) => *known = Some(new.clone()),
            }
        }
        match &change.title {
            Patch::Keep => {}
            Patch::Clear => self.title.clear(),
            Patch::Set(title) => self.title.clone_from(title),
        }
        put(&mut self.name, &change.name);
        put(&mut self.kind, &change.kind);
        if change.status.is_some() {
            self.status.clone_from(&change.status);
        }
        put(&mut self.content, &change.content);
        put(&mut self.locations, &change.locations);
        put(&mut self.raw_input, &change.raw_input);
        put(&mut self.raw_output, &change.raw_output);
        if !change.meta.is_keep() {
            change.meta.clone().apply_by_key(&mut self.meta);
        }
        self.unrecorded &= change.content.is_keep();
    }

    pub(super) fn append(&mut self, item: ToolContent) {
        let content = self.content.get_or_insert_default();
        content.push(item);
        content::keep_tail(content);
        self.unrecorded = true;
    }

    /// The call in version 1.
    pub(super) fn into_v1(self, id: ToolCallId) -> ToolCall {
        let mut call = ToolCall::new(id, self.title);
        call.status = tool_status::to_v1(self.status.as_ref().unwrap_or(&ToolStatus::Pending));
        call.name = self.name;
        call.kind = self.kind;
        call.content = self.content.as_deref().map(content::to_v1);
        call.locations = self.locations;
        call.raw_input = self.raw_input;
        call.raw_output = self.raw_output;
        call.meta = self.meta;
        call
    }
}

/// A new call.
pub(super) struct ToolStart<'a> {
    pub(super) id: &'a ToolCallId,
    pub(super) state: &'a ToolState,
}

impl Recordable for ToolStart<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        Some(SessionUpdate::ToolCall(Box::new(self.state.clone().into_v1(self.id.clone()))))
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        ids.end_message();
        v2::tool_start(self.id, self.state, serializer)
    }
}

impl Serialize for ToolStart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_update().serialize(serializer)
    }
}

/// A changed call.
pub(super) struct ToolUpdate<'a> {
    pub(super) id: &'a ToolCallId,
    pub(super) change: &'a ToolChange,
    /// The whole `_meta` if it changed.
    pub(super) meta: Option<&'a Meta>,
    /// Content that a recorded update has to hold although the client knows it.
    pub(super) unrecorded: Option<Vec<ToolContent>>,
}

impl ToolUpdate<'_> {
    fn to_v1(&self) -> ToolCallUpdate {
        /// Lists can be cleared by an empty one.
        fn list<T, U>(patch: &Patch<Vec<T>>, items: impl Fn(&[T]) -> Vec<U>) -> Option<Vec<U>> {
            match patch {
                Patch::Keep => None,
                Patch::Clear => Some(Vec::new()),
                Patch::Set(list) => Some(items(list)),
            }
        }
        let mut update = ToolCallUpdate::new(self.id.clone());
        update.title = set(&self.change.title).cloned();
        update.name = set(&self.change.name).cloned();
        update.kind = set(&self.change.kind).copied();
        update.status = self.change.status.as_ref().and_then(tool_status::to_v1);
        update.content = list(&self.change.content, content::to_v1);
        update.locations = list(&self.change.locations, <[_]>::to_vec);
        update.raw_input = set(&self.change.raw_input).cloned();
        update.raw_output = set(&self.change.raw_output).cloned();
        update.meta = self.meta.cloned();
        update
    }
}

impl Recordable for ToolUpdate<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        let mut update = self.to_v1();
        if let Some(content) = &self.unrecorded {
            update.content.get_or_insert_with(|| content::to_v1(content));
        }
        Some(SessionUpdate::ToolCallUpdate(Box::new(update)))
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        ids.end_message();
        v2::tool_update(self.id, self.change, serializer)
    }
}

impl Serialize for ToolUpdate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SessionUpdate::ToolCallUpdate(Box::new(self.to_v1())).serialize(serializer)
    }
}

/// Content that is appended. Version 1 gets the whole content, which is recorded by a later update.
pub(super) struct ToolAppend<'a> {
    pub(super) id: &'a ToolCallId,
    pub(super) item: &'a ToolContent,
    /// The whole content, for version 1.
    pub(super) content: Vec<ToolContent>,
}

impl Recordable for ToolAppend<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        None
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        ids.end_message();
        v2::tool_chunk(self.id, self.item, serializer)
    }
}

impl Serialize for ToolAppend<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let update = ToolCallUpdate::new(self.id.clone()).content(content::to_v1(&self.content));
        SessionUpdate::ToolCallUpdate(Box::new(update)).serialize(serializer)
    }
}
