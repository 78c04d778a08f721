//! OpenAI's responses.

use serde_json::{Value, json};

use super::calls::{Calls, Piece};
use super::{
    Decode, Fault, count, data_url, error_in, nonsense, openai_usage, own_seal, result_text, seal, text,
};
use crate::model::fault;
use crate::model::{Event, Message, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        items(message, info, &mut input);
    }
    // Nothing is kept at the provider; the conversation is ours, and thoughts travel encrypted.
    let mut body = json!({ "model": info.id, "stream": true, "store": false, "input": input });
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(max) = request.max_output {
        body["max_output_tokens"] = json!(max.min(info.max_output));
    }
    if info.thinking {
        body["include"] = json!(["reasoning.encrypted_content"]);
        if request.thinking != Thinking::Off {
            body["reasoning"] = json!({ "effort": request.thinking.word(), "summary": "auto" });
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

/// One message becomes several items: what is said, calls, results and thoughts are told apart.
fn items(message: &Message, info: &ModelInfo, input: &mut Vec<Value>) {
    let (role, kind) = match message.role {
        Role::User => ("user", "input_text"),
        Role::Assistant => ("assistant", "output_text"),
    };
    let mut content: Vec<Value> = Vec::new();
    for part in &message.parts {
        let item = match part {
            Part::Text(text) => {
                content.push(json!({ "type": kind, "text": text }));
                continue;
            }
            Part::Image { mime, data } => {
                content.push(json!({ "type": "input_image", "image_url": data_url(mime, data) }));
                continue;
            }
            Part::Audio { .. } => continue,
            Part::Thought { seal, .. } => {
                match own_seal(seal.as_ref(), &info.provider).and_then(|seal| seal.get("item")) {
                    Some(item) => item.clone(),
                    None => continue,
                }
            }
            Part::Call(call) => {
                let arguments = call.arguments.to_string();
                json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
            }
            Part::Result { call, parts, failed } => {
                json!({ "type": "function_call_output", "call_id": call, "output": output(parts, *failed) })
            }
        };
        flush(role, &mut content, input);
        input.push(item);
    }
    flush(role, &mut content, input);
}

fn flush(role: &str, content: &mut Vec<Value>, input: &mut Vec<Value>) {
    if !content.is_empty() {
        input.push(json!({ "type": "message", "role": role, "content": std::mem::take(content) }));
    }
}

fn output(parts: &[Part], failed: bool) -> Value {
    let text = result_text(parts, failed);
    let pictures: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Image { mime, data } => {
                Some(json!({ "type": "input_image", "image_url": data_url(mime, data) }))
            }
            _ => None,
        })
        .collect();
    if pictures.is_empty() {
        return json!(text);
    }
    let mut blocks = vec![json!({ "type": "input_text", "text": text })];
    blocks.extend(pictures);
    json!(blocks)
}

pub(super) struct Decoder {
    provider: String,
    calls: Calls,
    refused: bool,
    stop: Option<Stop>,
}

impl Decoder {
    pub(super) fn new(provider: String, calls: Calls) -> Self {
        Decoder { provider, calls, refused: false, stop: None }
    }

    fn item_begins(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        if item["type"] == "function_call" {
            let (id, name) = (text(item, "call_id"), text(item, "name"));
            self.calls.take(Piece { index: Some(index), id, name, ..Piece::default() }, out);
        }
    }

    fn item_ends(&mut self, index: u64, item: &Value, out: &mut Vec<Event>) {
        match item["type"].as_str() {
            Some("function_call") => self.calls.end(index, text(item, "arguments"), out),
            Some("reasoning") => {
                let mut kept = json!({ "type": "reasoning", "summary": item["summary"] });
                for key in ["id", "encrypted_content"] {
                    if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
                        kept[key] = value.clone();
                    }
                }
                // Without its encrypted form the provider, which keeps nothing, could not read it back.
                if kept.get("encrypted_content").is_some() {
                    out.push(Event::Seal(seal(&self.provider, json!({ "item": kept }))));
                }
            }
            _ => {}
        }
    }

    /// The last message, which repeats everything and adds the count of tokens.
    fn response_ends(&mut self, response: &Value, out: &mut Vec<Event>) {
        let usage = &response["usage"];
        if usage.is_object() {
            out.push(openai_usage(
                count(usage, "/input_tokens"),
                count(usage, "/input_tokens_details/cached_tokens"),
                count(usage, "/output_tokens"),
                count(usage, "/output_tokens_details/reasoning_tokens"),
            ));
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.stop = Some(match reason {
            Some("max_output_tokens") => Stop::MaxTokens,
            Some("content_filter") => Stop::Refused,
            Some(other) => Stop::Other(other.to_owned()),
            None if self.refused => Stop::Refused,
            None => self.calls.stop(),
        });
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault> {
        let index = count(message, "/output_index");
        let delta = text(message, "delta").map(str::to_owned);
        match message["type"].as_str() {
            Some("response.output_text.delta") => out.extend(delta.map(Event::Text)),
            Some("response.refusal.delta") => {
                self.refused = true;
                out.extend(delta.map(Event::Text));
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                out.extend(delta.map(Event::Thought));
            }
            Some("response.reasoning_summary_part.added") if count(message, "/summary_index") > 0 => {
                out.push(Event::Thought("\n\n".to_owned()));
            }
            Some("response.output_item.added") => self.item_begins(index, &message["item"], out),
            Some("response.function_call_arguments.delta") => {
                self.calls.take(Piece { index: Some(index), json: delta, ..Piece::default() }, out);
            }
            Some("response.output_item.done") => self.item_ends(index, &message["item"], out),
            Some("response.completed" | "response.incomplete" | "response.done") => {
                self.response_ends(&message["response"], out);
            }
            Some("response.failed") => return Err(fault::of_stream(&message["response"])),
            _ => {
                if let Some(fault) = error_in(message) {
                    return Err(fault);
                }
                if message.get("type").is_none() {
                    return Err(nonsense("a message without a type"));
                }
            }
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
