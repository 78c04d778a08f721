//! Folds a log into the model's conversation, and into the updates of a client that loads the
//! session.

use std::collections::BTreeMap;

use attache::Patch;
use attache::wire::v1::{
    CompactionStatus, CompactionUpdate, IdleStateUpdate, IdleStopReason, SessionUpdate, StateUpdate,
    SubagentUpdate, ToolCallStatus, ToolCallUpdate,
};
use attache_transcript::{ItemKind, Transcript, join_chunks};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Entry, Log, Logged, Mark};
use crate::model::{Message, Role, complete_calls};

/// The model's text where a response broke off.
const BROKEN_OFF: &str = "[The response broke off here.]";

impl Log {
    /// The model's conversation: whole messages, summaries instead of the messages that they cover,
    /// and interrupted turns completed.
    pub fn context(&self) -> Vec<Message> {
        conversation(self)
    }

    /// The texts of the user's messages, oldest first, without those of refused prompts and without
    /// notes in brackets.
    pub fn user_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut began = 0;
        for logged in self.iter() {
            match &logged.entry {
                Entry::Message(message) if message.role == Role::User => {
                    words.extend(
                        Some(message.text()).filter(|text| !text.is_empty() && !text.starts_with('[')),
                    );
                }
                Entry::Mark(Mark::Began) => began = words.len(),
                Entry::Mark(Mark::Ended { stop, .. }) if stop == "refusal" => words.truncate(began),
                _ => {}
            }
        }
        words.dedup();
        words
    }

    /// Returns every update that the client had seen, in order, for `session/load`. Chunks of one
    /// text are joined; unfinished tool calls and compactions are closed.
    pub fn replay(&self) -> Vec<SessionUpdate> {
        updates(self)
    }

    /// The last value of every setting.
    pub fn settings(&self) -> BTreeMap<String, Value> {
        let setting = |logged: &Logged| match &logged.entry {
            Entry::Setting { key, value } => Some((key.clone(), value.clone())),
            _ => None,
        };
        self.iter().filter_map(setting).collect()
    }
}

/// The conversation that a log holds.
fn conversation(log: &[Logged]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let summary = log.iter().rev().find_map(|logged| match &logged.entry {
        Entry::Compacted { upto, summary } => Some((*upto, summary)),
        _ => None,
    });
    let from = summary.map_or(0, |(upto, _)| upto);
    if let Some((_, summary)) = summary {
        messages.push(Message::user(format!("[What was said before, in short]\n{summary}")));
    }
    // Text of a response that did not become a message.
    let mut spoken = String::new();
    // The start of the present turn.
    let mut began = messages.len();
    for logged in log.iter().filter(|logged| logged.seq > from) {
        match &logged.entry {
            Entry::Update(update) => {
                spoken.push_str(&answer_text(update).unwrap_or_default());
            }
            Entry::Message(message) => {
                if message.role == Role::Assistant {
                    spoken.clear();
                } else {
                    break_off(&mut messages, &mut spoken);
                }
                messages.push(message.clone());
            }
            Entry::Mark(Mark::Began) => {
                break_off(&mut messages, &mut spoken);
                began = messages.len();
            }
            // PROMPT-14: a refused prompt, and what followed it, leaves the conversation.
            Entry::Mark(Mark::Ended { stop, .. }) if stop == "refusal" => {
                messages.truncate(began);
                spoken.clear();
            }
            // Text of commands and errors is not the model's.
            Entry::Mark(Mark::Ended { .. }) if !awaits_model(&messages) => spoken.clear(),
            _ => {}
        }
    }
    break_off(&mut messages, &mut spoken);
    complete_calls(messages.into_iter())
}

/// Whether the last message is the user's or a tool's.
fn awaits_model(messages: &[Message]) -> bool {
    messages.last().is_some_and(|message| message.role == Role::User)
}

fn break_off(messages: &mut Vec<Message>, spoken: &mut String) {
    let text = std::mem::take(spoken);
    if !text.trim().is_empty() && awaits_model(messages) {
        messages.push(Message::assistant(format!("{text}\n{BROKEN_OFF}")));
    }
}

/// Returns the updates of a log as a client is to see them again.
fn updates(log: &[Logged]) -> Vec<SessionUpdate> {
    let mut replay: Vec<SessionUpdate> = Vec::new();
    let mut transcript = Transcript::default();
    for logged in log {
        match &logged.entry {
            Entry::Update(update) => {
                // An update that this version cannot read must not make the whole session
                // unreadable.
                let Ok(update) = SessionUpdate::deserialize(update) else { continue };
                // Only these can be left open.
                if matches!(
                    update,
                    SessionUpdate::ToolCall(_)
                        | SessionUpdate::ToolCallUpdate(_)
                        | SessionUpdate::CompactionUpdate(_)
                        | SessionUpdate::SubagentUpdate(_)
                ) {
                    transcript.fold(update.clone().into());
                }
                let last =
                    replay.last_mut().filter(|_| !matches!(update, SessionUpdate::UserMessageChunk(_)));
                if !last.is_some_and(|last| join_chunks(last, &update)) {
                    replay.push(update);
                }
            }
            Entry::Mark(Mark::Began) => replay.extend(close(&mut transcript)),
            _ => {}
        }
    }
    replay.extend(close(&mut transcript));
    replay
}

/// Ends everything that is still open and returns the updates that do so.
// NOTE-08
fn close(transcript: &mut Transcript) -> Vec<SessionUpdate> {
    let open = transcript.items().filter(|(at, _)| transcript.is_open(*at));
    let mut ends: Vec<SessionUpdate> = open
        .filter_map(|(_, item)| match &item.kind {
            ItemKind::ToolCall(call) => {
                Some(ToolCallUpdate::new(call.id().clone()).status(ToolCallStatus::Failed).into())
            }
            ItemKind::Compaction(known) => {
                Some(CompactionUpdate::new(known.compaction_id.clone(), CompactionStatus::Failed).into())
            }
            _ => None,
        })
        .collect();
    let is_idle = |child: &&SubagentUpdate| matches!(&child.state, Patch::Set(StateUpdate::Idle(_)));
    let cancelled = || StateUpdate::Idle(IdleStateUpdate::new(Some(IdleStopReason::Cancelled)));
    let running = transcript.subagents.iter().filter(|child| !is_idle(child));
    ends.extend(running.map(|child| {
        let end = SubagentUpdate::new(child.session_id.clone()).state(Patch::from(cancelled()));
        SessionUpdate::SubagentUpdate(Box::new(end))
    }));
    ends.iter().cloned().for_each(|end| transcript.fold(end.into()));
    ends
}

/// Returns the text of a chunk of the agent's answer.
fn answer_text(update: &Value) -> Option<String> {
    match SessionUpdate::deserialize(update).ok()? {
        SessionUpdate::AgentMessageChunk(chunk) => chunk.content.as_text().map(str::to_owned),
        _ => None,
    }
}
