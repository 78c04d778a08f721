//! What is known about a session: updates are folded into it and turned into events.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use attache_wire::v1::{
    AvailableCommand, ContentBlock, ContentChunk, SessionConfigOption, SessionModeState, SessionModelState,
    SessionUpdate, ToolCallId, ToolCallUpdate, UsageUpdate,
};

use super::event::{ContentPiece, Event, Speaker, TextChunk, ToolCallChange};

/// Changes of tool calls that nobody has announced yet, and their bytes as JSON; more than this are forgotten.
const ORPHANS: usize = 64;
const ORPHAN_BYTES: usize = 1 << 20;
/// Announced calls that are remembered; beyond that, all are forgotten and count as new.
const KNOWN: usize = 1 << 20;

/// The answers of `session/new`, `load`, `resume` and `fork`, as far as they are the same.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    pub(crate) modes: Option<SessionModeState>,
    pub(crate) models: Option<SessionModelState>,
    pub(crate) config_options: Option<Vec<SessionConfigOption>>,
}

/// The state of one session.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) modes: Option<SessionModeState>,
    pub(crate) models: Option<SessionModelState>,
    pub(crate) config_options: Arc<[SessionConfigOption]>,
    pub(crate) commands: Arc<[AvailableCommand]>,
    pub(crate) title: Option<String>,
    pub(crate) updated_at: Option<String>,
    pub(crate) usage: Option<UsageUpdate>,
    tools: Tools,
}

impl Default for State {
    fn default() -> Self {
        State {
            modes: None,
            models: None,
            config_options: Arc::new([]),
            commands: Arc::new([]),
            title: None,
            updated_at: None,
            usage: None,
            tools: Tools::default(),
        }
    }
}

impl State {
    /// Takes over what a session answer says. An update that came before the answer is older than it, so the answer
    /// wins; what the answer does not mention stays.
    pub(crate) fn offer(&mut self, offers: Offers) {
        if offers.modes.is_some() {
            self.modes = offers.modes;
        }
        if offers.models.is_some() {
            self.models = offers.models;
        }
        if let Some(options) = offers.config_options {
            self.config_options = options.into();
        }
    }

    /// Takes in one update. `None` if there is nothing to tell.
    pub(crate) fn fold(&mut self, update: SessionUpdate) -> Option<Event> {
        Some(match update {
            SessionUpdate::AgentMessageChunk(chunk) => piece(Speaker::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => piece(Speaker::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) => piece(Speaker::User, chunk),
            SessionUpdate::ToolCall(call) => Event::ToolCall(self.tools.announced((*call).into())),
            SessionUpdate::ToolCallUpdate(update) => Event::ToolCall(self.tools.changed(update)?),
            SessionUpdate::Plan(plan) => Event::Plan(plan),
            SessionUpdate::PlanUpdate(update) => Event::PlanUpdate(Box::new(update)),
            SessionUpdate::PlanRemoved(removed) => Event::PlanRemoved(removed),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.commands = update.available_commands.into();
                Event::Commands(self.commands.clone())
            }
            SessionUpdate::CurrentModeUpdate(update) => {
                if let Some(modes) = &mut self.modes {
                    modes.current_mode_id = update.current_mode_id.clone();
                }
                Event::Mode(update.current_mode_id)
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.config_options = update.config_options.into();
                Event::ConfigOptions(self.config_options.clone())
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                // LIST-12: absent leaves, null clears.
                update.title.clone().apply(&mut self.title);
                update.updated_at.clone().apply(&mut self.updated_at);
                Event::Info(Box::new(update))
            }
            SessionUpdate::UsageUpdate(update) => {
                self.usage = Some(update.clone());
                Event::Usage(Box::new(update))
            }
            SessionUpdate::Notice(notice) => Event::Notice(Box::new(notice)),
            SessionUpdate::CompactionUpdate(update) => Event::Compaction(update),
            SessionUpdate::CompactionSummaryChunk(chunk) => Event::CompactionSummary(Box::new(chunk)),
            SessionUpdate::SubagentUpdate(update) => Event::Subagent(update),
            SessionUpdate::SessionMessage(message) => Event::SessionMessage(message),
            SessionUpdate::SessionMessageChunk(chunk) => Event::SessionMessageChunk(Box::new(chunk)),
            // PROMPT-16: kept and shown to whoever wants to know, never fatal.
            SessionUpdate::Other(unknown) => Event::Other(unknown),
            _ => return None,
        })
    }

    /// A permission request speaks about a tool call, and some agents announce the call in no other way.
    pub(crate) fn asked_about(&mut self, call: &ToolCallUpdate) -> Option<ToolCallChange> {
        if self.tools.is_known(&call.tool_call_id) {
            return None;
        }
        call.title.as_ref()?;
        Some(self.tools.announced(call.clone()))
    }
}

fn piece(speaker: Speaker, chunk: ContentChunk) -> Event {
    let ContentChunk { content, message_id, meta, .. } = chunk;
    let text = match content {
        ContentBlock::Text(text) => text,
        block => return Event::Content(ContentPiece { speaker, block: Box::new(block), message_id }),
    };
    let chunk =
        TextChunk { text: text.text, message_id, annotations: text.annotations, meta: text.meta.or(meta) };
    match speaker {
        Speaker::Agent => Event::Text(chunk),
        Speaker::Thought => Event::Thought(chunk),
        Speaker::User => Event::User(chunk),
    }
}

/// Which tool calls there are.
#[derive(Debug, Default)]
struct Tools {
    /// The hashes of their ids, which may be as long as a message.
    known: HashSet<u64>,
    hasher: RandomState,
    /// Changes of calls that nobody has announced. Some agents send the announcement last.
    orphans: HashMap<ToolCallId, Orphan>,
    orphan_bytes: usize,
}

#[derive(Debug)]
struct Orphan {
    update: Box<ToolCallUpdate>,
    bytes: usize,
}

impl Tools {
    fn announced(&mut self, mut call: ToolCallUpdate) -> ToolCallChange {
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        let created = self.known.insert(self.hasher.hash_one(&call.tool_call_id));
        if let Some(earlier) = self.take_orphan(&call.tool_call_id) {
            fill(&mut call, *earlier);
        }
        ToolCallChange { created, update: Box::new(call) }
    }

    /// TOOL-21: a change of an unknown call creates it if it has a title; else it waits for the announcement.
    fn changed(&mut self, mut update: Box<ToolCallUpdate>) -> Option<ToolCallChange> {
        if self.is_known(&update.tool_call_id) {
            return Some(ToolCallChange { created: false, update });
        }
        if update.title.is_some() {
            return Some(self.announced(*update));
        }
        if let Some(earlier) = self.take_orphan(&update.tool_call_id) {
            fill(&mut update, *earlier);
        }
        let bytes = bytes(&update);
        if self.orphans.len() < ORPHANS && bytes <= ORPHAN_BYTES - self.orphan_bytes {
            self.orphan_bytes += bytes;
            self.orphans.insert(update.tool_call_id.clone(), Orphan { update, bytes });
        }
        None
    }

    fn is_known(&self, id: &ToolCallId) -> bool {
        self.known.contains(&self.hasher.hash_one(id))
    }

    fn take_orphan(&mut self, id: &ToolCallId) -> Option<Box<ToolCallUpdate>> {
        let orphan = self.orphans.remove(id)?;
        self.orphan_bytes -= orphan.bytes;
        Some(orphan.update)
    }
}

/// How many bytes an update has as JSON.
fn bytes(update: &ToolCallUpdate) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written as JSON has not come as JSON; it counts as too much.
    serde_json::to_writer(&mut count, update).map_or(usize::MAX, |()| count.0)
}

/// Takes from `earlier` what the newer one does not mention.
fn fill(call: &mut ToolCallUpdate, earlier: ToolCallUpdate) {
    fn or<T>(newer: &mut Option<T>, earlier: Option<T>) {
        if newer.is_none() {
            *newer = earlier;
        }
    }
    or(&mut call.title, earlier.title);
    or(&mut call.name, earlier.name);
    or(&mut call.kind, earlier.kind);
    or(&mut call.status, earlier.status);
    or(&mut call.content, earlier.content);
    or(&mut call.locations, earlier.locations);
    or(&mut call.raw_input, earlier.raw_input);
    or(&mut call.raw_output, earlier.raw_output);
    or(&mut call.meta, earlier.meta);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn update(value: serde_json::Value) -> SessionUpdate {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn unannounced_changes_are_bounded_in_bytes() {
        let mut state = State::default();
        let large = "y".repeat(ORPHAN_BYTES / 4);
        for number in 0..60 {
            let change = json!({ "sessionUpdate": "tool_call_update", "toolCallId": format!("t{number}"), "rawInput": large });
            assert!(state.fold(update(change)).is_none());
        }
        assert_eq!(state.tools.orphans.len(), 3);
        assert!(state.tools.orphan_bytes <= ORPHAN_BYTES);
        // What was kept is there with the announcement, and gone with it.
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Late" });
        let Some(Event::ToolCall(change)) = state.fold(update(call)) else { panic!("no call") };
        assert!(change.created && change.update.raw_input.is_some());
        assert_eq!(state.tools.orphans.len(), 2);
        assert!(state.tools.orphan_bytes < 3 * ORPHAN_BYTES / 4);
        let change =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "huge", "rawInput": large.repeat(8) });
        assert!(state.fold(update(change)).is_none());
        assert_eq!(state.tools.orphans.len(), 2);
    }
}
