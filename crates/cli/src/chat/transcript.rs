//! The conversation on the screen: the model of the session, and what the chat adds to it.

use std::collections::VecDeque;

use attache::client::{ContentPiece, Event, Speaker, TextChunk, ToolCallChange, ToolStatus};
use attache::wire::Patch;
pub(crate) use attache::wire::v1::NoticeSeverity as Severity;
use attache::wire::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, EmbeddedResourceResource, Notice,
    PlanEntryStatus, RequestPermissionRequest, SessionId, SessionUpdate, TextContent, ToolCallId,
    ToolCallStatus, ToolCallUpdate,
};
use attache_transcript::{
    Change, Event as ModelEvent, ItemKind, Message, PlanBody, QuestionKind, ToolCall, Transcript as Model,
    TurnEnd,
};

use super::subagents;
use super::tasks::{Tasks, whole_call};
use crate::client_services::TerminalOutputs;

/// Tool calls that may leave the screen before their end and come back with it.
const MAX_RETIRED: usize = 64;
/// Changes of files that `/diff` can show, in bytes of text; the oldest are forgotten.
const MAX_CHANGES: usize = 8 << 20;

/// A change of a file: the text before the first change and after the last one.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The items that have not gone up into the terminal's history, and the plans and subagents.
    pub(crate) model: Model,
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) changes: VecDeque<FileChange>,
    /// The work that continues after its turn.
    pub(crate) tasks: Tasks,
    /// Report updates of unknown kinds.
    pub(crate) verbose: bool,
    /// The subagent whose text is the last on the screen.
    speaking: Option<SessionId>,
}

impl Transcript {
    /// Folds an event. Questions and state of the session are handled elsewhere and have no effect
    /// here.
    pub(crate) fn event(&mut self, event: Event) {
        let (session, event) = match event {
            Event::FromSubagent(id, event) => (Some(id), *event),
            event => (None, event),
        };
        let speaks =
            matches!(event, Event::Text(_) | Event::Thought(_) | Event::User(_) | Event::ToolCall(_));
        if (session.is_some() || speaks) && self.speaking != session {
            if let Some(id) = &session {
                let name = subagents::name(&self.model, id);
                self.notice(Severity::Info, format!("subagent {name}"));
            }
            self.speaking.clone_from(&session);
        }
        match event {
            Event::Background(work) => self.tasks.replace(&work),
            Event::ToolCall(change) if session.is_none() && self.tasks.note(&change) => {
                self.background_call(change);
            }
            Event::ToolCall(change) => self.tool(session, change.created, *change.update),
            Event::Terminal(change) => self.terminal_outputs.agent_terminal(&change),
            // What is on the screen cannot be taken back; the new text follows.
            Event::Message(change) => {
                self.end_message();
                for block in change.content {
                    let update = chunk(change.speaker, ContentChunk::new(block));
                    self.update(session.clone(), update);
                }
                self.end_message();
            }
            event => {
                if let Some(update) = to_update(event) {
                    self.update(session, update);
                }
            }
        }
    }

    fn update(&mut self, session: Option<SessionId>, update: SessionUpdate) {
        let Some(change) = self.model.change(ModelEvent::Update(session, update)) else { return };
        match &change {
            Change::Push(item) => match &item.kind {
                ItemKind::Compaction(update) => self.compaction_notice(update),
                ItemKind::SessionMessage(message) => {
                    let head = subagents::message_head(&self.model, message);
                    self.notice(Severity::Info, head);
                }
                // PROMPT-16: unknown kinds are skipped, and reported to users who want to know.
                ItemKind::Unknown(unknown) if self.verbose => {
                    let text = format!("unknown update from the agent: {}", unknown.tag);
                    self.notice(Severity::Info, text);
                }
                _ => {}
            },
            Change::Subagent(update) => {
                if let Some((severity, text)) = subagents::notice(&self.model, update) {
                    self.notice(severity, text);
                }
                subagents::forget_old(&mut self.model);
            }
            _ => {}
        }
        // A notice that was added meanwhile moves the end, but no item.
        let ended = match &change {
            Change::Compaction(at, update) => match self.model.get(*at).map(|item| &item.kind) {
                Some(ItemKind::Compaction(known)) if known.status != update.status => Some(update.clone()),
                _ => None,
            },
            _ => None,
        };
        self.model.apply(change);
        if let Some(update) = ended {
            self.compaction_notice(&update);
        }
    }

    /// Folds a change of a call that continues after its turn: only its end is shown, in full.
    fn background_call(&mut self, change: ToolCallChange) {
        let shown = self.model.tool_call(None, change.id()).is_some_and(|(_, call)| !call.is_finished());
        if shown {
            return self.tool(None, change.created, *change.update);
        }
        match change.call.status {
            ToolStatus::Cancelled => {
                self.notice(Severity::Warning, format!("cancelled: {}", change.call.title));
            }
            ToolStatus::Completed | ToolStatus::Failed => self.tool(None, true, whole_call(&change)),
            _ => {}
        }
    }

    fn compaction_notice(&mut self, update: &CompactionUpdate) {
        let cause = match &update.error {
            Patch::Set(error) => format!(": {error}"),
            _ => String::new(),
        };
        let (severity, text) = match &update.status {
            CompactionStatus::InProgress => (Severity::Info, "the conversation is being compacted"),
            CompactionStatus::Completed => (Severity::Info, "the conversation was compacted"),
            CompactionStatus::Failed => (Severity::Warning, "the conversation could not be compacted"),
            CompactionStatus::Cancelled => (Severity::Warning, "the conversation was not compacted"),
            _ => (Severity::Info, "unknown compaction state"),
        };
        self.notice(severity, format!("{text}{cause}"));
    }

    /// Adds a chunk of text of the session itself.
    pub(crate) fn say(&mut self, speaker: Speaker, text: &str) {
        self.update(None, chunk(speaker, ContentChunk::new(text)));
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.model.fold(ModelEvent::Prompt(vec![text.into()]));
    }

    pub(crate) fn notice(&mut self, severity: Severity, text: impl Into<String>) {
        self.model.fold(SessionUpdate::from(Notice::new(severity, text.into())).into());
    }

    /// Ends the last message: the next chunk begins another one.
    pub(crate) fn end_message(&mut self) {
        self.model.fold(ModelEvent::MessageEnded);
    }

    /// Folds an update of a tool call. One without a title is ignored if the call is unknown.
    // TOOL-21
    pub(crate) fn tool(&mut self, session: Option<SessionId>, created: bool, update: ToolCallUpdate) {
        let id = update.tool_call_id.clone();
        let creates = created || update.title.is_some();
        let event = ModelEvent::Update(session.clone(), SessionUpdate::from(update));
        match self.model.change(event) {
            Some(Change::Push(_)) if !creates => {}
            Some(change) => self.model.apply(change),
            None => {}
        }
        self.remember_changes(session.as_ref(), &id);
    }

    /// Marks a tool call as allowed without a question.
    pub(crate) fn allow(&mut self, id: &ToolCallId, by: &str) {
        if let Some((session, _)) = self.find_tool(id) {
            self.model.fold(ModelEvent::Allowed { session, id: id.clone(), by: by.to_owned() });
        }
    }

    /// Marks the tool call that runs as allowed without a question. Returns whether there is one.
    pub(crate) fn allow_running(&mut self, by: &str) -> bool {
        let running = self.model.tool_calls().rev().find(|call| !call.is_finished());
        let Some(id) = running.map(|call| call.id().clone()) else { return false };
        if running.is_some_and(|call| call.allowed_by.is_none()) {
            self.allow(&id, by);
        }
        true
    }

    /// Marks a tool call as refused.
    pub(crate) fn deny(&mut self, id: &ToolCallId) {
        let session = self.find_tool(id).and_then(|(session, _)| session);
        self.model.fold(ModelEvent::Denied { session, id: id.clone() });
    }

    /// Marks the tool call that runs as refused.
    pub(crate) fn deny_running(&mut self) {
        let running = self.model.tool_calls().rev().find(|call| !call.is_finished());
        if let Some(id) = running.map(|call| call.id().clone()) {
            self.deny(&id);
        }
    }

    /// Records that the user is asked about a tool call.
    pub(crate) fn asked(&mut self, request: &RequestPermissionRequest) {
        let call = &request.tool_call.tool_call_id;
        if let Some((session, _)) = self.find_tool(call) {
            let kind = QuestionKind::Permission(Box::new(request.clone()));
            self.model.fold(ModelEvent::Asked { session, id: call.to_string(), kind });
        }
    }

    /// Returns a tool call of the session or of a subagent.
    pub(crate) fn find_tool(&self, id: &ToolCallId) -> Option<(Option<SessionId>, &ToolCall)> {
        self.model.items().rev().find_map(|(_, item)| match &item.kind {
            ItemKind::ToolCall(call) if call.id() == id => Some((item.session.clone(), &**call)),
            _ => None,
        })
    }

    fn remember_changes(&mut self, session: Option<&SessionId>, id: &ToolCallId) {
        let Some((_, call)) = self.model.tool_call(session, id) else { return };
        if call.status() != ToolCallStatus::Completed {
            return;
        }
        for diff in call.diffs() {
            match self.changes.iter_mut().find(|change| change.path == diff.path) {
                Some(change) => change.new.clone_from(&diff.new_text),
                None => self.changes.push_back(FileChange {
                    path: diff.path.clone(),
                    old: diff.old_text.clone(),
                    new: diff.new_text.clone(),
                }),
            }
        }
        let size = |change: &FileChange| change.new.len() + change.old.as_ref().map_or(0, String::len);
        while self.changes.len() > 1 && self.changes.iter().map(size).sum::<usize>() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    /// Drops the tool call in front, which has not ended. If it can be kept in mind, it comes back
    /// with its end.
    pub(crate) fn retire_front(&mut self) {
        if self.model.retired() < MAX_RETIRED {
            self.model.retire_front();
        } else {
            self.model.pop_front();
        }
    }

    /// Whether a plan has steps that are not done.
    pub(crate) fn has_open_plan(&self) -> bool {
        self.model.plans.iter().any(|plan| match &plan.body {
            PlanBody::Entries(entries) => {
                entries.iter().any(|entry| entry.status != PlanEntryStatus::Completed)
            }
            PlanBody::Markdown(_) | PlanBody::File(_) => true,
        })
    }

    /// Ends the turn: no item changes any more.
    pub(crate) fn end_turn(&mut self) {
        self.model.fold(ModelEvent::TurnEnded(TurnEnd::Unreported));
        let unshown = self.terminal_outputs.lock().take_unshown();
        unshown.into_iter().for_each(|number| self.model.fold(ModelEvent::Terminal(number)));
    }
}

/// Turns an event back into the update that it came from. `None` for questions and for state of the
/// session.
fn to_update(event: Event) -> Option<SessionUpdate> {
    Some(match event {
        Event::Text(text) => text_chunk(Speaker::Agent, text),
        Event::Thought(text) => text_chunk(Speaker::Thought, text),
        Event::User(text) => text_chunk(Speaker::User, text),
        Event::Content(ContentPiece { speaker, block, message_id, .. }) => {
            let mut content = ContentChunk::new(*block);
            content.message_id = message_id;
            chunk(speaker, content)
        }
        Event::ToolCall(change) => SessionUpdate::ToolCallUpdate(change.update),
        Event::Plan(plan) => plan.into(),
        Event::PlanUpdate(update) => (*update).into(),
        Event::PlanRemoved(removed) => removed.into(),
        Event::Notice(notice) => (*notice).into(),
        Event::Compaction(update) => SessionUpdate::CompactionUpdate(update),
        Event::CompactionSummary(chunk) => (*chunk).into(),
        Event::Subagent(update) => SessionUpdate::SubagentUpdate(update),
        Event::SessionMessage(message) => SessionUpdate::SessionMessage(message),
        Event::SessionMessageChunk(chunk) => (*chunk).into(),
        Event::Other(unknown) => SessionUpdate::Other(unknown),
        _ => return None,
    })
}

fn text_chunk(speaker: Speaker, text: TextChunk) -> SessionUpdate {
    let mut block = TextContent::new(text.text);
    (block.annotations, block.meta) = (text.annotations, text.meta);
    let mut content = ContentChunk::new(block);
    content.message_id = text.message_id;
    chunk(speaker, content)
}

fn chunk(speaker: Speaker, chunk: ContentChunk) -> SessionUpdate {
    match speaker {
        Speaker::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        Speaker::User => SessionUpdate::UserMessageChunk(chunk),
        _ => SessionUpdate::AgentMessageChunk(chunk),
    }
}

/// Returns the text of a message, with content that is not text in words.
pub(crate) fn message_text(message: &Message) -> String {
    message.content.iter().map(describe).collect()
}

/// Returns the text of a block, or a description of content that is not text.
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
