//! The conversation model.

use std::collections::{BTreeMap, VecDeque};

use attache_wire::v1::{
    AvailableCommand, CompactionStatus, CompactionUpdate, ContentBlock, CreateElicitationRequest, Diff,
    EmbeddedResourceResource, MessageId, Notice, PermissionOptionId, PlanEntry, RequestPermissionRequest,
    SessionConfigOption, SessionId, SessionMode, SessionModeId, StopReason, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind, UsageUpdate,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{PlanId, SessionMessage, SubagentUpdate, Usage};
use attache_wire::{Json, Meta, Patch};
use serde::{Deserialize, Serialize};

/// The conversation of one session and of its subagents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    pub(crate) items: VecDeque<Item>,
    /// Index of the first item: the number of items that were dropped.
    pub(crate) first: u64,
    /// Tool calls that were retired before their end, by their index.
    pub(crate) retired: BTreeMap<u64, Item>,
    /// Whether the next chunk begins a new message, although it continues the last one by its id.
    pub(crate) sealed: bool,
    /// The current mode.
    pub mode: Option<SessionModeId>,
    /// The modes to choose from.
    pub modes: Vec<SessionMode>,
    /// The config options with their current values.
    pub config_options: Vec<SessionConfigOption>,
    /// The slash commands.
    pub commands: Vec<AvailableCommand>,
    /// The plans, in the order in which they appeared.
    pub plans: Vec<Plan>,
    /// The title of the session.
    pub title: Option<String>,
    /// The time of the last activity, as ISO 8601 text.
    pub updated_at: Option<String>,
    /// The fill level of the context window and the cost so far.
    pub usage: Option<UsageUpdate>,
    /// The subagents, each with all that was reported about it.
    #[cfg(feature = "unstable")]
    pub subagents: Vec<SubagentUpdate>,
}

/// One item of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The subagent that the item belongs to; `None` for the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The content.
    pub kind: ItemKind,
}

impl Item {
    /// Returns the approximate size of the contents in bytes, for owners that bound their memory.
    pub fn size(&self) -> usize {
        let blocks = |blocks: &[ContentBlock]| blocks.iter().map(block_size).sum();
        match &self.kind {
            ItemKind::Message(message) => blocks(&message.content),
            ItemKind::ToolCall(call) => call.size(),
            ItemKind::Notice(notice) => {
                notice.title.len() + notice.description.as_ref().map_or(0, String::len)
            }
            ItemKind::Compaction(compaction) => match &compaction.summary {
                Patch::Set(summary) => blocks(summary),
                _ => SMALL,
            },
            #[cfg(feature = "unstable")]
            ItemKind::SessionMessage(message) => match &message.content {
                Patch::Set(content) => blocks(content),
                _ => SMALL,
            },
            ItemKind::Unknown(unknown) => unknown.update.get().len(),
            _ => SMALL,
        }
    }
}

/// The kinds of items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A message or a thought.
    Message(Message),
    /// A tool call.
    ToolCall(Box<ToolCall>),
    /// A question of the agent to the user.
    Question(Box<Question>),
    /// A notice of the agent or of the owner.
    Notice(Notice),
    /// A compaction of the context, with all that was reported about it.
    Compaction(Box<CompactionUpdate>),
    /// A message between sessions, with all that was reported about it.
    #[cfg(feature = "unstable")]
    SessionMessage(Box<SessionMessage>),
    /// A terminal that no tool call shows, by the owner's number.
    Terminal(u64),
    /// The end of a turn.
    TurnEnd(TurnEnd),
    /// An update that this version of the protocol does not define.
    Unknown(UnknownUpdate),
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The agent, to the user.
    Agent,
    /// The agent, to itself.
    Thought,
}

/// A message, or the part of one up to an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The id, if the agent uses ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// The content; chunks of plain text are merged.
    pub content: Vec<ContentBlock>,
    /// Whether the message is a prompt of this client. No chunk continues it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompt: bool,
}

impl Message {
    /// Returns the text blocks, one after the other.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(ContentBlock::as_text)
    }
}

// TOOL-05 to TOOL-07
/// A tool call with all that was reported about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The merged updates.
    pub state: ToolCallUpdate,
    /// Whether the turn ended before the call did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Whether the user was asked about the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The rule or mode that allowed the call without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// Whether the user, a rule or a mode refused the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
}

impl ToolCall {
    /// Creates a call from its first update.
    pub fn new(state: ToolCallUpdate) -> ToolCall {
        ToolCall { state, interrupted: false, asked: false, allowed_by: None, denied: false }
    }

    /// Returns the id.
    pub fn id(&self) -> &ToolCallId {
        &self.state.tool_call_id
    }

    /// Returns the title, which is empty until the agent reports one.
    pub fn title(&self) -> &str {
        self.state.title.as_deref().unwrap_or_default()
    }

    // TOOL-04
    /// Returns the kind of tool. The default is `other`.
    pub fn kind(&self) -> ToolKind {
        self.state.kind.unwrap_or(ToolKind::Other)
    }

    // TOOL-04
    /// Returns the status. The default is `pending`.
    pub fn status(&self) -> ToolCallStatus {
        self.state.status.unwrap_or(ToolCallStatus::Pending)
    }

    /// Returns the content.
    pub fn content(&self) -> &[ToolCallContent] {
        self.state.content.as_deref().unwrap_or_default()
    }

    /// Returns the files that the call works on.
    pub fn locations(&self) -> &[ToolCallLocation] {
        self.state.locations.as_deref().unwrap_or_default()
    }

    /// Returns the diffs in the content.
    pub fn diffs(&self) -> impl Iterator<Item = &Diff> {
        self.content().iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff),
            _ => None,
        })
    }

    /// Returns the ids of the terminals in the content.
    pub fn terminals(&self) -> impl Iterator<Item = &str> {
        self.content().iter().filter_map(|content| match content {
            ToolCallContent::Terminal(terminal) => Some(terminal.terminal_id.as_str()),
            _ => None,
        })
    }

    /// Returns the approximate size of the contents in bytes.
    pub fn size(&self) -> usize {
        let content = |content: &ToolCallContent| match content {
            ToolCallContent::Diff(diff) => {
                diff.path.len() + diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len)
            }
            ToolCallContent::Content(content) => block_size(&content.content),
            _ => SMALL,
        };
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
        self.id().as_str().len()
            + self.title().len()
            + self.content().iter().map(content).sum::<usize>()
            + self.locations().iter().map(|location| location.path.len() + SMALL).sum::<usize>()
            + json(&self.state.raw_input)
            + json(&self.state.raw_output)
            + self.state.meta.as_ref().map_or(0, |meta| meta.as_json().get().len())
    }

    /// Whether the agent reported that the call completed or failed.
    pub fn is_final(&self) -> bool {
        is_final(self.status())
    }

    /// Whether no more updates are expected.
    pub fn is_finished(&self) -> bool {
        self.interrupted || self.is_final()
    }
}

/// A question of the agent to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The owner's id of the question, which its answer names.
    pub id: String,
    /// The request.
    pub kind: QuestionKind,
    /// The answer; `None` while the question is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// The kinds of questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The agent asks for permission to run a tool.
    Permission(Box<RequestPermissionRequest>),
    /// The agent asks for input.
    Elicitation(Box<CreateElicitationRequest>),
}

/// The answer to a question, without the values that the user typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The user chose an option of a permission request.
    Selected(PermissionOptionId),
    /// The user provided the input.
    Accepted,
    /// The user declined to provide it.
    Declined,
    /// The question was cancelled.
    Cancelled,
    /// The client answered with an error.
    Failed(String),
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The agent answered the prompt.
    Stopped {
        /// The reason.
        reason: StopReason,
        /// The tokens that the agent counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg(feature = "unstable")]
        usage: Option<Usage>,
    },
    /// The turn ended with an error.
    Failed(String),
    /// The end was not reported, as at the end of a replayed history.
    Unreported,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The id; `None` for the plan of agents that have only one. Each id is tracked alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg(feature = "unstable")]
    pub id: Option<PlanId>, // PLAN-09
    /// The content.
    pub body: PlanBody,
    /// The `_meta` of the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Plan {
    /// Whether `other` is a later state of this plan.
    pub(crate) fn is_replaced_by(&self, other: &Plan) -> bool {
        match other {
            #[cfg(feature = "unstable")]
            other => self.id == other.id,
            #[cfg(not(feature = "unstable"))]
            _ => true,
        }
    }
}

/// The content of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanBody {
    /// A list of steps.
    Entries(Vec<PlanEntry>),
    /// A text in Markdown.
    Markdown(String),
    /// The address of a file.
    File(String),
}

/// An update that this version of the protocol does not define.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnknownUpdate {
    /// The value of `sessionUpdate`.
    pub tag: String,
    /// The whole update.
    pub update: Json,
}

impl Transcript {
    /// Returns the items that were not dropped, with their indices.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = (u64, &Item)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(at, item)| (self.first + at as u64, item))
    }

    /// Returns the index of the first item that was not dropped.
    pub fn start(&self) -> u64 {
        self.first
    }

    /// Returns the number of items so far, dropped ones included: the index of the next item.
    pub fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Returns an item that was not dropped.
    pub fn get(&self, at: u64) -> Option<&Item> {
        self.items.get(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    pub(crate) fn get_mut(&mut self, at: u64) -> Option<&mut Item> {
        self.items.get_mut(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    /// Returns the first item that was not dropped.
    pub fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    /// Returns the first item for the owner to shorten. The owner must not do so if others mirror
    /// the model.
    pub fn front_mut(&mut self) -> Option<&mut Item> {
        self.items.front_mut()
    }

    /// Returns a tool call that was not dropped, with its index.
    pub fn tool_call(&self, session: Option<&SessionId>, id: &ToolCallId) -> Option<(u64, &ToolCall)> {
        // Updates are mostly about recent calls.
        self.items().rev().find_map(|(at, item)| match &item.kind {
            ItemKind::ToolCall(call) if call.id() == id && item.session.as_ref() == session => {
                Some((at, &**call))
            }
            _ => None,
        })
    }

    /// Returns the number of tool calls that were retired and have not ended.
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Returns the tool calls that were not dropped.
    pub fn tool_calls(&self) -> impl DoubleEndedIterator<Item = &ToolCall> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// Whether later events can change an item.
    pub fn is_open(&self, at: u64) -> bool {
        match self.get(at).map(|item| &item.kind) {
            Some(ItemKind::Message(message)) => at + 1 == self.end() && !self.sealed && !message.prompt,
            #[cfg(feature = "unstable")]
            Some(ItemKind::SessionMessage(_)) => at + 1 == self.end() && !self.sealed,
            Some(ItemKind::ToolCall(call)) => !call.is_finished(),
            Some(ItemKind::Question(question)) => question.answer.is_none(),
            Some(ItemKind::Compaction(update)) => update.status == CompactionStatus::InProgress,
            _ => false,
        }
    }
}

pub(crate) fn is_final(status: ToolCallStatus) -> bool {
    matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed)
}

/// The size of parts that are not worth counting.
const SMALL: usize = 64;

fn block_size(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => text.text.len(),
            EmbeddedResourceResource::Blob(blob) => blob.blob.len(),
            _ => SMALL,
        },
        _ => SMALL,
    }
}

/// Merges a member with three states: an absent one keeps the earlier value.
pub(crate) fn merge_patch<T>(earlier: &mut Patch<T>, later: Patch<T>) {
    if !later.is_keep() {
        *earlier = later;
    }
}
