//! From events of protocol version 1 to changes.

use attache_wire::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, SessionConfigOption, SessionId,
    SessionModeState, SessionUpdate, ToolCallId, ToolCallUpdate,
};
use attache_wire::{Meta, Patch};

use crate::change::Change;
use crate::model::{
    Answer, Item, ItemKind, Message, Plan, PlanBody, Question, QuestionKind, Role, ToolCall, Transcript,
    TurnEnd, UnknownUpdate, is_final,
};

/// One event of a session, in the order of the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The answer that opened the session lists the modes.
    Modes(SessionModeState),
    /// The answer that opened the session lists the config options.
    ConfigOptions(Vec<SessionConfigOption>),
    /// The client sent a prompt: a turn begins.
    Prompt(Vec<ContentBlock>),
    /// The agent sent an update, of the session or of the subagent with this id.
    Update(Option<SessionId>, SessionUpdate),
    /// The agent asks the user.
    Asked {
        /// The subagent that asks; `None` for the session itself.
        session: Option<SessionId>,
        /// The owner's id of the question.
        id: String,
        /// The request.
        kind: QuestionKind,
    },
    /// The client answered the question with this id.
    Answered(String, Answer),
    /// A rule or mode allowed a tool call without a question.
    Allowed {
        /// The subagent that the call belongs to; `None` for the session itself.
        session: Option<SessionId>,
        /// The call.
        id: ToolCallId,
        /// The rule or mode.
        by: String,
    },
    /// The user, a rule or a mode refused a tool call.
    Denied {
        /// The subagent that the call belongs to; `None` for the session itself.
        session: Option<SessionId>,
        /// The call.
        id: ToolCallId,
    },
    /// A terminal has output that no tool call shows.
    Terminal(u64),
    /// The agent will not continue the last message, although it did not say so.
    MessageEnded,
    /// The turn ended.
    TurnEnded(TurnEnd),
}

impl From<SessionUpdate> for Event {
    fn from(update: SessionUpdate) -> Event {
        Event::Update(None, update)
    }
}

impl Transcript {
    /// Folds an event into the model.
    pub fn fold(&mut self, event: Event) {
        if let Some(change) = self.change(event) {
            self.apply(change);
        }
    }

    /// Returns the change that an event makes; `None` if it makes none.
    pub fn change(&self, event: Event) -> Option<Change> {
        let push = |kind| Change::Push(Item { session: None, kind });
        Some(match event {
            Event::Modes(modes) => Change::Modes(modes.available_modes, modes.current_mode_id),
            Event::ConfigOptions(options) => Change::ConfigOptions(options),
            Event::Prompt(content) => {
                push(ItemKind::Message(Message { role: Role::User, id: None, content, prompt: true }))
            }
            Event::Update(session, update) => return self.update(session, update),
            Event::Asked { session, id, kind } => {
                let question = Question { id, kind, answer: None };
                Change::Push(Item { session, kind: ItemKind::Question(Box::new(question)) })
            }
            Event::Answered(id, answer) => {
                let at = self.items().rev().find_map(|(at, item)| match &item.kind {
                    ItemKind::Question(question) if question.id == id => Some(at),
                    _ => None,
                });
                Change::Answer(at?, answer)
            }
            Event::Allowed { session, id, by } => {
                Change::Allowed(self.tool_call(session.as_ref(), &id)?.0, by)
            }
            Event::Denied { session, id } => Change::Denied(self.call_at(session.as_ref(), &id)?),
            Event::Terminal(number) => push(ItemKind::Terminal(number)),
            Event::MessageEnded => Change::EndMessage,
            Event::TurnEnded(end) => Change::EndTurn(end),
        })
    }

    fn update(&self, session: Option<SessionId>, update: SessionUpdate) -> Option<Change> {
        Some(match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(session, Role::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(session, Role::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) => self.chunk(session, Role::User, chunk),
            SessionUpdate::ToolCall(call) => self.tool_announced(session, (*call).into()),
            SessionUpdate::ToolCallUpdate(update) => self.tool_update(session, *update),
            SessionUpdate::Plan(new) => Change::Plan(Plan {
                #[cfg(feature = "unstable")]
                id: None,
                body: PlanBody::Entries(new.entries),
                meta: new.meta,
            }),
            // State of a subagent is not state of the session.
            SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_)
            | SessionUpdate::UsageUpdate(_)
                if session.is_some() =>
            {
                return None;
            }
            SessionUpdate::AvailableCommandsUpdate(update) => Change::Commands(update.available_commands),
            SessionUpdate::CurrentModeUpdate(update) => Change::Mode(update.current_mode_id),
            SessionUpdate::ConfigOptionUpdate(update) => Change::ConfigOptions(update.config_options),
            SessionUpdate::SessionInfoUpdate(update) => Change::Info(Box::new(update)),
            SessionUpdate::UsageUpdate(update) => Change::Usage(Box::new(update)),
            SessionUpdate::Notice(notice) => Change::Push(Item { session, kind: ItemKind::Notice(notice) }),
            SessionUpdate::CompactionUpdate(update) => {
                let known = self.find(&session, |kind| {
                    matches!(kind, ItemKind::Compaction(known) if known.compaction_id == update.compaction_id)
                });
                match known {
                    Some((at, _)) => Change::Compaction(at, update),
                    None => Change::Push(Item { session, kind: ItemKind::Compaction(update) }),
                }
            }
            SessionUpdate::CompactionSummaryChunk(chunk) => {
                let known = self.find(&session, |kind| {
                    matches!(kind, ItemKind::Compaction(known) if known.compaction_id == chunk.compaction_id)
                });
                match known {
                    Some((at, ItemKind::Compaction(known))) => {
                        append(at, set(&known.summary), with_meta(chunk.content, chunk.meta))
                    }
                    // NOTE-07: the first chunk creates a compaction that no update announced.
                    _ => {
                        let mut first =
                            CompactionUpdate::new(chunk.compaction_id, CompactionStatus::InProgress);
                        first.summary = Patch::Set(vec![with_meta(chunk.content, chunk.meta)]);
                        Change::Push(Item { session, kind: ItemKind::Compaction(Box::new(first)) })
                    }
                }
            }
            // PROMPT-16: kept, never fatal.
            SessionUpdate::Other(unknown) => {
                let unknown = UnknownUpdate { tag: unknown.tag, update: unknown.object };
                Change::Push(Item { session, kind: ItemKind::Unknown(unknown) })
            }
            #[cfg(feature = "unstable")]
            update => return self.unstable_update(session, update),
            #[cfg(not(feature = "unstable"))]
            _ => return None,
        })
    }

    // MSG-01, MSG-04
    /// A chunk continues the last message unless its id or its author is another one.
    fn chunk(&self, session: Option<SessionId>, role: Role, chunk: ContentChunk) -> Change {
        let ContentChunk { content, message_id: id, meta, .. } = chunk;
        let block = with_meta(content, meta);
        if !self.sealed
            && let Some(Item { session: last_session, kind: ItemKind::Message(last) }) = self.items.back()
            && (*last_session == session && last.role == role && last.id == id && !last.prompt)
        {
            return append(self.end() - 1, &last.content, block);
        }
        let message = Message { role, id, content: vec![block], prompt: false };
        Change::Push(Item { session, kind: ItemKind::Message(message) })
    }

    // TOOL-02
    /// A call that is announced under a known id is another one, and nothing of the old one
    /// is left.
    fn tool_announced(&self, session: Option<SessionId>, call: ToolCallUpdate) -> Change {
        match self.tool_update(session, call) {
            Change::ToolCall(at, call) => Change::ReplaceToolCall(at, call),
            change => change,
        }
    }

    /// Returns the change that an update of a tool call makes. An update of an unknown call creates
    /// one, as in version 2, even without a title.
    // TOOL-21 lets clients ignore an update of an unknown call without a title; an owner that wants
    // to do so looks for the call first.
    fn tool_update(&self, session: Option<SessionId>, update: ToolCallUpdate) -> Change {
        match self.call_at(session.as_ref(), &update.tool_call_id) {
            Some(at) if at < self.start() && update.status.is_some_and(is_final) => {
                Change::ReturnToolCall(at, Box::new(update))
            }
            Some(at) => Change::ToolCall(at, Box::new(update)),
            None => Change::Push(Item { session, kind: ItemKind::ToolCall(Box::new(ToolCall::new(update))) }),
        }
    }

    /// Returns the index of a tool call, retired or not.
    fn call_at(&self, session: Option<&SessionId>, id: &ToolCallId) -> Option<u64> {
        if let Some((at, _)) = self.tool_call(session, id) {
            return Some(at);
        }
        let mut retired = self.retired.iter();
        let found = retired.find(|(_, item)| {
            item.session.as_ref() == session
                && matches!(&item.kind, ItemKind::ToolCall(call) if call.id() == id)
        });
        found.map(|(at, _)| *at)
    }

    pub(crate) fn find(
        &self,
        session: &Option<SessionId>,
        is_wanted: impl Fn(&ItemKind) -> bool,
    ) -> Option<(u64, &ItemKind)> {
        let mut items = self.items().rev();
        items
            .find(|(_, item)| item.session == *session && is_wanted(&item.kind))
            .map(|(at, item)| (at, &item.kind))
    }
}

/// Appends `next` to `last` if both are chunks of plain text of one message. Folding the result
/// gives the same model.
pub fn join_chunks(last: &mut SessionUpdate, next: &SessionUpdate) -> bool {
    use SessionUpdate::{AgentMessageChunk, AgentThoughtChunk, UserMessageChunk};
    let ((AgentMessageChunk(last), AgentMessageChunk(next))
    | (AgentThoughtChunk(last), AgentThoughtChunk(next))
    | (UserMessageChunk(last), UserMessageChunk(next))) = (last, next)
    else {
        return false;
    };
    match (&mut last.content, plain_text(&next.content)) {
        (ContentBlock::Text(text), Some(more))
            if text.annotations.is_none()
                && text.meta.is_none()
                && last.meta.is_none()
                && next.meta.is_none()
                && last.message_id == next.message_id =>
        {
            text.text.push_str(more);
            true
        }
        _ => false,
    }
}

pub(crate) fn append(at: u64, content: &[ContentBlock], block: ContentBlock) -> Change {
    match block {
        ContentBlock::Text(text)
            if text.annotations.is_none()
                && text.meta.is_none()
                && content.last().and_then(plain_text).is_some() =>
        {
            Change::AppendText(at, text.text)
        }
        block => Change::AppendBlock(at, block),
    }
}

/// Returns the text of a block that has nothing else.
fn plain_text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) if text.annotations.is_none() && text.meta.is_none() => Some(&text.text),
        _ => None,
    }
}

/// Moves the `_meta` of a chunk to its block, unless the block has its own.
pub(crate) fn with_meta(mut block: ContentBlock, meta: Option<Meta>) -> ContentBlock {
    let own = match &mut block {
        ContentBlock::Text(block) => &mut block.meta,
        ContentBlock::Image(block) => &mut block.meta,
        ContentBlock::Audio(block) => &mut block.meta,
        ContentBlock::ResourceLink(block) => &mut block.meta,
        ContentBlock::Resource(block) => &mut block.meta,
        _ => return block,
    };
    if own.is_none() {
        *own = meta;
    }
    block
}

pub(crate) fn set(patch: &Patch<Vec<ContentBlock>>) -> &[ContentBlock] {
    match patch {
        Patch::Set(content) => content,
        _ => &[],
    }
}
