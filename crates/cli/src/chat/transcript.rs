//! What was said and done, as blocks: a plain fold over the events of a session. Nothing here knows how it looks.

use std::collections::{HashMap, VecDeque};

use attache::client::{Event, Speaker};
use attache::wire::Patch;
use attache::wire::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, EmbeddedResourceResource, MessageId,
    NoticeSeverity, PlanEntry, PlanEntryStatus, PlanUpdateContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate,
};

use super::subagents::Subagents;
use crate::client_services::TerminalOutputs;
use crate::tool_call::ToolState;

/// Tool calls that left the transcript before their end and may still be heard of.
const AWAY: usize = 64;
/// Changes of files that `/diff` can show, in bytes of text; the oldest are forgotten.
const CHANGES: usize = 8 << 20;

/// How serious a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

/// A piece of a conversation.
#[derive(Debug)]
pub(crate) enum Block {
    Message(Message),
    Tool(Box<ToolState>),
    /// Output of a terminal that belongs to no tool call.
    Terminal(u64),
    Notice(Severity, String),
}

/// A message, or what of it has not been taken out yet.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) speaker: Speaker,
    pub(crate) id: Option<MessageId>,
    pub(crate) text: String,
    /// Part of a subagent's conversation.
    pub(crate) inner: bool,
    pub(crate) done: bool,
}

/// A change of a file: the text before the first change and after the last one.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

/// What a plan is made of.
#[derive(Debug, PartialEq)]
pub(crate) enum PlanBody {
    Entries(Vec<PlanEntry>),
    Text(String),
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) blocks: VecDeque<Block>,
    /// The plans by their id; the one without an id comes first.
    pub(crate) plans: Vec<(String, PlanBody)>,
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) changes: VecDeque<FileChange>,
    pub(crate) subagents: Subagents,
    /// Tell also what nobody knows what to do with.
    pub(crate) verbose: bool,
    /// What was told last about a compaction, and whether its summary has come in pieces.
    compaction: Option<(CompactionId, CompactionStatus, bool)>,
    away: HashMap<ToolCallId, Box<ToolState>>,
}

impl Transcript {
    /// Takes in an event. Questions and what is a state of the session are not for here and do nothing.
    pub(crate) fn event(&mut self, event: Event) {
        // Whose words they are is said when somebody else begins to speak.
        if let Event::FromSubagent(id, _) = &event {
            if let Some(name) = self.subagents.speaks(Some(id)) {
                self.notice(Severity::Info, format!("subagent {name}"));
            }
        } else if matches!(event, Event::Text(_) | Event::Thought(_) | Event::User(_) | Event::ToolCall(_)) {
            self.subagents.speaks(None);
        }
        self.fold(event, false);
    }

    fn fold(&mut self, event: Event, inner: bool) {
        match event {
            Event::Text(chunk) => self.say(Speaker::Agent, chunk.message_id, &chunk.text, inner),
            Event::Thought(chunk) => self.say(Speaker::Thought, chunk.message_id, &chunk.text, inner),
            Event::User(chunk) => self.say(Speaker::User, chunk.message_id, &chunk.text, inner),
            Event::Content(piece) => {
                self.say(piece.speaker, piece.message_id, &describe(&piece.block), inner)
            }
            Event::ToolCall(change) => {
                let id = change.update.tool_call_id.clone();
                self.tool(change.created, *change.update);
                if inner && let Some(tool) = self.find_tool(&id) {
                    tool.inner = true;
                }
            }
            Event::Plan(plan) => self.set_plan(String::new(), PlanBody::Entries(plan.entries)),
            Event::PlanUpdate(update) => match update.plan {
                PlanUpdateContent::Items(plan) => {
                    self.set_plan(plan.plan_id.to_string(), PlanBody::Entries(plan.entries));
                }
                PlanUpdateContent::Markdown(plan) => {
                    self.set_plan(plan.plan_id.to_string(), PlanBody::Text(plan.content));
                }
                PlanUpdateContent::File(plan) => {
                    self.set_plan(plan.plan_id.to_string(), PlanBody::Text(format!("see {}", plan.uri)));
                }
                _ => {}
            },
            Event::PlanRemoved(removed) => self.plans.retain(|(id, _)| id != removed.plan_id.as_str()),
            Event::Notice(notice) => {
                let severity = match notice.severity {
                    NoticeSeverity::Warning => Severity::Warning,
                    NoticeSeverity::Error => Severity::Error,
                    _ => Severity::Info,
                };
                let text = match notice.description {
                    Some(more) => format!("{}\n{more}", notice.title),
                    None => notice.title,
                };
                self.notice(severity, text);
            }
            Event::Compaction(update) => self.compacted(*update),
            Event::CompactionSummary(chunk) => {
                if let Some((id, _, in_pieces)) = &mut self.compaction
                    && *id == chunk.compaction_id
                {
                    *in_pieces = true;
                }
                let id = MessageId::from(chunk.compaction_id.as_str());
                self.say(Speaker::Thought, Some(id), &describe(&chunk.content), inner);
            }
            Event::Subagent(update) => {
                if let Some((severity, text)) = self.subagents.update(*update) {
                    self.notice(severity, text);
                }
            }
            Event::SessionMessage(letter) => {
                let id = letter.message_id.clone();
                let (head, text) = self.subagents.letter(*letter);
                self.notice(Severity::Info, head);
                if !text.is_empty() {
                    self.say(Speaker::Agent, Some(id), &text, true);
                }
            }
            Event::SessionMessageChunk(chunk) => {
                self.say(Speaker::Agent, Some(chunk.message_id), &describe(&chunk.content), true);
            }
            Event::FromSubagent(_, event) => self.fold(*event, true),
            // PROMPT-16: what is not known is passed over; who wants to know is told.
            Event::Other(unknown) if self.verbose => {
                self.notice(Severity::Info, format!("unknown update from the agent: {}", unknown.tag));
            }
            _ => {}
        }
    }

    fn compacted(&mut self, update: CompactionUpdate) {
        let same = self.compaction.as_ref().filter(|(id, ..)| *id == update.compaction_id);
        let in_pieces = same.is_some_and(|(_, _, in_pieces)| *in_pieces);
        if same.is_none_or(|(_, status, _)| *status != update.status) {
            let why = match &update.error {
                Patch::Set(why) => format!(": {why}"),
                _ => String::new(),
            };
            let (severity, text) = match &update.status {
                CompactionStatus::InProgress => (Severity::Info, "the conversation is being compacted"),
                CompactionStatus::Completed => (Severity::Info, "the conversation was compacted"),
                CompactionStatus::Failed => (Severity::Warning, "the conversation could not be compacted"),
                CompactionStatus::Cancelled => (Severity::Warning, "the conversation was not compacted"),
                _ => (Severity::Info, "unknown compaction state"),
            };
            self.notice(severity, format!("{text}{why}"));
        }
        if let (Patch::Set(summary), false) = (&update.summary, in_pieces) {
            let text: Vec<String> = summary.iter().map(describe).collect();
            let id = MessageId::from(update.compaction_id.as_str());
            self.say(Speaker::Thought, Some(id), &text.join("\n\n"), false);
        }
        self.compaction = Some((update.compaction_id, update.status, in_pieces));
    }

    /// MSG-01, MSG-04: pieces of one message follow each other; another id or another kind starts the next.
    pub(crate) fn say(&mut self, speaker: Speaker, id: Option<MessageId>, text: &str, inner: bool) {
        if let Some(Block::Message(last)) = self.blocks.back_mut()
            && last.speaker == speaker
            && last.id == id
            && last.inner == inner
            && !last.done
        {
            last.text.push_str(text);
            return;
        }
        self.push(Block::Message(Message { speaker, id, text: text.to_owned(), inner, done: false }));
    }

    pub(crate) fn notice(&mut self, severity: Severity, text: impl Into<String>) {
        self.push(Block::Notice(severity, text.into()));
    }

    /// A new block ends the message before it.
    pub(crate) fn push(&mut self, block: Block) {
        self.end_message();
        self.blocks.push_back(block);
    }

    /// What was being said is said: whatever comes next is another message.
    pub(crate) fn end_message(&mut self) {
        if let Some(Block::Message(last)) = self.blocks.back_mut() {
            last.done = true;
        }
    }

    pub(crate) fn tool(&mut self, created: bool, update: ToolCallUpdate) {
        let id = update.tool_call_id.clone();
        if let Some(tool) = self.find_tool(&id) {
            tool.merge(update);
        } else if let Some(mut tool) = self.away.remove(&id) {
            tool.merge(update);
            // It is told again when there is something new to tell: how it ended.
            if tool.finished() {
                self.push(Block::Tool(tool));
            } else {
                self.away.insert(id.clone(), tool);
            }
        } else if created || update.title.is_some() {
            let mut tool = Box::new(ToolState::new(id.clone()));
            tool.merge(update);
            self.push(Block::Tool(tool));
        }
        self.remember_changes(&id);
    }

    /// Marks a tool call as allowed without a question.
    pub(crate) fn allowed(&mut self, id: &ToolCallId, by: &str) {
        if let Some(tool) = self.find_tool(id) {
            tool.allowed_by = Some(by.to_owned());
        }
    }

    /// Marks the tool call that runs as allowed without a question. Returns whether there is one.
    pub(crate) fn allowed_now(&mut self, by: &str) -> bool {
        let running = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Tool(tool) if !tool.finished() => Some(tool),
            _ => None,
        });
        match running {
            Some(tool) => {
                tool.allowed_by.get_or_insert_with(|| by.to_owned());
                true
            }
            None => false,
        }
    }

    pub(crate) fn find_tool(&mut self, id: &ToolCallId) -> Option<&mut ToolState> {
        self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Tool(tool) if tool.id == *id => Some(&mut **tool),
            _ => None,
        })
    }

    fn remember_changes(&mut self, id: &ToolCallId) {
        let done = |tool: &&mut ToolState| tool.status == ToolCallStatus::Completed;
        let Some(tool) = self.find_tool(id).filter(done) else { return };
        let diffs: Vec<_> = tool.diffs().cloned().collect();
        for diff in diffs {
            match self.changes.iter_mut().find(|change| change.path == diff.path) {
                Some(change) => change.new = diff.new_text,
                None => self.changes.push_back(FileChange {
                    path: diff.path,
                    old: diff.old_text,
                    new: diff.new_text,
                }),
            }
        }
        let size = |change: &FileChange| change.new.len() + change.old.as_ref().map_or(0, String::len);
        while self.changes.len() > 1 && self.changes.iter().map(size).sum::<usize>() > CHANGES {
            self.changes.pop_front();
        }
    }

    /// Keeps a tool call in mind that left the transcript before its end.
    pub(crate) fn send_away(&mut self, tool: Box<ToolState>) {
        if self.away.len() < AWAY {
            self.away.insert(tool.id.clone(), tool);
        }
    }

    fn set_plan(&mut self, id: String, body: PlanBody) {
        match self.plans.iter_mut().find(|(known, _)| *known == id) {
            Some((_, plan)) => *plan = body,
            None => self.plans.push((id, body)),
        }
    }

    /// Whether there are steps that are not done.
    pub(crate) fn plan_open(&self) -> bool {
        self.plans.iter().any(|(_, body)| match body {
            PlanBody::Entries(entries) => {
                entries.iter().any(|entry| entry.status != PlanEntryStatus::Completed)
            }
            PlanBody::Text(_) => true,
        })
    }

    /// The turn is over: nothing in the transcript changes any more.
    pub(crate) fn end_turn(&mut self) {
        self.end_message();
        for block in &mut self.blocks {
            if let Block::Tool(tool) = block {
                tool.over = true;
            }
        }
        self.away.clear();
        let unshown = self.terminal_outputs.lock().take_unshown();
        self.blocks.extend(unshown.into_iter().map(Block::Terminal));
    }
}

/// Content that is not text, in words.
pub(crate) fn describe(block: &ContentBlock) -> String {
    // Base64 has four characters for three bytes.
    let size = |data: &str| {
        let bytes = data.len() / 4 * 3;
        if bytes < 10_240 { format!("{bytes} bytes") } else { format!("{} KiB", bytes / 1024) }
    };
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}, {}]", image.mime_type, size(&image.data)),
        ContentBlock::Audio(audio) => format!("[sound {}, {}]", audio.mime_type, size(&audio.data)),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => format!("[{}]", text.uri),
            EmbeddedResourceResource::Blob(blob) => format!("[{}, {}]", blob.uri, size(&blob.blob)),
            _ => "[resource]".to_owned(),
        },
        _ => "[content]".to_owned(),
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
