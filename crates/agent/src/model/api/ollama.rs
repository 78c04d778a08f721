//! Ollama's own chat. Unlike its OpenAI protocol, it can set the length of a conversation, which is
//! short by default.

use serde_json::{Value, json};

use super::{Decode, Decoded, chat, count, items, max_output, result_text, text};
use crate::model::{Message, ModelError, ModelInfo, Part, Request, Role, Stop, Thinking, Usage};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut body = json!({
        "model": info.id,
        "stream": true,
        "messages": messages(request),
        "options": { "num_ctx": info.window },
    });
    if let Some(max) = max_output(info, request) {
        body["options"]["num_predict"] = json!(max);
    }
    if let Some(temperature) = request.temperature {
        body["options"]["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(chat::tool).collect();
    }
    if info.thinking {
        body["think"] = match request.thinking {
            Thinking::Off => json!(false),
            // Only these models have levels.
            level if info.id.starts_with("gpt-oss") => json!(level.id()),
            _ => json!(true),
        };
    }
    body
}

fn messages(request: &Request) -> Vec<Value> {
    let names = request.tool_names();
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
                let result = json!({ "role": "tool", "tool_name": name, "content": text });
                messages.push(with_images(result, parts));
            }
        }
        let user = with_images(json!({ "role": "user", "content": message.text() }), &message.parts);
        if user["content"] != "" || user.get("images").is_some() {
            messages.push(user);
        }
    }
    messages
}

fn with_images(mut message: Value, parts: &[Part]) -> Value {
    let image = |part: &Part| match part {
        Part::Image { data, .. } => Some(json!(data)),
        _ => None,
    };
    let images: Vec<Value> = parts.iter().filter_map(image).collect();
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

pub(super) struct Decoder;

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError> {
        let content =
            message.get("message").ok_or_else(|| ModelError::protocol("a line without a message"))?;
        out.thought(text(content, "thinking"));
        out.text(text(content, "content"));
        for call in items(content, "tool_calls") {
            out.calls.whole(call, &call["function"]["arguments"], None, &mut out.events);
        }
        if message["done"].as_bool() == Some(true) {
            let (input, output) = (count(message, "/prompt_eval_count"), count(message, "/eval_count"));
            out.usage(Usage { input, output, ..Usage::default() });
            out.stop = Some(match text(message, "done_reason") {
                Some("length") => Stop::MaxTokens,
                Some("stop") | None => out.calls.stop(),
                Some(other) => Stop::Other(other.to_owned()),
            });
        }
        Ok(())
    }
}
