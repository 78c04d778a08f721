//! Folds a log into the model's conversation, and into the updates of a client that loads the
//! session.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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

    /// Every update that the client had seen, in order, for `session/load`. Chunks of text are
    /// joined; unfinished tool calls are closed.
    pub fn replay(&self) -> Vec<Value> {
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
                if let Some(text) = text_of(update, "agent_message_chunk") {
                    spoken.push_str(text);
                }
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

/// The updates of a log, for a client.
fn updates(log: &[Logged]) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    let mut open: Vec<Value> = Vec::new();
    for logged in log {
        match &logged.entry {
            Entry::Update(update) => {
                follow(update, &mut open);
                if !seen.last_mut().is_some_and(|last| joined(last, update)) {
                    seen.push(update.clone());
                }
            }
            Entry::Mark(Mark::Began) => seen.append(&mut open),
            _ => {}
        }
    }
    seen.append(&mut open);
    seen
}

/// Tracks unfinished calls and compactions by the update that would end them (NOTE-08).
fn follow(update: &Value, open: &mut Vec<Value>) {
    let (name, end) = match kind(update) {
        Some("tool_call" | "tool_call_update") => ("toolCallId", "tool_call_update"),
        Some("compaction_update") => ("compactionId", "compaction_update"),
        _ => return,
    };
    let Some(id) = update.get(name).filter(|id| id.is_string()) else { return };
    let is_it = |known: &Value| known.get(name) == Some(id);
    match update.get("status").and_then(Value::as_str) {
        Some("completed" | "failed" | "cancelled") => open.retain(|known| !is_it(known)),
        // An update without a status does not reopen a closed one.
        status if !open.iter().any(is_it) && (status.is_some() || kind(update) == Some("tool_call")) => {
            open.push(json!({ "sessionUpdate": end, name: id, "status": "failed" }));
        }
        _ => {}
    }
}

/// Joins `next` to `last` if it continues the same text. Returns whether it did.
fn joined(last: &mut Value, next: &Value) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    let Some(of) = kind(next).filter(|kind| matches!(*kind, "agent_message_chunk" | "agent_thought_chunk"))
    else {
        return false;
    };
    let plain = |update: &Value| {
        update.get("_meta").is_none()
            && update.as_object().is_some_and(|members| {
                members.keys().all(|name| matches!(name.as_str(), "sessionUpdate" | "content" | "messageId"))
            })
            && update.get("content").and_then(Value::as_object).is_some_and(|content| content.len() == 2)
    };
    if !same("sessionUpdate") || !same("messageId") || !plain(last) || !plain(next) {
        return false;
    }
    let Some(more) = text_of(next, of) else { return false };
    match last.get_mut("content").and_then(|content| content.get_mut("text")) {
        Some(Value::String(text)) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

fn kind(update: &Value) -> Option<&str> {
    update.get("sessionUpdate")?.as_str()
}

/// The text of an update of this kind.
fn text_of<'a>(update: &'a Value, of: &str) -> Option<&'a str> {
    if kind(update)? != of {
        return None;
    }
    update.get("content")?.get("text")?.as_str()
}
