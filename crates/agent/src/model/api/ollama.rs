//! Ollama's own chat. It is spoken instead of OpenAI's because only here a conversation can be longer than the few
//! thousand tokens that a server grants by itself.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::calls::Calls;
use super::{Decode, Fault, chat_body, count, error_in, nonsense, result_text, text};
use crate::model::{Event, Message, ModelInfo, Part, Request, Role, Stop, Thinking, Usage};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut options = json!({ "num_ctx": info.window });
    if let Some(max) = request.max_output {
        options["num_predict"] = json!(max.min(info.max_output));
    }
    let mut body = json!({
        "model": info.id,
        "stream": true,
        "messages": messages(request),
        "options": options,
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(chat_body::tool).collect();
    }
    if info.thinking {
        body["think"] = match request.thinking {
            Thinking::Off => json!(false),
            // Only some know levels; all others know yes and no.
            level if info.id.starts_with("gpt-oss") => json!(level.word()),
            _ => json!(true),
        };
    }
    body
}

fn messages(request: &Request) -> Vec<Value> {
    let calls = request.messages.iter().flat_map(Message::calls);
    let names: HashMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        if message.role == Role::Assistant {
            messages.push(assistant(message));
            continue;
        }
        for part in &message.parts {
            if let Part::Result { call, parts, failed } = part {
                let name = names.get(call.as_str()).copied().unwrap_or("unknown");
                let text = result_text(parts, *failed);
                messages
                    .push(with_images(json!({ "role": "tool", "tool_name": name, "content": text }), parts));
            }
        }
        let said = message.text();
        if !said.is_empty() || message.parts.iter().any(|part| matches!(part, Part::Image { .. })) {
            messages.push(with_images(json!({ "role": "user", "content": said }), &message.parts));
        }
    }
    messages
}

fn with_images(mut message: Value, parts: &[Part]) -> Value {
    let images: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Image { data, .. } => Some(data.as_str()),
            _ => None,
        })
        .collect();
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    message
}

fn assistant(message: &Message) -> Value {
    let mut value = json!({ "role": "assistant", "content": message.text() });
    let calls: Vec<Value> = message
        .calls()
        .map(|call| json!({ "function": { "name": call.name, "arguments": call.arguments } }))
        .collect();
    if !calls.is_empty() {
        value["tool_calls"] = json!(calls);
    }
    value
}

pub(super) struct Decoder {
    calls: Calls,
    stop: Option<Stop>,
}

impl Decoder {
    pub(super) fn new(calls: Calls) -> Self {
        Decoder { calls, stop: None }
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault> {
        if let Some(fault) = error_in(message) {
            return Err(fault);
        }
        let said = message.get("message").ok_or_else(|| nonsense("a line without a message"))?;
        out.extend(text(said, "thinking").map(|text| Event::Thought(text.to_owned())));
        out.extend(text(said, "content").map(|text| Event::Text(text.to_owned())));
        for call in said["tool_calls"].as_array().into_iter().flatten() {
            self.calls.whole(call, &call["function"]["arguments"], None, out);
        }
        if message["done"].as_bool() == Some(true) {
            out.push(Event::Usage(Usage {
                input: count(message, "/prompt_eval_count"),
                output: count(message, "/eval_count"),
                ..Usage::default()
            }));
            self.stop = Some(match text(message, "done_reason") {
                Some("length") => Stop::MaxTokens,
                Some("stop") | None => self.calls.stop(),
                Some(other) => Stop::Other(other.to_owned()),
            });
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.calls.finish(self.stop.take(), out);
    }
}
