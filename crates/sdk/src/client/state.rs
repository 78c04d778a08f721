//! The state of a session: folds updates and turns them into events.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use attache_wire::Patch;
use attache_wire::v1::{
    AvailableCommand, ContentBlock, ContentChunk, SessionConfigOption, SessionModeId, SessionModeState,
    SessionUpdate, TerminalId, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind, UsageUpdate,
};
use attache_wire::v2::BackgroundWork;

use super::event::{
    ContentPiece, Event, SessionState, Speaker, TerminalChange, TextChunk, ToolCallChange, ToolExtra,
};
use super::v2::convert;

/// Announced tool calls that are remembered; the oldest are dropped first.
const KNOWN_CALLS: usize = 65_536;
/// Changes of unannounced tool calls that are kept, and their bytes on the wire.
const ORPHANS: usize = 64;
const ORPHAN_BYTES: usize = 1 << 20;

/// The state of one session.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) modes: Option<SessionModeState>,
    #[cfg(feature = "drafts")]
    pub(crate) models: Option<attache_wire::v1::SessionModelState>,
    pub(crate) config_options: Arc<[SessionConfigOption]>,
    pub(crate) commands: Arc<[AvailableCommand]>,
    pub(crate) title: Option<String>,
    pub(crate) updated_at: Option<String>,
    pub(crate) usage: Option<UsageUpdate>,
    /// The state of the session, once it is known.
    pub(crate) now: Option<SessionState>,
    background: Arc<[BackgroundWork]>,
    tools: Tools,
    /// Hashes of terminals that can be cancelled.
    cancellable_terminals: HashSet<u64>,
}

impl State {
    /// Folds an update of `bytes` on the wire. Returns `None` if there is no event.
    pub(crate) fn fold(&mut self, update: SessionUpdate, bytes: usize) -> Option<Event> {
        let event = self.tools.event("", update, bytes)?;
        match &event {
            Event::Commands(commands) => self.commands = commands.clone(),
            Event::ConfigOptions(options) => self.config_options = options.clone(),
            Event::Mode(mode) => {
                if let Some(modes) = &mut self.modes {
                    modes.current_mode_id = mode.clone();
                }
            }
            Event::Info(info) => {
                // LIST-12: absent leaves, null clears.
                info.title.clone().apply(&mut self.title);
                info.updated_at.clone().apply(&mut self.updated_at);
            }
            Event::Usage(usage) => self.usage = Some((**usage).clone()),
            _ => {}
        }
        Some(event)
    }

    /// Folds an update of a subagent; only its tool calls are remembered.
    pub(crate) fn fold_child(&mut self, child: &str, update: SessionUpdate, bytes: usize) -> Option<Event> {
        self.tools.event(child, update, bytes)
    }

    /// Notes a change of a tool call of version 2, the first of which creates it.
    // V2-19
    pub(crate) fn change_v2(
        &mut self,
        child: &str,
        update: ToolCallUpdate,
        extra: Box<ToolExtra>,
    ) -> ToolCallChange {
        let key = self.tools.key(child, &update.tool_call_id);
        if let Some(cancellable) = extra.cancellable {
            note(&mut self.tools.cancellable, key, cancellable);
        }
        // V2-30: a call that has ended cannot be cancelled.
        if extra.status.as_ref().is_some_and(|status| status.is_final()) {
            self.tools.cancellable.remove(&key);
        }
        let mut change = self.tools.announced(child, update);
        change.extra = Some(extra);
        change
    }

    /// Whether the agent offers to cancel a tool call.
    // V2-30
    pub(crate) fn is_cancellable(&self, id: &ToolCallId) -> bool {
        self.tools.cancellable.contains(&self.tools.key("", id))
    }

    /// Notes whether a terminal can be cancelled.
    pub(crate) fn note_terminal(&mut self, change: &TerminalChange) {
        let Some(update) = &change.update else { return };
        let key = self.tools.keys.hash_one(update.terminal_id.as_str());
        match &update.capabilities {
            Patch::Set(capabilities) => {
                note(&mut self.cancellable_terminals, key, capabilities.cancel.is_some());
            }
            Patch::Clear => note(&mut self.cancellable_terminals, key, false),
            Patch::Keep => {}
        }
        if matches!(update.exit_status, Patch::Set(_)) {
            self.cancellable_terminals.remove(&key);
        }
    }

    /// Whether the agent offers to cancel the command of a terminal.
    // V2-30
    pub(crate) fn is_cancellable_terminal(&self, id: &TerminalId) -> bool {
        self.cancellable_terminals.contains(&self.tools.keys.hash_one(id.as_str()))
    }

    /// Replaces the list of background work. Returns it if it is reported and new.
    // V2-36
    pub(crate) fn change_background(
        &mut self,
        background: Option<&[BackgroundWork]>,
    ) -> Option<Arc<[BackgroundWork]>> {
        let background = background.filter(|background| **background != *self.background)?;
        self.background = background.into();
        Some(self.background.clone())
    }

    /// Derives the modes from the config options. Returns the current one if it changed.
    pub(crate) fn derive_modes(&mut self) -> Option<SessionModeId> {
        let modes = convert::modes(&self.config_options);
        let current = modes.as_ref().map(|modes| modes.current_mode_id.clone());
        let before = std::mem::replace(&mut self.modes, modes).map(|modes| modes.current_mode_id);
        current.filter(|current| before.as_ref().is_some_and(|before| before != current))
    }

    /// Announces the tool call of a permission request, because some agents do not.
    pub(crate) fn announce(&mut self, call: &ToolCallUpdate) -> Option<ToolCallChange> {
        if self.tools.is_known("", &call.tool_call_id) {
            return None;
        }
        call.title.as_ref()?;
        Some(self.tools.announced("", call.clone()))
    }

    /// A change of a call that is known.
    pub(crate) fn change_known(&mut self, update: ToolCallUpdate) -> Option<ToolCallChange> {
        let is_known = self.tools.is_known("", &update.tool_call_id);
        is_known.then(|| ToolCallChange::new(false, Box::new(update)))
    }
}

impl Tools {
    /// The event of an update. `child` is the subagent, or empty.
    // Inlined because an event is large and a call would copy it.
    #[inline(always)]
    fn event(&mut self, child: &str, update: SessionUpdate, bytes: usize) -> Option<Event> {
        Some(match update {
            SessionUpdate::AgentMessageChunk(chunk) => piece(Speaker::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => piece(Speaker::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) => piece(Speaker::User, chunk),
            SessionUpdate::ToolCall(call) => Event::ToolCall(self.begun(child, (*call).into())),
            SessionUpdate::ToolCallUpdate(update) => Event::ToolCall(self.changed(child, update, bytes)?),
            SessionUpdate::Plan(plan) => Event::Plan(plan),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                Event::Commands(update.available_commands.into())
            }
            SessionUpdate::CurrentModeUpdate(update) => Event::Mode(update.current_mode_id),
            SessionUpdate::ConfigOptionUpdate(update) => Event::ConfigOptions(update.config_options.into()),
            SessionUpdate::SessionInfoUpdate(update) => Event::Info(Box::new(update)),
            SessionUpdate::UsageUpdate(update) => Event::Usage(Box::new(update)),
            SessionUpdate::Notice(notice) => Event::Notice(Box::new(notice)),
            SessionUpdate::CompactionUpdate(update) => Event::Compaction(update),
            SessionUpdate::CompactionSummaryChunk(chunk) => Event::CompactionSummary(Box::new(chunk)),
            // PROMPT-16: unknown updates are delivered, never fatal.
            SessionUpdate::Other(unknown) => Event::Other(unknown),
            #[cfg(feature = "unstable")]
            update => return super::unstable::event(update),
            #[cfg(not(feature = "unstable"))]
            _ => return None,
        })
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

/// The known tool calls of a session and its subagents, without their contents.
#[derive(Debug, Default)]
struct Tools {
    /// Hashes of calls, because ids may be of any length. Random keys prevent forged collisions.
    known: HashSet<u64>,
    /// The same, the oldest first.
    order: VecDeque<u64>,
    keys: RandomState,
    /// Changes of unannounced calls with their bytes on the wire. Some agents announce last.
    orphans: HashMap<u64, (Box<ToolCallUpdate>, usize)>,
    orphan_bytes: usize,
    /// Calls that can be cancelled.
    cancellable: HashSet<u64>,
}

/// Objects of one kind that can be cancelled at once.
const CANCELLABLE: usize = 4_096;

fn note(set: &mut HashSet<u64>, key: u64, cancellable: bool) {
    if !cancellable {
        set.remove(&key);
    } else if set.len() < CANCELLABLE {
        set.insert(key);
    }
}

impl Tools {
    fn key(&self, child: &str, id: &ToolCallId) -> u64 {
        self.keys.hash_one((child, id.as_str()))
    }

    fn is_known(&self, child: &str, id: &ToolCallId) -> bool {
        self.known.contains(&self.key(child, id))
    }

    fn announced(&mut self, child: &str, mut call: ToolCallUpdate) -> ToolCallChange {
        let key = self.key(child, &call.tool_call_id);
        let created = self.known.insert(key);
        if created {
            self.order.push_back(key);
            if self.order.len() > KNOWN_CALLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
                self.cancellable.remove(&oldest);
            }
        }
        if let Some((mut earlier, _)) = self.take_orphan(key) {
            earlier.merge(call);
            call = *earlier;
        }
        ToolCallChange::new(created, Box::new(call))
    }

    // TOOL-02, TOOL-04: a `tool_call` under a known id is another call, with defaults for its
    // absent members.
    fn begun(&mut self, child: &str, call: ToolCallUpdate) -> ToolCallChange {
        let mut change = self.announced(child, call);
        if !change.created {
            let call = &mut change.update;
            call.kind.get_or_insert(ToolKind::Other);
            call.status.get_or_insert(ToolCallStatus::Pending);
            call.content.get_or_insert_default();
            call.locations.get_or_insert_default();
            change.extra = Some(Box::new(ToolExtra { replaces: true, ..ToolExtra::default() }));
        }
        change
    }

    // TOOL-21: a change of an unknown call creates it if it has a title; else it waits for the
    // announcement.
    fn changed(
        &mut self,
        child: &str,
        mut update: Box<ToolCallUpdate>,
        bytes: usize,
    ) -> Option<ToolCallChange> {
        let key = self.key(child, &update.tool_call_id);
        if self.known.contains(&key) {
            return Some(ToolCallChange::new(false, update));
        }
        if update.title.is_some() {
            return Some(self.announced(child, *update));
        }
        let mut bytes = bytes;
        if let Some((mut earlier, earlier_bytes)) = self.take_orphan(key) {
            earlier.merge(*update);
            update = earlier;
            bytes += earlier_bytes;
        }
        if self.orphans.len() < ORPHANS && self.orphan_bytes + bytes <= ORPHAN_BYTES {
            self.orphan_bytes += bytes;
            self.orphans.insert(key, (update, bytes));
        }
        None
    }

    fn take_orphan(&mut self, key: u64) -> Option<(Box<ToolCallUpdate>, usize)> {
        let orphan = self.orphans.remove(&key)?;
        self.orphan_bytes -= orphan.1;
        Some(orphan)
    }
}
