//! Anthropic's messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Decode, Decoded, Piece, count, items, max_output, own_signature, result_text, text};
use crate::model::{ModelError, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec, Usage};

/// The provider's own tool.
const SEARCH: &str = "web_search";
/// The most searches of one response. With more the provider would pause the turn.
const MAX_SEARCHES: u32 = 5;

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let max = max_output(info, request).unwrap_or(info.max_output);
    let mut body = json!({
        "model": info.id,
        "max_tokens": max,
        "stream": true,
        "messages": messages(info, request),
    });
    // The cache works by prefix: tools and system prompt stay the same, so they end with the first
    // mark.
    if !request.system.is_empty() {
        body["system"] = json!([{ "type": "text", "text": request.system, "cache_control": cache_mark() }]);
    }
    if !request.tools.is_empty() {
        let tool = |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.about, "input_schema": tool.schema });
        let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
        if request.web_search && !request.tools.iter().any(|tool| tool.name == SEARCH) {
            tools.push(json!({ "type": "web_search_20250305", "name": SEARCH, "max_uses": MAX_SEARCHES }));
        }
        body["tools"] = tools.into();
    }
    // The provider refuses a temperature beside thinking.
    if let (Some(temperature), Thinking::Off) = (request.temperature, request.thinking) {
        body["temperature"] = json!(temperature);
    }
    if info.thinking {
        set_thinking(&mut body, info, request.thinking, max);
    }
    body
}

fn cache_mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// Newer models get an effort and decide themselves how long to think; older ones get a budget.
fn set_thinking(body: &mut Value, info: &ModelInfo, level: Thinking, max: u32) {
    if !has_budget(&info.id) {
        let effort = if level == Thinking::Off { "low" } else { level.id() };
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
    // The API's minimum is 1024, and the response needs room after it.
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
    // Marks at the user's last two messages: the one that the last request wrote to the cache, and
    // the one that the next request will look for.
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user").take(2);
    for message in users {
        if let Some(block) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            block["cache_control"] = cache_mark();
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
        Part::Thought { text, signature } => match own_signature(signature, info, "redacted") {
            Some(data) => json!({ "type": "redacted_thinking", "data": data }),
            None => {
                let signature = own_signature(signature, info, "signature")?;
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
        },
        Part::Call(call) => {
            json!({ "type": "tool_use", "id": id(&call.id), "name": call.name, "input": call.arguments })
        }
        Part::Result { call, parts, failed } => {
            let mut content: Vec<Value> = parts.iter().filter_map(|part| block(part, info)).collect();
            if content.is_empty() {
                content.push(json!({ "type": "text", "text": result_text(parts, *failed) }));
            }
            json!({ "type": "tool_result", "tool_use_id": id(call), "content": content, "is_error": failed })
        }
    })
}

/// Ids of other providers may contain characters that this one refuses.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// A call that the provider runs itself.
const SERVER_CALL: &str = "server_tool_use";

#[derive(Default)]
pub(super) struct Decoder {
    usage: Usage,
    /// The arguments so far of open calls that the provider runs itself, by block.
    searches: BTreeMap<u64, String>,
}

impl Decoder {
    fn count(&mut self, usage: &Value, out: &mut Decoded) {
        let known = |key: &str, old: u64| usage.get(key).and_then(Value::as_u64).unwrap_or(old);
        self.usage = Usage {
            input: known("input_tokens", self.usage.input),
            output: known("output_tokens", self.usage.output),
            cache_read: known("cache_read_input_tokens", self.usage.cache_read),
            cache_write: known("cache_creation_input_tokens", self.usage.cache_write),
            thought: count(usage, "/output_tokens_details/thinking_tokens"),
        };
        out.usage(self.usage);
    }
}

/// Reads a content block, or a delta of one.
fn content(index: u64, block: &Value, out: &mut Decoded) {
    match block["type"].as_str().unwrap_or_default() {
        "text" | "text_delta" => out.text(text(block, "text")),
        "thinking" | "thinking_delta" => out.thought(text(block, "thinking")),
        "redacted_thinking" => out.signature(json!({ "redacted": block["data"] })),
        "tool_use" => {
            let given = block["input"].as_object().filter(|input| !input.is_empty());
            let json = given.map(|_| block["input"].to_string());
            let (id, name) = (text(block, "id"), text(block, "name"));
            out.call_piece(Piece { index: Some(index), id, name, json, ..Piece::default() });
        }
        "input_json_delta" => {
            let json = text(block, "partial_json").map(str::to_owned);
            out.call_piece(Piece { index: Some(index), json, ..Piece::default() });
        }
        // The results of tools that run at the provider are not sent back, and neither are their
        // calls.
        _ => {}
    }
    if let Some(signature) = text(block, "signature") {
        out.signature(json!({ "signature": signature }));
    }
}

fn stop(reason: &str, out: &Decoded) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => out.calls.stop(),
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
        "refusal" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError> {
        let index = count(message, "/index");
        match message["type"].as_str() {
            Some("message_start") => self.count(&message["message"]["usage"], out),
            Some("content_block_start") if message["content_block"]["type"] == SERVER_CALL => {
                self.searches.insert(index, String::new());
            }
            Some("content_block_start") => content(index, &message["content_block"], out),
            Some("content_block_delta") => match self.searches.get_mut(&index) {
                Some(json) => json.push_str(text(&message["delta"], "partial_json").unwrap_or_default()),
                None => content(index, &message["delta"], out),
            },
            Some("content_block_stop") => match self.searches.remove(&index) {
                Some(json) => out.search(&serde_json::from_str(&json).unwrap_or_default()),
                None => out.end_call(index, None),
            },
            Some("message_delta") => {
                if let Some(reason) = text(&message["delta"], "stop_reason") {
                    out.stop = Some(stop(reason, out));
                }
                if message["usage"].is_object() {
                    self.count(&message["usage"], out);
                }
            }
            Some("message_stop") => out.stop = out.stop.take().or_else(|| Some(out.calls.stop())),
            // A whole message instead of a stream.
            Some("message") => {
                for (index, block) in (0..).zip(items(message, "content")) {
                    if block["type"] == SERVER_CALL {
                        out.search(&block["input"]);
                        continue;
                    }
                    content(index, block, out);
                    out.end_call(index, None);
                }
                self.count(&message["usage"], out);
                out.stop = Some(stop(message["stop_reason"].as_str().unwrap_or("end_turn"), out));
            }
            Some(_) => {}
            None => return Err(ModelError::protocol("a message without a type")),
        }
        Ok(())
    }
}
