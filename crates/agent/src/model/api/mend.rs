//! What every provider demands of a conversation, made true: each call has a result, directly after it; each result has a
//! call; nothing is empty; nothing is in it that the model cannot take. A conversation that was cut off or compacted may miss some of it.

use std::collections::HashSet;

use crate::model::{Message, ModelInfo, Part, Request, Role};

/// The request with a conversation that can be sent.
pub(super) fn mended(request: &Request, info: &ModelInfo) -> Request {
    let mut messages: Vec<Message> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in &request.messages {
        let mut parts: Vec<Part> =
            message.parts.iter().filter(|part| !is_blank(part)).map(|part| taken(part, info)).collect();
        if message.role == Role::User {
            parts = answers(parts, &mut open);
        } else if !open.is_empty() {
            close(&mut messages, &mut open);
        }
        if parts.is_empty() {
            continue;
        }
        open.extend(parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        }));
        match messages.last_mut() {
            // One speaker after the other, for providers that insist on it.
            Some(last) if last.role == message.role => last.parts.append(&mut parts),
            _ => messages.push(Message { role: message.role, parts }),
        }
    }
    close(&mut messages, &mut open);
    let tools = if info.tools { request.tools.clone() } else { Vec::new() };
    Request {
        system: request.system.clone(),
        messages,
        tools,
        cache_key: request.cache_key.clone(),
        ..*request
    }
}

/// What the model cannot take is named instead, so that it knows what it does not know.
fn taken(part: &Part, info: &ModelInfo) -> Part {
    match part {
        Part::Image { mime, .. } if !info.images => {
            Part::Text(format!("(a picture, {mime}, which you cannot see)"))
        }
        Part::Audio { mime, .. } if !info.audio => {
            Part::Text(format!("(sound, {mime}, which you cannot hear)"))
        }
        Part::Result { call, parts, failed } => Part::Result {
            call: call.clone(),
            parts: parts.iter().map(|part| taken(part, info)).collect(),
            failed: *failed,
        },
        other => other.clone(),
    }
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.trim().is_empty())
}

/// A message of the user: results first, those without a call left out, those that are missing added.
fn answers(parts: Vec<Part>, open: &mut Vec<String>) -> Vec<Part> {
    let waiting: HashSet<String> = open.drain(..).collect();
    let mut missing = waiting.clone();
    let (mut results, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Result { ref call, .. } => {
                if missing.remove(call) {
                    results.push(part);
                }
            }
            other => others.push(other),
        }
    }
    let mut missing: Vec<String> = missing.into_iter().collect();
    missing.sort();
    results.extend(missing.into_iter().map(interrupted));
    results.append(&mut others);
    results
}

fn close(messages: &mut Vec<Message>, open: &mut Vec<String>) {
    if !open.is_empty() {
        messages.push(Message { role: Role::User, parts: open.drain(..).map(interrupted).collect() });
    }
}

fn interrupted(call: String) -> Part {
    Part::Result { call, parts: vec![Part::Text("the call was interrupted".to_owned())], failed: true }
}
