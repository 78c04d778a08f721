//! Makes a conversation valid for every provider: each call has a result directly after it, each result has a call, nothing is
//! empty, and media that the model does not accept is replaced. An interrupted or compacted conversation may violate this.

use std::collections::HashSet;

use crate::model::{Message, ModelInfo, Part, Request, Role};

/// The request with a valid conversation.
pub(super) fn normalized(request: &Request, info: &ModelInfo) -> Request {
    let mut messages: Vec<Message> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in &request.messages {
        let mut parts: Vec<Part> =
            message.parts.iter().filter(|part| !is_blank(part)).map(|part| accepted(part, info)).collect();
        if message.role == Role::User {
            parts = answers(parts, &mut open);
        } else if !open.is_empty() {
            close(&mut messages, &mut open);
        }
        if parts.is_empty() {
            continue;
        }
        let message = Message { role: message.role, parts };
        open.extend(message.calls().map(|call| call.id.clone()));
        match messages.last_mut() {
            // Some providers require alternating roles.
            Some(last) if last.role == message.role => last.parts.extend(message.parts),
            _ => messages.push(message),
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

/// Media that the model does not accept is replaced by a description.
fn accepted(part: &Part, info: &ModelInfo) -> Part {
    match part {
        Part::Image { mime, .. } if !info.images => {
            Part::Text(format!("(an image, {mime}, which you cannot see)"))
        }
        Part::Audio { mime, .. } if !info.audio => {
            Part::Text(format!("(audio, {mime}, which you cannot hear)"))
        }
        Part::Result { call, parts, failed } => Part::Result {
            call: call.clone(),
            parts: parts.iter().map(|part| accepted(part, info)).collect(),
            failed: *failed,
        },
        other => other.clone(),
    }
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.trim().is_empty())
}

/// A message of the user: results first, without those that have no call, and with those that are missing.
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
