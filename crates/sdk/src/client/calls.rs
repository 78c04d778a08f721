//! Tool calls as they are now: the changes of a call, put together when they are read.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use attache_wire::v1::{
    Content, ContentBlock, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallUpdate, ToolKind,
};
use attache_wire::v2::{TerminalSize, ToolCallStatus as ToolStatus};
use attache_wire::{Json, Meta, Patch};

use super::event::{AgentTerminal, Event, TerminalChange, ToolCallChange, patch_meta};
use crate::{Edit, tool_status};

/// Calls that are kept, and their bytes; the oldest are forgotten first.
const CALLS: usize = 4_096;
const CALL_BYTES: usize = 4 << 20;
/// Terminals that are kept, and bytes of the output of each.
const TERMINALS: usize = 64;
const TERMINAL_OUTPUT: usize = 64 << 10;
/// Content that was added piece by piece and is kept, in bytes and pieces; beyond that only its
/// end.
const ADDED_BYTES: usize = 1 << 20;
const ADDED_PIECES: usize = 1_024;
/// Bytes of a call beside its texts.
const CALL_OVERHEAD: usize = 256;

/// A tool call as it is now.
///
/// The memory for calls is bounded. A change of a call that was forgotten starts with the members
/// of that change.
///
/// ```
/// use attache::client::{Event, ToolStatus};
///
/// fn finished(event: &Event) -> Option<&str> {
///     let Event::ToolCall(change) = event else { return None };
///     (change.call.status == ToolStatus::Completed).then_some(&*change.call.title)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The call.
    pub id: ToolCallId,
    /// The name of the tool, if the agent gave it. Agents of version 1 never do.
    pub name: Option<String>,
    /// The title.
    pub title: String,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The status. Agents of version 1 never pause or cancel a call.
    pub status: ToolStatus,
    /// The content. A diff of version 2 is one diff per hunk of its patch; `edits` has it as a
    /// whole.
    pub content: Vec<ToolCallContent>,
    /// The changes of files in the content.
    pub edits: Vec<Edit>,
    /// The files that the call works on.
    pub locations: Vec<ToolCallLocation>,
    /// The input of the tool.
    pub raw_input: Option<Json>,
    /// The output of the tool.
    pub raw_output: Option<Json>,
    /// Whether [`SessionControl::cancel_tool_call`](super::SessionControl::cancel_tool_call) works.
    pub cancellable: bool,
    /// `_meta` of the call.
    pub meta: Option<Meta>,
}

impl ToolCall {
    pub(crate) fn new(id: ToolCallId) -> Self {
        ToolCall {
            id,
            name: None,
            title: String::new(),
            kind: ToolKind::Other,
            status: ToolStatus::Pending,
            content: Vec::new(),
            edits: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            raw_output: None,
            cancellable: false,
            meta: None,
        }
    }

    // TOOL-05, TOOL-06: absent members stay, lists replace.
    fn merge(&mut self, update: &ToolCallUpdate) {
        fn set<T: Clone>(member: &mut T, new: &Option<T>) {
            if let Some(new) = new {
                member.clone_from(new);
            }
        }
        set(&mut self.title, &update.title);
        set(&mut self.kind, &update.kind);
        set(&mut self.content, &update.content);
        set(&mut self.locations, &update.locations);
        if let Some(content) = &update.content {
            self.edits = content.iter().filter_map(edit).collect();
        }
        if let Some(status) = update.status {
            self.status = tool_status::from_v1(status);
        }
        // Version 2 clears with `null`.
        let value = |json: &Option<Json>| json.clone().filter(|json| json.get() != "null");
        if update.name.is_some() {
            self.name.clone_from(&update.name);
        }
        if update.raw_input.is_some() {
            self.raw_input = value(&update.raw_input);
        }
        if update.raw_output.is_some() {
            self.raw_output = value(&update.raw_output);
        }
        if update.meta.is_some() {
            self.meta.clone_from(&update.meta);
        }
    }

    // V2-17
    fn append(&mut self, pieces: Vec<ToolCallContent>) {
        self.content.extend(pieces);
        let mut bytes: usize = self.content.iter().map(content_size).sum();
        let mut forgotten = 0;
        while (bytes > ADDED_BYTES || self.content.len() - forgotten > ADDED_PIECES)
            && forgotten + 1 < self.content.len()
        {
            bytes -= content_size(&self.content[forgotten]);
            forgotten += 1;
        }
        self.content.drain(..forgotten);
        let too_many = self.edits.len().saturating_sub(ADDED_PIECES);
        self.edits.drain(..too_many);
    }

    fn size(&self) -> usize {
        let content: usize = self.content.iter().map(content_size).sum();
        // The texts of edits are those of the content once more.
        let edits = if self.edits.is_empty() { 0 } else { content };
        let locations: usize = self.locations.iter().map(|location| location.path.len() + 64).sum();
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
        CALL_OVERHEAD
            + self.id.as_str().len()
            + self.title.len()
            + content
            + edits
            + locations
            + json(&self.raw_input)
            + json(&self.raw_output)
    }
}

fn edit(content: &ToolCallContent) -> Option<Edit> {
    match content {
        ToolCallContent::Diff(diff) => Some(Edit::from_v1(diff)),
        _ => None,
    }
}

/// The approximate memory of a piece of content.
pub(crate) fn content_size(content: &ToolCallContent) -> usize {
    const OVERHEAD: usize = 64;
    let texts = match content {
        ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) => text.text.len(),
        ToolCallContent::Content(Content { content: ContentBlock::Image(image), .. }) => image.data.len(),
        ToolCallContent::Content(Content { content: ContentBlock::Audio(audio), .. }) => audio.data.len(),
        ToolCallContent::Diff(diff) => {
            diff.path.len() + diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len)
        }
        // Links and resources; resources are counted as one that is usual.
        _ => 1 << 10,
    };
    OVERHEAD + texts
}

/// The calls of a session and its subagents.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: HashMap<u64, (Arc<ToolCall>, usize)>,
    order: VecDeque<u64>,
    bytes: usize,
    /// Terminals of the agent, the one that changed last at the end.
    terminals: VecDeque<(u64, Arc<AgentTerminal>)>,
    keys: RandomState,
}

impl Calls {
    /// Completes an event that is about to be given out.
    pub(crate) fn complete(&mut self, event: &mut Event) {
        match event {
            Event::ToolCall(change) => self.change("", change),
            Event::Terminal(change) => self.terminal("", change),
            #[cfg(feature = "unstable")]
            Event::FromSubagent(child, event) => match &mut **event {
                Event::ToolCall(change) => self.change(child.as_str(), change),
                Event::Terminal(change) => self.terminal(child.as_str(), change),
                _ => {}
            },
            _ => {}
        }
    }

    fn terminal(&mut self, child: &str, change: &mut TerminalChange) {
        let Some(update) = change.update.take() else { return };
        let key = self.keys.hash_one((child, update.terminal_id.as_str()));
        let place = self.terminals.iter().position(|(known, _)| *known == key);
        let mut terminal = match place.and_then(|place| self.terminals.remove(place)) {
            Some((_, terminal)) => terminal,
            None => change.terminal.clone(),
        };
        let now = Arc::make_mut(&mut terminal);
        update.command.apply(&mut now.command);
        update.cwd.apply(&mut now.cwd);
        update.exit_status.apply(&mut now.exit_status);
        let mut size = now.size.map(|(columns, rows)| TerminalSize::new(columns, rows));
        update.size.apply(&mut size);
        now.size = size.map(|size| (size.cols, size.rows));
        match update.capabilities {
            Patch::Keep => {}
            Patch::Clear => now.cancellable = false,
            Patch::Set(capabilities) => now.cancellable = capabilities.cancel.is_some(),
        }
        patch_meta(&mut now.meta, update.meta);
        if change.replaced {
            now.output.clear();
        }
        now.output.extend_from_slice(&change.appended);
        let too_many = now.output.len().saturating_sub(TERMINAL_OUTPUT);
        now.output.drain(..too_many);
        change.terminal = terminal.clone();
        self.terminals.push_back((key, terminal));
        if self.terminals.len() > TERMINALS {
            self.terminals.pop_front();
        }
    }

    fn change(&mut self, child: &str, change: &mut ToolCallChange) {
        let id = &change.update.tool_call_id;
        let key = self.keys.hash_one((child, id.as_str()));
        let mut call = match self.calls.remove(&key) {
            Some((call, bytes)) => {
                self.bytes -= bytes;
                call
            }
            None => {
                self.order.push_back(key);
                Arc::new(ToolCall::new(id.clone()))
            }
        };
        let extra = change.extra.take().map(|extra| *extra).unwrap_or_default();
        if extra.replaces {
            call = Arc::new(ToolCall::new(id.clone()));
        }
        let now = Arc::make_mut(&mut call);
        now.merge(&change.update);
        extra.name.apply(&mut now.name);
        // V2-18
        if !extra.meta.is_keep() {
            patch_meta(&mut now.meta, extra.meta);
            change.update.meta.clone_from(&now.meta);
        }
        match (extra.append.is_empty(), extra.edits) {
            (true, None) => {}
            (true, Some(edits)) => now.edits = edits,
            (false, edits) => {
                now.edits.extend(edits.into_iter().flatten());
                now.append(extra.append);
                change.update.content = Some(now.content.clone());
            }
        }
        if let Some(status) = extra.status {
            now.status = status;
        }
        now.cancellable = extra.cancellable.unwrap_or(now.cancellable);
        let bytes = now.size();
        change.call = call.clone();
        self.bytes += bytes;
        self.calls.insert(key, (call, bytes));
        while self.bytes > CALL_BYTES || self.calls.len() > CALLS {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some((_, bytes)) = self.calls.remove(&oldest) {
                self.bytes -= bytes;
            }
        }
    }
}
