//! OpenAI's responses.

use serde_json::{Value, json};

use super::{Decode, Decoded, Piece, count, data_url, max_output, own_signature, result_text, text};
use crate::model::{Message, ModelError, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        add_items(message, info, &mut input);
    }
    // The provider stores nothing; thoughts are sent back in encrypted form.
    let mut body = json!({ "model": info.id, "stream": true, "store": false, "input": input });
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    if !request.tools.is_empty() {
        let search = request.web_search.then(|| json!({ "type": "web_search" }));
        body["tools"] = request.tools.iter().map(tool).chain(search).collect();
    }
    if let Some(max) = max_output(info, request) {
        body["max_output_tokens"] = json!(max);
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if info.thinking {
        body["include"] = json!(["reasoning.encrypted_content"]);
        if request.thinking != Thinking::Off {
            body["reasoning"] = json!({ "effort": request.thinking.id(), "summary": "auto" });
        }
    }
    if let Some(key) = &request.cache_key {
        body["prompt_cache_key"] = json!(key);
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    let (name, about) = (&tool.name, &tool.about);
    json!({ "type": "function", "name": name, "description": about, "parameters": tool.schema, "strict": false })
}

/// Adds a message as several items: content, calls, results and thoughts are separate.
fn add_items(message: &Message, info: &ModelInfo, input: &mut Vec<Value>) {
    let (role, text_type) = match message.role {
        Role::User => ("user", "input_text"),
        Role::Assistant => ("assistant", "output_text"),
    };
    let mut content: Vec<Value> = Vec::new();
    for part in &message.parts {
        let item = match part {
            Part::Text(text) => {
                content.push(json!({ "type": text_type, "text": text }));
                continue;
            }
            Part::Thought { signature, .. } => own_signature(signature, info, "item").cloned(),
            Part::Call(call) => {
                let arguments = call.arguments.to_string();
                Some(
                    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments }),
                )
            }
            Part::Result { call, parts, failed } => Some(
                json!({ "type": "function_call_output", "call_id": call, "output": output(parts, *failed) }),
            ),
            media => {
                content.extend(image(media));
                continue;
            }
        };
        if let Some(item) = item {
            flush(role, &mut content, input);
            input.push(item);
        }
    }
    flush(role, &mut content, input);
}

fn flush(role: &str, content: &mut Vec<Value>, input: &mut Vec<Value>) {
    if !content.is_empty() {
        input.push(json!({ "type": "message", "role": role, "content": std::mem::take(content) }));
    }
}

fn image(part: &Part) -> Option<Value> {
    match part {
        Part::Image { mime, data } => {
            Some(json!({ "type": "input_image", "image_url": data_url(mime, data) }))
        }
        _ => None,
    }
}

fn output(parts: &[Part], failed: bool) -> Value {
    let text = result_text(parts, failed);
    let images: Vec<Value> = parts.iter().filter_map(image).collect();
    if images.is_empty() {
        return json!(text);
    }
    let mut blocks = vec![json!({ "type": "input_text", "text": text })];
    blocks.extend(images);
    json!(blocks)
}

#[derive(Default)]
pub(super) struct Decoder {
    refused: bool,
}

fn begin_item(index: u64, item: &Value, out: &mut Decoded) {
    if item["type"] == "function_call" {
        let (id, name) = (text(item, "call_id"), text(item, "name"));
        out.call_piece(Piece { index: Some(index), id, name, ..Piece::default() });
    }
}

fn end_item(index: u64, item: &Value, out: &mut Decoded) {
    match item["type"].as_str() {
        Some("function_call") => out.end_call(index, text(item, "arguments")),
        // Without the encrypted form the provider, which stores nothing, could not read it back.
        Some("reasoning") if item["encrypted_content"].is_string() => {
            let mut kept = json!({ "type": "reasoning", "summary": item["summary"], "encrypted_content": item["encrypted_content"] });
            if item["id"].is_string() {
                kept["id"] = item["id"].clone();
            }
            out.signature(json!({ "item": kept }));
        }
        // The provider refuses a thought without the search that followed it.
        Some("web_search_call") => {
            out.search_text(&item["action"]);
            out.signature(json!({ "item": item }));
        }
        _ => {}
    }
}

impl Decoder {
    /// The last message, which repeats everything and adds the token count.
    fn end_response(&mut self, response: &Value, out: &mut Decoded) {
        let usage = &response["usage"];
        if usage.is_object() {
            out.usage_with_cache(
                count(usage, "/input_tokens"),
                count(usage, "/input_tokens_details/cached_tokens"),
                count(usage, "/output_tokens"),
                count(usage, "/output_tokens_details/reasoning_tokens"),
            );
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        out.stop = Some(match reason {
            Some("max_output_tokens") => Stop::MaxTokens,
            Some("content_filter") => Stop::Refused,
            Some(other) => Stop::Other(other.to_owned()),
            None if self.refused => Stop::Refused,
            None => out.calls.stop(),
        });
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError> {
        let index = count(message, "/output_index");
        let delta = text(message, "delta");
        let Some(kind) = message["type"].as_str() else {
            return Err(ModelError::protocol("a message without a type"));
        };
        match kind.strip_prefix("response.").unwrap_or(kind) {
            "output_text.delta" => out.text(delta),
            "refusal.delta" => {
                self.refused = true;
                out.text(delta);
            }
            "reasoning_summary_text.delta" | "reasoning_text.delta" => out.thought(delta),
            "reasoning_summary_part.added" if count(message, "/summary_index") > 0 => {
                out.thought(Some("\n\n"));
            }
            "output_item.added" => begin_item(index, &message["item"], out),
            "function_call_arguments.delta" => {
                let json = delta.map(str::to_owned);
                out.call_piece(Piece { index: Some(index), json, ..Piece::default() });
            }
            "output_item.done" => end_item(index, &message["item"], out),
            "completed" | "incomplete" | "done" => self.end_response(&message["response"], out),
            "failed" => return Err(ModelError::from_stream(&message["response"])),
            _ => {}
        }
        Ok(())
    }
}
