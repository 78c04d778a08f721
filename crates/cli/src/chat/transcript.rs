//! What was said and done, as blocks: a plain fold over the events of a session. Nothing here knows how it looks.

use std::collections::{HashMap, VecDeque};

use attache::client::{Event, Speaker};
use attache::wire::v1::{
    CompactionStatus, ContentBlock, EmbeddedResourceResource, MessageId, NoticeSeverity, PlanEntry,
    PlanEntryStatus, PlanUpdateContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
};

use super::output::Screens;
use super::tool::ToolState;

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
    pub(crate) screens: Screens,
    pub(crate) changes: VecDeque<FileChange>,
    away: HashMap<ToolCallId, Box<ToolState>>,
}

impl Transcript {
    /// Takes in an event. Questions and what is a state of the session are not for here and do nothing.
    pub(crate) fn event(&mut self, event: Event) {
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
            Event::ToolCall(change) => self.tool(change.created, *change.update),
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
            Event::Compaction(update) => match update.status {
                CompactionStatus::InProgress => {
                    self.notice(Severity::Info, "the conversation is being compacted")
                }
                CompactionStatus::Completed => self.notice(Severity::Info, "the conversation was compacted"),
                CompactionStatus::Failed => {
                    self.notice(Severity::Warning, "the conversation could not be compacted")
                }
                _ => {}
            },
            Event::FromSubagent(_, event) => self.fold(*event, true),
            Event::ElicitationComplete(_) => self.notice(Severity::Info, "what the agent asked for is done"),
            // PROMPT-16: what is not known is shown, not hidden and not fatal.
            Event::Other(unknown) => {
                self.notice(Severity::Info, format!("the agent sent something unknown: {}", unknown.tag));
            }
            _ => {}
        }
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

    fn end_message(&mut self) {
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
        let unshown = self.screens.lock().take_unshown();
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
