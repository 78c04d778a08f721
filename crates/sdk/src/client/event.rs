//! Events of a session.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use attache_wire::Unknown;
use attache_wire::v1::{
    Annotations, AvailableCommand, CompactionSummaryChunk, CompactionUpdate, ContentBlock, ElicitationId,
    MessageId, Notice, Plan, SessionConfigOption, SessionId, SessionInfoUpdate, SessionModeId, TerminalId,
    ToolCallContent, ToolCallId, ToolCallUpdate, UsageUpdate,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{PlanRemoved, PlanUpdate, SessionMessage, SessionMessageChunk, SubagentUpdate};
use attache_wire::v2::ToolCallStatus as ToolStatus;
use attache_wire::v2::{BackgroundWork, StopReason, TerminalExitStatus};
use attache_wire::{Meta, Patch, v2};

use super::calls::ToolCall;
use super::{ElicitationAsk, PermissionAsk};
use crate::Edit;

/// An event of a session, in wire order. Read from [`TurnEvents`](super::TurnEvents),
/// [`SessionReplay`](super::SessionReplay) and [`SessionEvents`](super::SessionEvents).
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Text of the answer.
    Text(TextChunk),
    /// Text of the reasoning.
    Thought(TextChunk),
    /// Text of the user, mostly from a replayed history.
    User(TextChunk),
    /// Content of a message that is not text.
    Content(ContentPiece),
    /// A new or changed tool call.
    ToolCall(ToolCallChange),
    /// The plan, which replaces the one before.
    // PLAN-04
    Plan(Plan),
    /// One of several plans, new or changed.
    #[cfg(feature = "unstable")]
    PlanUpdate(Box<PlanUpdate>),
    /// One of several plans was removed.
    #[cfg(feature = "unstable")]
    PlanRemoved(PlanRemoved),
    /// The slash commands, which replace the ones before.
    // CMD-02
    Commands(Arc<[AvailableCommand]>),
    /// The new mode.
    Mode(SessionModeId),
    /// The config options, which replace the ones before.
    // CONF-16
    ConfigOptions(Arc<[SessionConfigOption]>),
    /// A new title or date of the session.
    Info(Box<SessionInfoUpdate>),
    /// The used context.
    Usage(Box<UsageUpdate>),
    /// A notice to show beside the conversation.
    Notice(Box<Notice>),
    /// A compaction of the context.
    Compaction(Box<CompactionUpdate>),
    /// Text of the summary of a compaction.
    CompactionSummary(Box<CompactionSummaryChunk>),
    /// A new or changed subagent. A missing or unknown state is not idle and replaces the one
    /// before.
    // SUBA-04, SUBA-07
    #[cfg(feature = "unstable")]
    Subagent(Box<SubagentUpdate>),
    /// An event in the session of a subagent.
    #[cfg(feature = "unstable")]
    FromSubagent(SessionId, Box<Event>),
    /// A message between sessions.
    #[cfg(feature = "unstable")]
    SessionMessage(Box<SessionMessage>),
    /// Text of a message between sessions.
    #[cfg(feature = "unstable")]
    SessionMessageChunk(Box<SessionMessageChunk>),
    /// A permission request. Dropping it answers `cancelled`.
    Permission(PermissionAsk),
    /// A request for input. Dropping it answers `cancel`.
    Elicitation(ElicitationAsk),
    /// The state of the session. With agents of version 1 it follows from prompts, questions and
    /// answers.
    // V2-11, V2-13
    State(SessionState),
    /// The content of a message was replaced. Agents of version 1 never send it.
    Message(Box<MessageChange>),
    /// A new or changed terminal of the agent. Agents of version 1 have none.
    Terminal(Box<TerminalChange>),
    /// The work that continues while the session is idle; replaces the list before. Agents of
    /// version 1 never send it.
    // V2-36
    Background(Arc<[BackgroundWork]>),
    /// The user has finished at the page of an elicitation.
    ElicitationComplete(ElicitationId),
    /// An unknown update, unchanged.
    Other(Unknown),
}

impl Event {
    /// Whether the agent waits for an answer.
    pub(crate) fn is_ask(&self) -> bool {
        match self {
            Event::Permission(_) | Event::Elicitation(_) => true,
            #[cfg(feature = "unstable")]
            Event::FromSubagent(_, event) => event.is_ask(),
            _ => false,
        }
    }

    /// Whether the event is part of something that has a state of its own.
    pub(crate) fn has_state(&self) -> bool {
        match self {
            Event::ToolCall(_) | Event::Terminal(_) => true,
            #[cfg(feature = "unstable")]
            Event::FromSubagent(_, event) => event.has_state(),
            _ => false,
        }
    }

    /// The event of a subagent, if `child` names one.
    pub(crate) fn of_child(self, child: Option<SessionId>) -> Event {
        match child {
            #[cfg(feature = "unstable")]
            Some(id) => Event::FromSubagent(id, Box::new(self)),
            _ => self,
        }
    }
}

/// Text of a message; dereferences to `str`.
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TextChunk {
    /// The text.
    pub text: String,
    /// The message that the text belongs to. Without ids, another kind of chunk starts a new
    /// message.
    // MSG-01, MSG-04
    pub message_id: Option<MessageId>,
    /// Annotations of the text.
    pub annotations: Option<Box<Annotations>>,
    /// `_meta` of the block or else of the chunk.
    pub meta: Option<Meta>,
}

impl Deref for TextChunk {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for TextChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<TextChunk> for String {
    fn from(chunk: TextChunk) -> String {
        chunk.text
    }
}

/// The author of a message.
///
/// Example: [`ContentPiece`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Speaker {
    /// The agent, to the user.
    Agent,
    /// The agent, to itself.
    Thought,
    /// The user.
    User,
}

/// Content of a message that is not text.
///
/// ```
/// use attache::ContentBlock;
/// use attache::client::{ContentPiece, Speaker};
///
/// fn show(piece: &ContentPiece) {
///     if let (Speaker::Agent, ContentBlock::Image(image)) = (piece.speaker, &*piece.block) {
///         println!("an image of type {}", image.mime_type);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContentPiece {
    /// The author of the message.
    pub speaker: Speaker,
    /// The content.
    pub block: Box<ContentBlock>,
    /// The message that it belongs to.
    pub message_id: Option<MessageId>,
}

/// The state of a session.
///
/// ```
/// use attache::client::{Event, SessionState};
///
/// fn busy(event: &Event) -> Option<bool> {
///     let Event::State(state) = event else { return None };
///     Some(!matches!(state, SessionState::Idle(_)))
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionState {
    /// The agent works.
    Running,
    /// The agent waits for the user.
    RequiresAction,
    /// The agent has nothing to do. The reason is why the work ended, if that is known.
    Idle(Option<StopReason>),
    /// A state that this crate does not know. It is not idle.
    // V2-35
    Other(String),
}

impl SessionState {
    /// The state that a message of version 2 reports.
    // V2-35: an unknown state is not idle.
    pub(super) fn reported_by(state: &v2::StateUpdate) -> SessionState {
        match state {
            v2::StateUpdate::Running(_) => SessionState::Running,
            v2::StateUpdate::RequiresAction(_) => SessionState::RequiresAction,
            v2::StateUpdate::Idle(idle) => SessionState::Idle(idle.stop_reason.clone()),
            v2::StateUpdate::Other(unknown) => SessionState::Other(unknown.tag.clone()),
            _ => SessionState::Other("unknown".to_owned()),
        }
    }
}

/// New content of a message, which replaces all text and content of it so far.
///
/// A message that is new, or whose content only grows, comes as [`Event::Text`] and the like
/// instead.
///
/// ```
/// use attache::client::{Event, Speaker};
///
/// fn shown(answer: &mut String, event: &Event) {
///     match event {
///         Event::Text(text) => answer.push_str(text),
///         Event::Message(message) if message.speaker == Speaker::Agent => *answer = message.text(),
///         _ => {}
///     }
/// }
/// ```
// V2-17
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageChange {
    /// The author of the message.
    pub speaker: Speaker,
    /// The message.
    pub message_id: MessageId,
    /// The whole content; empty if the message was cleared.
    pub content: Vec<ContentBlock>,
    /// `_meta` that came with the new content.
    pub meta: Option<Meta>,
}

impl MessageChange {
    /// The text of the message.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// A new or changed terminal of the agent.
///
/// ```
/// use std::io::Write;
/// use attache::client::TerminalChange;
///
/// fn show(change: &TerminalChange) -> std::io::Result<()> {
///     std::io::stdout().write_all(&change.appended)?;
///     match &change.terminal.exit_status {
///         Some(status) => writeln!(std::io::stdout(), "exit code {:?}", status.exit_code),
///         None => Ok(()),
///     }
/// }
/// ```
// V2-32
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TerminalChange {
    /// The terminal as it is now.
    pub terminal: Arc<AgentTerminal>,
    /// Output that is new. It may end inside of a character.
    pub appended: Vec<u8>,
    /// Whether `appended` is the whole output and replaces what was shown before.
    pub replaced: bool,
    /// Members that changed, until they are part of `terminal`.
    pub(crate) update: Option<Box<v2::TerminalUpdate>>,
}

/// A terminal that the agent runs and the client shows.
///
/// Example: [`TerminalChange`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentTerminal {
    /// The terminal. Content of tool calls refers to it.
    pub id: TerminalId,
    /// The command.
    pub command: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The end of the output, at most 64 KiB.
    pub output: Vec<u8>,
    /// The exit status of a command that has ended.
    pub exit_status: Option<TerminalExitStatus>,
    /// Columns and rows, if the agent gave them.
    pub size: Option<(u16, u16)>,
    /// Whether [`SessionControl::cancel_terminal`](super::SessionControl::cancel_terminal) works.
    pub cancellable: bool,
    /// `_meta` of the terminal.
    pub meta: Option<Meta>,
}

impl AgentTerminal {
    pub(crate) fn new(id: TerminalId) -> Self {
        AgentTerminal {
            id,
            command: None,
            cwd: None,
            output: Vec::new(),
            exit_status: None,
            size: None,
            cancellable: false,
            meta: None,
        }
    }
}

/// A new or changed tool call. Absent members of `update` are unchanged; lists replace the whole
/// list.
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
// TOOL-05, TOOL-07, TOOL-06
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallChange {
    /// Whether the call is new. Then it has a title, and absent members have their defaults: status
    /// pending, kind other, empty lists.
    // TOOL-04
    pub created: bool,
    /// The members that are new.
    pub update: Box<ToolCallUpdate>,
    /// The call as it is now, with all changes so far.
    pub call: Arc<ToolCall>,
    /// Members that only version 2 has, until they are part of `call`.
    pub(crate) extra: Option<Box<ToolExtra>>,
}

/// Changes of a tool call that updates of version 1 cannot express.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ToolExtra {
    /// Whether nothing of the call before is left.
    pub(crate) replaces: bool,
    pub(crate) name: Patch<String>,
    pub(crate) status: Option<ToolStatus>,
    pub(crate) cancellable: Option<bool>,
    /// Content that is added to the content so far.
    pub(crate) append: Vec<ToolCallContent>,
    /// The changes of files in `content` of the update and in `append`.
    pub(crate) edits: Option<Vec<Edit>>,
    pub(crate) meta: Patch<Meta>,
}

impl ToolCallChange {
    /// A change whose state is filled in when it is read.
    pub(crate) fn new(created: bool, update: Box<ToolCallUpdate>) -> Self {
        let call = Arc::new(ToolCall::new(update.tool_call_id.clone()));
        ToolCallChange { created, update, call, extra: None }
    }

    /// The id of the call.
    pub fn id(&self) -> &ToolCallId {
        &self.update.tool_call_id
    }
}

/// Bytes of accumulated metadata that are kept; beyond that only the latest change.
const MAX_META: usize = 64 << 10;

/// The whole metadata after a patch by key.
// V2-18
pub(crate) fn patch_meta(stored: &mut Option<Meta>, patch: Patch<Meta>) {
    if stored.as_ref().is_some_and(|meta| meta.as_json().get().len() > MAX_META) {
        *stored = None;
    }
    patch.apply_by_key(stored);
}

// Most events are text; they are moved several times.
const _: () = assert!(size_of::<Event>() <= 72);
