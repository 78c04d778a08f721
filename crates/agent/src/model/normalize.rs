//! Makes a conversation valid for every provider: each call has a result directly after it, each
//! result has a call, nothing is empty, and media that the model does not accept is replaced. An
//! interrupted or compacted conversation may violate this.

use super::{Message, ModelInfo, Part, Request, Role};

/// The request with a valid conversation.
pub(super) fn normalized(request: &Request, info: &ModelInfo) -> Request {
    let accepted = request.messages.iter().map(|message| Message {
        role: message.role,
        parts: message.parts.iter().filter(|part| !is_blank(part)).map(|part| accepted(part, info)).collect(),
    });
    let mut messages: Vec<Message> = Vec::new();
    for message in complete_calls(accepted.filter(|message| !message.parts.is_empty())) {
        match messages.last_mut() {
            // Some providers require alternating roles.
            Some(last) if last.role == message.role => last.parts.extend(message.parts),
            _ => messages.push(message),
        }
    }
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

/// Adds missing results of calls, and removes results without a call.
pub(crate) fn complete_calls(messages: impl Iterator<Item = Message>) -> Vec<Message> {
    let mut complete: Vec<Message> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for mut message in messages {
        if message.role == Role::User {
            message.parts = with_results(message.parts, std::mem::take(&mut open));
        } else if !open.is_empty() {
            complete.push(Message::from_user(with_results(Vec::new(), std::mem::take(&mut open))));
        }
        open.extend(message.calls().map(|call| call.id.clone()));
        if !message.parts.is_empty() {
            complete.push(message);
        }
    }
    if !open.is_empty() {
        complete.push(Message::from_user(with_results(Vec::new(), open)));
    }
    complete
}

/// The parts of a message after the open calls: their results first, then the rest.
fn with_results(parts: Vec<Part>, mut open: Vec<String>) -> Vec<Part> {
    let (mut results, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        match &part {
            Part::Result { call, .. } => {
                if let Some(at) = open.iter().position(|id| id == call) {
                    open.remove(at);
                    results.push(part);
                }
            }
            _ => others.push(part),
        }
    }
    let text = "interrupted before it was finished; its effects are unknown";
    let interrupted = |call| Part::Result { call, parts: vec![Part::Text(text.to_owned())], failed: true };
    results.extend(open.into_iter().map(interrupted));
    results.append(&mut others);
    results
}
