//! A request as a chat completion.

use serde_json::{Value, json};

use super::{data_url, own_seal, result_text};
use crate::model::{Message, ModelInfo, Part, Request, Role, Thinking, ToolSpec};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let openai = info.provider == "openai";
    let mut body = json!({
        "model": info.id,
        "stream": true,
        // Without it most servers do not count.
        "stream_options": { "include_usage": true },
        "messages": messages(info, request),
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(max) = request.max_output {
        let key = if openai { "max_completion_tokens" } else { "max_tokens" };
        body[key] = json!(max.min(info.max_output));
    }
    if info.thinking && request.thinking != Thinking::Off {
        if info.provider == "openrouter" {
            body["reasoning"] = json!({ "effort": request.thinking.word() });
        } else {
            body["reasoning_effort"] = json!(request.thinking.word());
        }
    }
    if let (true, Some(key)) = (openai, &request.cache_key) {
        body["prompt_cache_key"] = json!(key);
    }
    if info.provider == "openrouter" {
        body["usage"] = json!({ "include": true });
    }
    body
}

pub(super) fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.about, "parameters": tool.schema },
    })
}

fn messages(info: &ModelInfo, request: &Request) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    // Thoughts go back only while the turn lasts in which they were had: servers that want them want them then, and
    // some refuse older ones.
    let turn = request.messages.iter().rposition(begins_turn).unwrap_or(0);
    for (place, message) in request.messages.iter().enumerate() {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.push(assistant(message, info, place > turn)),
        }
    }
    messages
}

fn begins_turn(message: &Message) -> bool {
    message.role == Role::User && !message.parts.iter().any(|part| matches!(part, Part::Result { .. }))
}

/// Results are messages of their own, and hold text only; their pictures follow in the user's name.
fn user(message: &Message, messages: &mut Vec<Value>) {
    let mut content: Vec<Value> = Vec::new();
    for part in &message.parts {
        if let Part::Result { call, parts, failed } = part {
            let text = result_text(parts, *failed);
            messages.push(json!({ "role": "tool", "tool_call_id": call, "content": text }));
            let pictures: Vec<Value> =
                parts.iter().filter(|part| !matches!(part, Part::Text(_))).filter_map(block).collect();
            if !pictures.is_empty() {
                content.push(json!({ "type": "text", "text": "What the tool returned besides text:" }));
                content.extend(pictures);
            }
        } else {
            content.extend(block(part));
        }
    }
    if content.is_empty() {
        return;
    }
    // Small servers know text as plain text only.
    let plain = content.iter().all(|block| block["type"] == "text");
    let content = if plain {
        let texts: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
        json!(texts.join("\n"))
    } else {
        json!(content)
    };
    messages.push(json!({ "role": "user", "content": content }));
}

fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime, data } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(mime, data) } })
        }
        Part::Audio { mime, data } => {
            let format = mime.rsplit('/').next().unwrap_or("wav").trim_start_matches("x-");
            let format = if format == "mpeg" { "mp3" } else { format };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
        _ => return None,
    })
}

fn assistant(message: &Message, info: &ModelInfo, in_turn: bool) -> Value {
    let said = message.text();
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
            json!({ "id": call.id, "type": "function", "function": function })
        })
        .collect();
    let mut value = json!({ "role": "assistant", "content": said });
    if !calls.is_empty() {
        if said.is_empty() {
            value["content"] = Value::Null;
        }
        value["tool_calls"] = json!(calls);
    }
    if in_turn {
        thoughts(message, info, &mut value);
    }
    value
}

/// Thoughts under the name under which they came.
fn thoughts(message: &Message, info: &ModelInfo, value: &mut Value) {
    for part in &message.parts {
        let Part::Thought { text, seal } = part else { continue };
        let Some(seal) = own_seal(seal.as_ref(), &info.provider) else { continue };
        if let Some(details) = seal.get("details") {
            value["reasoning_details"] = details.clone();
        } else if let Some(field) = seal.get("field").and_then(Value::as_str) {
            let before = value[field].as_str().unwrap_or_default();
            value[field] = json!(format!("{before}{text}"));
        }
    }
}
