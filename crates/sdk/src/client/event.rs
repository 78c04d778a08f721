//! What a session tells: the events of a turn, of a replayed history, and of the time between turns.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use attache_wire::Meta;
use attache_wire::Unknown;
use attache_wire::v1::{
    Annotations, AvailableCommand, CompactionSummaryChunk, CompactionUpdate, ContentBlock, ElicitationId,
    MessageId, Notice, Plan, PlanRemoved, PlanUpdate, SessionConfigOption, SessionId, SessionInfoUpdate,
    SessionMessage, SessionMessageChunk, SessionModeId, SubagentUpdate, ToolCallId, ToolCallUpdate,
    UsageUpdate,
};

use super::{ElicitationAsk, PermissionAsk};

/// One thing that happened in a session, in the order of the wire.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A piece of the agent's answer.
    Text(TextChunk),
    /// A piece of the agent's thoughts.
    Thought(TextChunk),
    /// A piece of what the user said, mostly from a replayed history.
    User(TextChunk),
    /// A piece of a message that is not text.
    Content(ContentPiece),
    /// A tool call appeared or changed.
    ToolCall(ToolCallChange),
    /// The whole plan; it replaces the one before (PLAN-04).
    Plan(Plan),
    /// One of several plans appeared or changed.
    PlanUpdate(Box<PlanUpdate>),
    /// One of several plans is gone.
    PlanRemoved(PlanRemoved),
    /// The whole list of slash commands; it replaces the one before (CMD-02).
    Commands(Arc<[AvailableCommand]>),
    /// The session is in another mode.
    Mode(SessionModeId),
    /// The whole list of config options; it replaces the one before (CONF-16).
    ConfigOptions(Arc<[SessionConfigOption]>),
    /// The session's title or date changed.
    Info(Box<SessionInfoUpdate>),
    /// How much of the context is used.
    Usage(Box<UsageUpdate>),
    /// Something to show beside the conversation.
    Notice(Box<Notice>),
    /// A compaction of the context began, changed or ended.
    Compaction(Box<CompactionUpdate>),
    /// A piece of a compaction's summary.
    CompactionSummary(Box<CompactionSummaryChunk>),
    /// A subagent appeared or changed. SUBA-04, SUBA-07: a state that is missing or not known is not idle, and takes the
    /// place of the one before.
    Subagent(Box<SubagentUpdate>),
    /// Something happened in the session of a subagent.
    FromSubagent(SessionId, Box<Event>),
    /// A message between sessions.
    SessionMessage(Box<SessionMessage>),
    /// A piece of a message between sessions.
    SessionMessageChunk(Box<SessionMessageChunk>),
    /// The agent asks whether it may run a tool. Dropping the question answers it `cancelled`.
    Permission(PermissionAsk),
    /// The agent asks for input. Dropping the question answers it `cancel`.
    Elicitation(ElicitationAsk),
    /// What an elicitation started outside of the protocol is done.
    ElicitationComplete(ElicitationId),
    /// An update that this version of the protocol does not know, as it came.
    Other(Unknown),
}

impl Event {
    /// Whether somebody waits for an answer.
    pub(crate) fn is_ask(&self) -> bool {
        match self {
            Event::Permission(_) | Event::Elicitation(_) => true,
            Event::FromSubagent(_, event) => event.is_ask(),
            _ => false,
        }
    }
}

/// A piece of text. It reads as the text it holds.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TextChunk {
    /// The text.
    pub text: String,
    /// MSG-01: pieces with the same id belong to one message. MSG-04: without ids, another kind of piece starts a new one.
    pub message_id: Option<MessageId>,
    /// Hints about the use of the text.
    pub annotations: Option<Box<Annotations>>,
    /// What extensions attached to the block or, failing that, to the chunk.
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

/// Who says something.
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

/// A piece of a message that is not text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContentPiece {
    /// Whose message it belongs to.
    pub speaker: Speaker,
    /// The content.
    pub block: Box<ContentBlock>,
    /// Which message it belongs to.
    pub message_id: Option<MessageId>,
}

/// A tool call appeared or changed. In `update`, what is absent stays as it was (TOOL-05, TOOL-07); lists replace the
/// whole list (TOOL-06).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallChange {
    /// Whether this is the first that is heard of the call. Then the title is there, and what is absent has its
    /// default: status pending, kind other, nothing in the lists (TOOL-04).
    pub created: bool,
    /// What is known now.
    pub update: Box<ToolCallUpdate>,
}

impl ToolCallChange {
    /// Which call.
    pub fn id(&self) -> &ToolCallId {
        &self.update.tool_call_id
    }
}
