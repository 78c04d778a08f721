//! Google's `streamGenerateContent`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::calls::Calls;
use super::{Decode, Fault, count, error_in, nonsense, own_seal, result_text, seal, text};
use crate::model::{Event, Message, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec, Usage};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut body = json!({ "contents": contents(info, request) });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{ "functionDeclarations": declarations }]);
    }
    let mut config = json!({});
    if let Some(max) = request.max_output {
        config["maxOutputTokens"] = json!(max.min(info.max_output));
    }
    if let (true, Some(thinking)) = (info.thinking, thinking(&info.id, request.thinking)) {
        config["thinkingConfig"] = thinking;
    }
    if config != json!({}) {
        body["generationConfig"] = config;
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.about, "parametersJsonSchema": tool.schema })
}

/// Up to 2.5 a budget of tokens, from 3 on a level.
fn thinking(id: &str, level: Thinking) -> Option<Value> {
    if id.contains("gemini-2") {
        let budget = match level {
            // The large ones cannot stop thinking altogether.
            Thinking::Off if id.contains("pro") => return None,
            Thinking::Off => 0,
            Thinking::Low => 2_048,
            Thinking::Medium => 8_192,
            Thinking::High => 24_576,
        };
        return Some(json!({ "includeThoughts": budget > 0, "thinkingBudget": budget }));
    }
    match level {
        Thinking::Off => None,
        level => Some(json!({ "includeThoughts": true, "thinkingLevel": level.word() })),
    }
}

fn contents(info: &ModelInfo, request: &Request) -> Vec<Value> {
    // Results name their tool, which only the call knows.
    let calls = request.messages.iter().flat_map(Message::calls);
    let names: HashMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    let mut contents = Vec::new();
    for message in &request.messages {
        let mut unsigned = message.role == Role::Assistant && !info.id.contains("gemini-2");
        let mut parts: Vec<Value> = Vec::new();
        for part in &message.parts {
            match part {
                Part::Result { call, parts: answer, failed } => {
                    let name = names.get(call.as_str()).copied().unwrap_or("unknown");
                    parts.push(response(name, answer, *failed));
                    parts.extend(answer.iter().filter_map(media));
                }
                Part::Call(call) => {
                    let mut value = json!({ "functionCall": { "name": call.name, "args": call.arguments } });
                    if let Some(signature) =
                        own_seal(call.seal.as_ref(), &info.provider).and_then(|seal| seal.get("signature"))
                    {
                        value["thoughtSignature"] = signature.clone();
                    } else if unsigned {
                        // The first call of an answer must be signed, which one by another model is not. This is the
                        // interface's own word for that case.
                        value["thoughtSignature"] = json!("skip_thought_signature_validator");
                    }
                    unsigned = false;
                    parts.push(value);
                }
                Part::Text(text) => parts.push(json!({ "text": text })),
                Part::Thought { seal, .. } => {
                    // A signature that came with text goes back with text; the thought itself does not.
                    let own = own_seal(seal.as_ref(), &info.provider);
                    if let Some(signature) = own.and_then(|seal| seal.get("signature")) {
                        parts.push(json!({ "text": "", "thoughtSignature": signature }));
                    }
                }
                other => parts.extend(media(other)),
            }
        }
        if !parts.is_empty() {
            let role = if message.role == Role::User { "user" } else { "model" };
            contents.push(json!({ "role": role, "parts": parts }));
        }
    }
    contents
}

fn response(name: &str, parts: &[Part], failed: bool) -> Value {
    let key = if failed { "error" } else { "output" };
    json!({ "functionResponse": { "name": name, "response": { key: result_text(parts, failed) } } })
}

fn media(part: &Part) -> Option<Value> {
    match part {
        Part::Image { mime, data } | Part::Audio { mime, data } => {
            Some(json!({ "inlineData": { "mimeType": mime, "data": data } }))
        }
        _ => None,
    }
}

pub(super) struct Decoder {
    provider: String,
    calls: Calls,
    stop: Option<Stop>,
}

impl Decoder {
    pub(super) fn new(provider: String, calls: Calls) -> Self {
        Decoder { provider, calls, stop: None }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Event>) {
        let signature =
            text(part, "thoughtSignature").map(|sign| seal(&self.provider, json!({ "signature": sign })));
        let call = &part["functionCall"];
        if call.is_object() {
            self.calls.whole(call, &call["args"], signature, out);
            return;
        }
        if let Some(said) = text(part, "text") {
            let thought = part["thought"].as_bool().unwrap_or(false);
            out.push(if thought { Event::Thought(said.to_owned()) } else { Event::Text(said.to_owned()) });
        }
        out.extend(signature.map(Event::Seal));
    }

    fn stopped(&mut self, reason: &str) {
        self.stop = Some(match reason {
            "STOP" => self.calls.stop(),
            "MAX_TOKENS" => Stop::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                Stop::Refused
            }
            other => Stop::Other(other.to_owned()),
        });
    }

    fn count(usage: &Value, out: &mut Vec<Event>) {
        let cached = count(usage, "/cachedContentTokenCount");
        let read = count(usage, "/promptTokenCount") + count(usage, "/toolUsePromptTokenCount");
        let thought = count(usage, "/thoughtsTokenCount");
        out.push(Event::Usage(Usage {
            input: read.saturating_sub(cached),
            output: count(usage, "/candidatesTokenCount") + thought,
            cache_read: cached.min(read),
            cache_write: 0,
            thought,
        }));
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault> {
        if let Some(fault) = error_in(message) {
            return Err(fault);
        }
        let known = ["candidates", "usageMetadata", "promptFeedback"];
        if !known.iter().any(|key| message.get(key).is_some()) {
            return Err(nonsense("a message without candidates"));
        }
        if message.pointer("/promptFeedback/blockReason").is_some() {
            self.stop = Some(Stop::Refused);
        }
        if let Some(candidate) = message["candidates"].get(0) {
            for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
                self.part(part, out);
            }
            if let Some(reason) = text(candidate, "finishReason") {
                self.stopped(reason);
            }
        }
        if message["usageMetadata"].is_object() {
            Decoder::count(&message["usageMetadata"], out);
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
