//! Changes of a transcript and their execution.

use attache_wire::Patch;
use attache_wire::v1::{
    AvailableCommand, CompactionUpdate, ContentBlock, SessionConfigOption, SessionInfoUpdate, SessionMode,
    SessionModeId, ToolCallUpdate, UsageUpdate,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{PlanId, SessionMessage, SubagentUpdate};
use serde::{Deserialize, Serialize};

use crate::model::{Answer, Item, ItemKind, Plan, QuestionKind, ToolCall, Transcript, TurnEnd, merge_patch};

/// One change of a transcript. Numbers are indices of items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Adds an item at the end, and ends the message before it.
    Push(Item),
    /// Appends text to the last block of a message, a compaction summary or a session message.
    AppendText(u64, String),
    /// Appends a block to a message, a compaction summary or a session message.
    AppendBlock(u64, ContentBlock),
    /// Replaces the content of a message.
    SetContent(u64, Vec<ContentBlock>),
    /// Merges an update into a tool call.
    ToolCall(u64, Box<ToolCallUpdate>),
    /// Replaces the state of a tool call.
    ReplaceToolCall(u64, Box<ToolCallUpdate>),
    /// Merges the last update into a retired tool call and adds the call at the end.
    ReturnToolCall(u64, Box<ToolCallUpdate>),
    /// Records the rule or mode that allowed a tool call without a question.
    Allowed(u64, String),
    /// Records that a tool call was refused.
    Denied(u64),
    /// Merges an update into a compaction.
    Compaction(u64, Box<CompactionUpdate>),
    /// Merges an update into a message between sessions.
    #[cfg(feature = "unstable")]
    SessionMessage(u64, Box<SessionMessage>),
    /// Answers a question.
    Answer(u64, Answer),
    /// Ends the last message: the next chunk begins a new one.
    EndMessage,
    /// Ends the turn: adds an item and interrupts the tool calls that still run.
    EndTurn(TurnEnd),
    /// Adds a plan or replaces the one with the same id.
    Plan(Plan), // PLAN-04
    /// Removes a plan.
    #[cfg(feature = "unstable")]
    RemovePlan(Option<PlanId>),
    /// Replaces the current mode.
    Mode(SessionModeId),
    /// Replaces the list of modes and the current one.
    Modes(Vec<SessionMode>, SessionModeId),
    /// Replaces the config options.
    ConfigOptions(Vec<SessionConfigOption>), // CONF-16
    /// Replaces the slash commands.
    Commands(Vec<AvailableCommand>), // CMD-02
    /// Updates title and time.
    Info(Box<SessionInfoUpdate>),
    /// Replaces the usage.
    Usage(Box<UsageUpdate>),
    /// Adds a subagent or merges an update into it.
    #[cfg(feature = "unstable")]
    Subagent(Box<SubagentUpdate>),
    /// Drops the first item.
    PopFront,
    /// Drops the first item but keeps its tool call until the call or the turn ends.
    RetireFront,
}

impl Transcript {
    /// Drops the first item and returns it.
    pub fn pop_front(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.first += 1;
        Some(item)
    }

    /// Drops the first item. If it is a tool call, later updates still reach it, and it becomes a
    /// new item when it ends.
    pub fn retire_front(&mut self) {
        let at = self.first;
        if let Some(item) = self.pop_front().filter(|item| matches!(item.kind, ItemKind::ToolCall(_))) {
            self.retired.insert(at, item);
        }
    }

    /// Executes a change. A change that names an item of another kind, or none, has no effect.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Push(item) => self.push(item),
            Change::AppendText(at, text) => {
                if let Some(ContentBlock::Text(last)) = self.content_mut(at).and_then(|all| all.last_mut()) {
                    last.text.push_str(&text);
                }
            }
            Change::AppendBlock(at, block) => {
                if let Some(content) = self.content_mut(at) {
                    content.push(block);
                }
            }
            Change::SetContent(at, new) => {
                if let Some(content) = self.content_mut(at) {
                    *content = new;
                }
            }
            Change::ToolCall(at, update) => {
                if let Some(call) = self.call_mut(at) {
                    call.state.merge(*update);
                }
            }
            Change::ReplaceToolCall(at, update) => {
                if let Some(call) = self.call_mut(at) {
                    // A call that still runs is reported again; a permission that it has stays.
                    match call.is_finished() {
                        true => *call = ToolCall::new(*update),
                        false => call.state = *update,
                    }
                }
            }
            Change::ReturnToolCall(at, update) => {
                if let Some(mut item) = self.retired.remove(&at) {
                    if let Some(call) = call_of(&mut item) {
                        call.state.merge(*update);
                    }
                    self.push(item);
                }
            }
            Change::Allowed(at, by) => {
                if let Some(call) = self.get_mut(at).and_then(call_of) {
                    call.allowed_by = Some(by);
                }
            }
            Change::Denied(at) => {
                if let Some(call) = self.call_mut(at) {
                    call.denied = true;
                }
            }
            Change::Compaction(at, update) => {
                if let Some(ItemKind::Compaction(known)) = self.get_mut(at).map(|item| &mut item.kind) {
                    known.status = update.status;
                    // NOTE-09: what is absent stays.
                    merge_patch(&mut known.summary, update.summary);
                    merge_patch(&mut known.error, update.error);
                    merge_patch(&mut known.meta, update.meta);
                }
            }
            Change::Answer(at, answer) => {
                if let Some(ItemKind::Question(question)) = self.get_mut(at).map(|item| &mut item.kind) {
                    question.answer = Some(answer);
                }
            }
            Change::EndMessage => self.sealed = true,
            Change::EndTurn(end) => {
                for call in self.items.iter_mut().filter_map(call_of) {
                    call.interrupted |= !call.is_final();
                }
                self.retired.clear();
                self.push(Item { session: None, kind: ItemKind::TurnEnd(end) });
            }
            Change::Plan(plan) => match self.plans.iter_mut().find(|known| known.is_replaced_by(&plan)) {
                Some(known) => *known = plan,
                None => self.plans.push(plan),
            },
            Change::Mode(mode) => self.mode = Some(mode),
            Change::Modes(modes, current) => (self.modes, self.mode) = (modes, Some(current)),
            Change::ConfigOptions(options) => self.config_options = options,
            Change::Commands(commands) => self.commands = commands,
            Change::Info(info) => {
                // LIST-12: absent leaves, null clears.
                info.title.apply(&mut self.title);
                info.updated_at.apply(&mut self.updated_at);
            }
            Change::Usage(usage) => self.usage = Some(*usage),
            Change::PopFront => drop(self.pop_front()),
            Change::RetireFront => self.retire_front(),
            #[cfg(feature = "unstable")]
            change => self.apply_unstable(change),
        }
    }

    fn push(&mut self, item: Item) {
        if let ItemKind::Question(question) = &item.kind
            && let QuestionKind::Permission(request) = &question.kind
            && let Some((at, _)) = self.tool_call(item.session.as_ref(), &request.tool_call.tool_call_id)
            && let Some(call) = self.get_mut(at).and_then(call_of)
        {
            call.asked = true;
        }
        self.items.push_back(item);
        self.sealed = false;
    }

    /// Returns a tool call, retired or not.
    fn call_mut(&mut self, at: u64) -> Option<&mut ToolCall> {
        let item = match at < self.first {
            true => self.retired.get_mut(&at),
            false => self.get_mut(at),
        };
        item.and_then(call_of)
    }

    /// Returns the blocks of an item that grows by chunks.
    fn content_mut(&mut self, at: u64) -> Option<&mut Vec<ContentBlock>> {
        let patch = match &mut self.get_mut(at)?.kind {
            ItemKind::Message(message) => return Some(&mut message.content),
            ItemKind::Compaction(compaction) => &mut compaction.summary,
            #[cfg(feature = "unstable")]
            ItemKind::SessionMessage(message) => &mut message.content,
            _ => return None,
        };
        if !matches!(patch, Patch::Set(_)) {
            *patch = Patch::Set(Vec::new());
        }
        match patch {
            Patch::Set(content) => Some(content),
            _ => None,
        }
    }
}

fn call_of(item: &mut Item) -> Option<&mut ToolCall> {
    match &mut item.kind {
        ItemKind::ToolCall(call) => Some(call),
        _ => None,
    }
}
