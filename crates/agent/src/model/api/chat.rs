//! OpenAI's chat completions, as OpenAI and others send them.

use serde_json::{Value, json};

use super::think_tags::{Kind, ThinkTags};
use super::{Decode, Decoded, Piece, count, data_url, items, max_output, own_signature, result_text, text};
use crate::model::{Event, Message, ModelError, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let is_openai = info.provider == "openai";
    let is_openrouter = info.provider == "openrouter";
    let mut body = json!({
        "model": info.id,
        "stream": true,
        // Without it most servers do not count tokens.
        "stream_options": { "include_usage": true },
        "messages": messages(info, request),
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(max) = max_output(info, request) {
        body[if is_openai { "max_completion_tokens" } else { "max_tokens" }] = json!(max);
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if info.thinking && request.thinking != Thinking::Off {
        match is_openrouter {
            true => body["reasoning"] = json!({ "effort": request.thinking.id() }),
            false => body["reasoning_effort"] = json!(request.thinking.id()),
        }
    }
    if let (true, Some(key)) = (is_openai, &request.cache_key) {
        body["prompt_cache_key"] = json!(key);
    }
    if is_openrouter {
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
    // Thoughts are sent back only within their turn: some servers require that, and some refuse
    // older ones.
    let turn = request.messages.iter().rposition(Message::starts_turn).unwrap_or(0);
    for (at, message) in request.messages.iter().enumerate() {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.push(assistant(message, info, at > turn)),
        }
    }
    messages
}

/// Results are messages of their own with text only; their media follow in a message of the user.
fn user(message: &Message, messages: &mut Vec<Value>) {
    let mut content: Vec<Value> = Vec::new();
    for part in &message.parts {
        if let Part::Result { call, parts, failed } = part {
            let text = result_text(parts, *failed);
            messages.push(json!({ "role": "tool", "tool_call_id": call, "content": text }));
            let media: Vec<Value> =
                parts.iter().filter(|part| !matches!(part, Part::Text(_))).filter_map(block).collect();
            if !media.is_empty() {
                content.push(json!({ "type": "text", "text": "The tool's output besides text:" }));
                content.extend(media);
            }
        } else {
            content.extend(block(part));
        }
    }
    if content.is_empty() {
        return;
    }
    // Small servers accept plain strings only.
    let plain: Option<Vec<&str>> =
        content.iter().map(|block| (block["type"] == "text").then(|| block["text"].as_str())?).collect();
    let content = plain.map_or_else(|| json!(content), |texts| json!(texts.join("\n")));
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
    let mut value = json!({ "role": "assistant", "content": message.text() });
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
            json!({ "id": call.id, "type": "function", "function": function })
        })
        .collect();
    if !calls.is_empty() {
        if value["content"] == "" {
            value["content"] = Value::Null;
        }
        value["tool_calls"] = json!(calls);
    }
    if in_turn {
        add_thoughts(message, info, &mut value);
    }
    value
}

/// Adds thoughts under the name under which they came.
fn add_thoughts(message: &Message, info: &ModelInfo, value: &mut Value) {
    for part in &message.parts {
        let Part::Thought { text, signature } = part else { continue };
        if let Some(details) = own_signature(signature, info, "details") {
            value["reasoning_details"] = details.clone();
        } else if let Some(field) = own_signature(signature, info, "field").and_then(Value::as_str) {
            let before = value[field].as_str().unwrap_or_default();
            value[field] = json!(format!("{before}{text}"));
        }
    }
}

pub(super) struct Decoder {
    tags: ThinkTags,
    /// The member that holds thoughts, so that they can be sent back in it.
    field: Option<&'static str>,
    /// OpenRouter's signed or encrypted thoughts.
    details: Vec<Value>,
    thinking: bool,
}

impl Decoder {
    pub(super) fn new(provider: &str) -> Self {
        // OpenAI's models write no thoughts between tags, so a text that begins with one is text.
        let tags = ThinkTags::new(provider != "openai");
        Decoder { tags, field: None, details: Vec::new(), thinking: false }
    }

    fn delta(&mut self, delta: &Value, out: &mut Decoded) {
        if let Some(details) = delta["reasoning_details"].as_array() {
            self.details.extend(details.iter().cloned());
            self.thinking = true;
        }
        // Servers that send both members repeat the same text.
        let thought = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|field| Some((field, text(delta, field)?)));
        if let Some((field, thought)) = thought {
            self.field.get_or_insert(field);
            self.thinking = true;
            out.thought(Some(thought));
        }
        for (kind, piece) in self.tags.push(text(delta, "content").unwrap_or_default()) {
            match kind {
                Kind::Thought => out.events.push(Event::Thought(piece)),
                Kind::Text => {
                    self.end_thought(out);
                    out.events.push(Event::Text(piece));
                }
            }
        }
        if let Some(refusal) = text(delta, "refusal") {
            self.end_thought(out);
            out.text(Some(refusal));
            out.stop = Some(Stop::Refused);
        }
        for call in items(delta, "tool_calls") {
            self.end_thought(out);
            let function = &call["function"];
            // Arguments are a string that contains JSON; some servers send the JSON itself.
            let json = match &function["arguments"] {
                Value::String(json) => Some(json.clone()),
                object @ Value::Object(_) => Some(object.to_string()),
                _ => None,
            };
            let (index, id, name) = (call["index"].as_u64(), text(call, "id"), text(function, "name"));
            out.call_piece(Piece { index, id, name, json, ..Piece::default() });
        }
    }

    /// A thought ends when something else begins.
    fn end_thought(&mut self, out: &mut Decoded) {
        if !std::mem::take(&mut self.thinking) {
            return;
        }
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            out.signature(json!({ "details": joined(details) }));
        } else if let Some(field) = self.field {
            out.signature(json!({ "field": field }));
        }
    }
}

/// Joins pieces of the same thought, which have the same type and index.
fn joined(pieces: Vec<Value>) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for piece in pieces {
        let last =
            whole.last_mut().filter(|last| last["type"] == piece["type"] && last["index"] == piece["index"]);
        let Some(last) = last else {
            whole.push(piece);
            continue;
        };
        for (key, value) in piece.as_object().into_iter().flatten() {
            match (last[key].as_str(), value.as_str()) {
                (Some(old), Some(new))
                    if ["text", "summary", "data", "signature"].contains(&key.as_str()) =>
                {
                    last[key] = json!(format!("{old}{new}"));
                }
                _ if !value.is_null() => last[key] = value.clone(),
                _ => {}
            }
        }
    }
    whole
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError> {
        let usage = &message["usage"];
        if message.get("choices").is_none() && !usage.is_object() {
            return Err(ModelError::protocol("a message without choices"));
        }
        if let Some(choice) = message["choices"].get(0) {
            // A whole response has a message instead of a delta.
            let part = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
            self.delta(part, out);
            if let Some(reason) = text(choice, "finish_reason") {
                let stop = match reason {
                    "stop" | "eos" | "tool_calls" | "function_call" => out.calls.stop(),
                    "length" => Stop::MaxTokens,
                    "content_filter" => Stop::Refused,
                    other => Stop::Other(other.to_owned()),
                };
                out.stop.get_or_insert(stop);
            }
        }
        if usage.is_object() {
            let cached = count(usage, "/prompt_tokens_details/cached_tokens")
                .max(count(usage, "/prompt_cache_hit_tokens"));
            let thought = count(usage, "/completion_tokens_details/reasoning_tokens");
            let (input, output) = (count(usage, "/prompt_tokens"), count(usage, "/completion_tokens"));
            out.usage_with_cache(input, cached, output, thought);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Decoded) {
        out.events.extend(self.tags.rest().map(|(kind, piece)| match kind {
            Kind::Thought => Event::Thought(piece),
            Kind::Text => Event::Text(piece),
        }));
        self.end_thought(out);
    }
}
