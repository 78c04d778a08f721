//! The answer to a chat completion, as OpenAI sends it and as everybody else does.

use serde_json::{Value, json};

use super::calls::{Calls, Piece};
use super::tags::{Kind, Tags};
use super::{Decode, Fault, count, error_in, nonsense, openai_usage, seal, text};
use crate::model::{Event, Stop};

pub(super) struct Decoder {
    provider: String,
    calls: Calls,
    tags: Tags,
    /// The name under which thoughts come, so that they can go back under it.
    field: Option<&'static str>,
    /// OpenRouter's signed or encrypted thoughts.
    details: Vec<Value>,
    thinking: bool,
    stop: Option<Stop>,
}

impl Decoder {
    pub(super) fn new(provider: String, calls: Calls) -> Self {
        // OpenAI's models never think aloud between tags, so a text that begins with one is meant.
        let tags = Tags::new(provider != "openai");
        Decoder { provider, calls, tags, field: None, details: Vec::new(), thinking: false, stop: None }
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<Event>) {
        if let Some(details) = delta["reasoning_details"].as_array() {
            self.details.extend(details.iter().cloned());
            self.thinking = true;
        }
        for field in ["reasoning_content", "reasoning"] {
            if let Some(thought) = text(delta, field) {
                self.field.get_or_insert(field);
                self.thinking = true;
                out.push(Event::Thought(thought.to_owned()));
                // Servers that send both mean the same.
                break;
            }
        }
        if let Some(said) = text(delta, "content") {
            self.say(said, out);
        }
        if let Some(refusal) = text(delta, "refusal") {
            self.thought_ends(out);
            out.push(Event::Text(refusal.to_owned()));
            self.stop = Some(Stop::Refused);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.thought_ends(out);
            self.call(call, out);
        }
    }

    fn say(&mut self, said: &str, out: &mut Vec<Event>) {
        for (kind, piece) in self.tags.push(said) {
            match kind {
                Kind::Thought => out.push(Event::Thought(piece)),
                Kind::Text => {
                    self.thought_ends(out);
                    out.push(Event::Text(piece));
                }
            }
        }
    }

    /// A thought is over when something else comes.
    fn thought_ends(&mut self, out: &mut Vec<Event>) {
        if !std::mem::take(&mut self.thinking) {
            return;
        }
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            out.push(Event::Seal(seal(&self.provider, json!({ "details": joined(details) }))));
        } else if let Some(field) = self.field {
            out.push(Event::Seal(seal(&self.provider, json!({ "field": field }))));
        }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Event>) {
        let function = &call["function"];
        // Arguments are text that holds JSON; some servers send the JSON itself.
        let json = match &function["arguments"] {
            Value::String(json) => Some(json.clone()),
            object @ Value::Object(_) => Some(object.to_string()),
            _ => None,
        };
        let index = call["index"].as_u64();
        self.calls
            .take(Piece { index, id: text(call, "id"), name: text(function, "name"), json, seal: None }, out);
    }

    fn stopped(&mut self, reason: &str) {
        let stop = match reason {
            "stop" | "eos" | "tool_calls" | "function_call" => self.calls.stop(),
            "length" => Stop::MaxTokens,
            "content_filter" => Stop::Refused,
            other => Stop::Other(other.to_owned()),
        };
        self.stop.get_or_insert(stop);
    }
}

/// Pieces of the same thought, told by their kind and place, become one again.
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
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault> {
        if let Some(fault) = error_in(message) {
            return Err(fault);
        }
        let usage = &message["usage"];
        let choice = message["choices"].get(0);
        if choice.is_none() && !usage.is_object() && message.get("choices").is_none() {
            return Err(nonsense("a message without choices"));
        }
        if let Some(choice) = choice {
            // A whole answer instead of its pieces has a message where those have a delta.
            let part = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
            self.delta(part, out);
            if let Some(reason) = text(choice, "finish_reason") {
                self.stopped(reason);
            }
        }
        if usage.is_object() {
            let cached = count(usage, "/prompt_tokens_details/cached_tokens")
                .max(count(usage, "/prompt_cache_hit_tokens"));
            let thought = count(usage, "/completion_tokens_details/reasoning_tokens");
            out.push(openai_usage(
                count(usage, "/prompt_tokens"),
                cached,
                count(usage, "/completion_tokens"),
                thought,
            ));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        if let Some((kind, piece)) = self.tags.rest() {
            out.push(if kind == Kind::Thought { Event::Thought(piece) } else { Event::Text(piece) });
        }
        self.thought_ends(out);
        self.calls.finish(self.stop.take(), out);
    }
}
