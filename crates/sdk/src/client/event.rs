//! Events of a session.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use attache_wire::Meta;
use attache_wire::Unknown;
use attache_wire::v1::{
    Annotations, AvailableCommand, CompactionSummaryChunk, CompactionUpdate, ContentBlock, ElicitationId,
    MessageId, Notice, Plan, SessionConfigOption, SessionId, SessionInfoUpdate, SessionModeId, ToolCallId,
    ToolCallUpdate, UsageUpdate,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{PlanRemoved, PlanUpdate, SessionMessage, SessionMessageChunk, SubagentUpdate};

use super::{ElicitationAsk, PermissionAsk};

/// An event of a session, in wire order. Read from [`TurnEvents`](super::TurnEvents), [`SessionReplay`](super::SessionReplay) and
/// [`SessionEvents`](super::SessionEvents).
///
/// Example: [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
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
    /// A new or changed subagent. A missing or unknown state is not idle and replaces the one before.
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
/// Example: [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TextChunk {
    /// The text.
    pub text: String,
    /// The message that the text belongs to. Without ids, another kind of chunk starts a new message.
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

/// A new or changed tool call. Absent members of `update` are unchanged; lists replace the whole list.
///
/// Example: [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
// TOOL-05, TOOL-07, TOOL-06
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallChange {
    /// Whether the call is new. Then it has a title, and absent members have their defaults: status pending, kind other, empty
    /// lists.
    // TOOL-04
    pub created: bool,
    /// The members that are new.
    pub update: Box<ToolCallUpdate>,
}

impl ToolCallChange {
    /// The id of the call.
    pub fn id(&self) -> &ToolCallId {
        &self.update.tool_call_id
    }
}
