//! What is known about a session: updates are folded into it and turned into events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use attache_wire::v1::{
    AvailableCommand, ContentBlock, ContentChunk, SessionConfigOption, SessionModeState, SessionModelState,
    SessionUpdate, ToolCallId, ToolCallUpdate, UsageUpdate,
};

use super::event::{ContentPiece, Event, Speaker, TextChunk, ToolCallChange};

/// Changes of tool calls that nobody has announced yet; more than this are forgotten.
const ORPHANS: usize = 64;

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
        if self.tools.known.contains(&call.tool_call_id) {
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
    known: HashSet<ToolCallId>,
    /// Changes of calls that nobody has announced. Some agents send the announcement last.
    orphans: HashMap<ToolCallId, Box<ToolCallUpdate>>,
}

impl Tools {
    fn announced(&mut self, mut call: ToolCallUpdate) -> ToolCallChange {
        let created = self.known.insert(call.tool_call_id.clone());
        if let Some(earlier) = self.orphans.remove(&call.tool_call_id) {
            fill(&mut call, *earlier);
        }
        ToolCallChange { created, update: Box::new(call) }
    }

    /// TOOL-21: a change of an unknown call creates it if it has a title; else it waits for the announcement.
    fn changed(&mut self, mut update: Box<ToolCallUpdate>) -> Option<ToolCallChange> {
        if self.known.contains(&update.tool_call_id) {
            return Some(ToolCallChange { created: false, update });
        }
        if update.title.is_some() {
            return Some(self.announced(*update));
        }
        if let Some(earlier) = self.orphans.remove(&update.tool_call_id) {
            fill(&mut update, *earlier);
        }
        if self.orphans.len() < ORPHANS {
            self.orphans.insert(update.tool_call_id.clone(), update);
        }
        None
    }
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
