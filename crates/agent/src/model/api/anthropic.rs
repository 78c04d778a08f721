//! Anthropic's messages.

use serde_json::{Value, json};

use super::calls::{Calls, Piece};
use super::{Decode, Fault, count, error_in, nonsense, own_seal, seal, text};
use crate::model::{Event, ModelInfo, Part, Request, Role, Stop, Thinking, Usage};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let max = request.max_output.unwrap_or(info.max_output).min(info.max_output);
    let mut body = json!({
        "model": info.id,
        "max_tokens": max,
        "stream": true,
        "messages": messages(info, request),
    });
    // The cache is kept by prefix: tools and task never change, so they end with the first mark.
    if !request.system.is_empty() {
        body["system"] = json!([{ "type": "text", "text": request.system, "cache_control": mark() }]);
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::model::ToolSpec| json!({ "name": tool.name, "description": tool.about, "input_schema": tool.schema });
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    think(&mut body, info, request.thinking, max);
    body
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// Newer models decide themselves how long they think and are told how hard to try; older ones get a budget.
fn think(body: &mut Value, info: &ModelInfo, level: Thinking, max: u32) {
    if !info.thinking {
        return;
    }
    if !has_budget(&info.id) {
        let effort = if level == Thinking::Off { "low" } else { level.word() };
        body["output_config"] = json!({ "effort": effort });
        if level != Thinking::Off {
            body["thinking"] = json!({ "type": "adaptive", "display": "summarized" });
        }
        return;
    }
    let budget = match level {
        Thinking::Off => return,
        Thinking::Low => 4_000,
        Thinking::Medium => 12_000,
        Thinking::High => 30_000,
    };
    // The least that the interface allows is 1024, and there must be room for the answer behind it.
    let budget = budget.min(max / 2);
    if budget >= 1024 {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
    }
}

fn has_budget(id: &str) -> bool {
    let old = ["claude-3", "-4-0", "-4-1", "-4-5", "claude-opus-4-2", "claude-sonnet-4-2"];
    old.iter().any(|part| id.contains(part))
}

fn messages(info: &ModelInfo, request: &Request) -> Vec<Value> {
    let mut messages = Vec::new();
    for message in &request.messages {
        let content: Vec<Value> = message.parts.iter().filter_map(|part| block(part, info)).collect();
        if !content.is_empty() {
            let role = if message.role == Role::User { "user" } else { "assistant" };
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    // Marks at the last two messages of the user: the one that the last request wrote to the cache, and the one that
    // the next request will look for.
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user").take(2);
    for message in users {
        if let Some(block) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            block["cache_control"] = mark();
        }
    }
    messages
}

fn block(part: &Part, info: &ModelInfo) -> Option<Value> {
    Some(match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime, data } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": mime, "data": data } })
        }
        Part::Audio { .. } => return None,
        Part::Thought { text, seal } => {
            let seal = own_seal(seal.as_ref(), &info.provider)?;
            match seal.get("redacted") {
                Some(data) => json!({ "type": "redacted_thinking", "data": data }),
                None => json!({ "type": "thinking", "thinking": text, "signature": seal.get("signature")? }),
            }
        }
        Part::Call(call) => {
            json!({ "type": "tool_use", "id": id(&call.id), "name": call.name, "input": call.arguments })
        }
        Part::Result { call, parts, failed } => {
            let mut content: Vec<Value> = parts.iter().filter_map(|part| block(part, info)).collect();
            if content.is_empty() {
                content.push(json!({ "type": "text", "text": super::result_text(parts, *failed) }));
            }
            json!({ "type": "tool_result", "tool_use_id": id(call), "content": content, "is_error": failed })
        }
    })
}

/// Other providers' ids may hold what this one refuses.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

pub(super) struct Decoder {
    provider: String,
    calls: Calls,
    usage: Usage,
    stop: Option<Stop>,
    ended: bool,
}

impl Decoder {
    pub(super) fn new(provider: String, calls: Calls) -> Self {
        Decoder { provider, calls, usage: Usage::default(), stop: None, ended: false }
    }

    fn block(&mut self, index: u64, block: &Value, out: &mut Vec<Event>) {
        match block["type"].as_str().unwrap_or_default() {
            "text" => out.extend(text(block, "text").map(|text| Event::Text(text.to_owned()))),
            "thinking" => out.extend(text(block, "thinking").map(|text| Event::Thought(text.to_owned()))),
            "redacted_thinking" => {
                out.push(Event::Seal(seal(&self.provider, json!({ "redacted": block["data"] }))));
            }
            "tool_use" => {
                let given = block["input"].as_object().filter(|input| !input.is_empty());
                let json = given.map(|_| block["input"].to_string());
                let (id, name) = (text(block, "id"), text(block, "name"));
                self.calls.take(Piece { index: Some(index), id, name, json, seal: None }, out);
            }
            // Tools that run at the provider are never asked for.
            _ => {}
        }
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Event>) {
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => out.extend(text(delta, "text").map(|text| Event::Text(text.to_owned()))),
            "thinking_delta" => {
                out.extend(text(delta, "thinking").map(|text| Event::Thought(text.to_owned())))
            }
            "signature_delta" => {
                if let Some(signature) = text(delta, "signature") {
                    out.push(Event::Seal(seal(&self.provider, json!({ "signature": signature }))));
                }
            }
            "input_json_delta" => {
                let json = text(delta, "partial_json").map(str::to_owned);
                self.calls.take(Piece { index: Some(index), json, ..Piece::default() }, out);
            }
            _ => {}
        }
    }

    fn count(&mut self, usage: &Value, out: &mut Vec<Event>) {
        let known = |key: &str, old: u64| usage.get(key).and_then(Value::as_u64).unwrap_or(old);
        self.usage = Usage {
            input: known("input_tokens", self.usage.input),
            output: known("output_tokens", self.usage.output),
            cache_read: known("cache_read_input_tokens", self.usage.cache_read),
            cache_write: known("cache_creation_input_tokens", self.usage.cache_write),
            thought: count(usage, "/output_tokens_details/thinking_tokens"),
        };
        out.push(Event::Usage(self.usage));
    }

    fn stopped(&mut self, reason: &str) {
        self.stop = Some(match reason {
            "end_turn" | "stop_sequence" => self.calls.stop(),
            "tool_use" => Stop::Calls,
            "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
            "refusal" => Stop::Refused,
            other => Stop::Other(other.to_owned()),
        });
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault> {
        if let Some(fault) = error_in(message) {
            return Err(fault);
        }
        let index = count(message, "/index");
        match message["type"].as_str() {
            Some("message_start") => self.count(&message["message"]["usage"], out),
            Some("content_block_start") => self.block(index, &message["content_block"], out),
            Some("content_block_delta") => self.delta(index, &message["delta"], out),
            Some("content_block_stop") => self.calls.end(index, None, out),
            Some("message_delta") => {
                if let Some(reason) = text(&message["delta"], "stop_reason") {
                    self.stopped(reason);
                }
                if message["usage"].is_object() {
                    self.count(&message["usage"], out);
                }
            }
            Some("message_stop") => self.ended = true,
            // A whole message instead of a stream of its pieces.
            Some("message") => {
                for (index, block) in (0..).zip(message["content"].as_array().into_iter().flatten()) {
                    self.block(index, block, out);
                    if let Some(signature) = text(block, "signature") {
                        out.push(Event::Seal(seal(&self.provider, json!({ "signature": signature }))));
                    }
                    self.calls.end(index, None, out);
                }
                self.count(&message["usage"], out);
                self.stopped(message["stop_reason"].as_str().unwrap_or("end_turn"));
            }
            Some(_) => {}
            None => return Err(nonsense("a message without a type")),
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ended || self.stop.is_some()
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.calls.finish(self.stop.take(), out);
    }
}
