//! Google's `streamGenerateContent`.

use serde_json::{Value, json};

use super::{Decode, Decoded, count, items, max_output, own_signature, result_text, signed_by, text};
use crate::model::{ModelError, ModelInfo, Part, Request, Role, Stop, Thinking, ToolSpec};

pub(super) fn body(info: &ModelInfo, request: &Request) -> Value {
    let mut body = json!({ "contents": contents(info, request) });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
    }
    if !request.tools.is_empty() {
        let tool = |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.about, "parametersJsonSchema": tool.schema });
        let declarations: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{ "functionDeclarations": declarations }]);
        // Earlier models do not search beside other tools.
        if request.web_search && !["gemini-1", "gemini-2"].iter().any(|old| info.id.contains(old)) {
            body["tools"] = json!([{ "functionDeclarations": declarations }, { "googleSearch": {} }]);
            body["toolConfig"] = json!({ "includeServerSideToolInvocations": true });
        }
    }
    if let Some(max) = max_output(info, request) {
        body["generationConfig"]["maxOutputTokens"] = json!(max);
    }
    if let Some(temperature) = request.temperature {
        body["generationConfig"]["temperature"] = json!(temperature);
    }
    if let (true, Some(thinking)) = (info.thinking, thinking(&info.id, request.thinking)) {
        body["generationConfig"]["thinkingConfig"] = thinking;
    }
    body
}

/// Up to version 2.5 a token budget, from 3 on a level.
fn thinking(id: &str, level: Thinking) -> Option<Value> {
    if id.contains("gemini-2") {
        let budget = match level {
            // The large models cannot switch thinking off.
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
        level => Some(json!({ "includeThoughts": true, "thinkingLevel": level.id() })),
    }
}

fn contents(info: &ModelInfo, request: &Request) -> Vec<Value> {
    let names = request.tool_names();
    let mut contents = Vec::new();
    for message in &request.messages {
        let mut unsigned = message.role == Role::Assistant && !info.id.contains("gemini-2");
        let mut parts: Vec<Value> = Vec::new();
        for part in &message.parts {
            match part {
                Part::Result { call, parts: result, failed } => {
                    let name = names.get(call.as_str()).copied().unwrap_or("unknown");
                    let key = if *failed { "error" } else { "output" };
                    let response = json!({ key: result_text(result, *failed) });
                    parts.push(json!({ "functionResponse": { "name": name, "response": response } }));
                    parts.extend(result.iter().filter_map(media));
                }
                Part::Call(call) => {
                    let mut value = json!({ "functionCall": { "name": call.name, "args": call.arguments } });
                    if let Some(signature) = own_signature(&call.signature, info, "signature") {
                        value["thoughtSignature"] = signature.clone();
                    } else if unsigned {
                        // The first call of a response must be signed; this value is the API's own
                        // for calls of other models.
                        value["thoughtSignature"] = json!("skip_thought_signature_validator");
                    }
                    unsigned = false;
                    parts.push(value);
                }
                Part::Text(text) => parts.push(json!({ "text": text })),
                Part::Thought { signature, .. } => {
                    if let Some(search) = own_signature(signature, info, "part") {
                        parts.push(search.clone());
                    }
                    // The signature is sent back with an empty text, without the thought itself.
                    if let Some(signature) = own_signature(signature, info, "signature") {
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

fn media(part: &Part) -> Option<Value> {
    match part {
        Part::Image { mime, data } | Part::Audio { mime, data } => {
            Some(json!({ "inlineData": { "mimeType": mime, "data": data } }))
        }
        _ => None,
    }
}

pub(super) struct Decoder;

fn part(part: &Value, out: &mut Decoded) {
    let signature = text(part, "thoughtSignature").map(|signature| json!({ "signature": signature }));
    let call = &part["functionCall"];
    if call.is_object() {
        let signature = signature.map(|signature| signed_by(&out.provider, signature));
        return out.calls.whole(call, &call["args"], signature, &mut out.events);
    }
    // A search of the provider is sent back as it came.
    if part.get("toolCall").or(part.get("toolResponse")).is_some() {
        out.search_text(&part["toolCall"]["args"]);
        return out.signature(json!({ "part": part }));
    }
    match part["thought"].as_bool() {
        Some(true) => out.thought(text(part, "text")),
        _ => out.text(text(part, "text")),
    }
    if let Some(signature) = signature {
        out.signature(signature);
    }
}

impl Decode for Decoder {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError> {
        let known = ["candidates", "usageMetadata", "promptFeedback"];
        if !known.iter().any(|key| message.get(key).is_some()) {
            return Err(ModelError::protocol("a message without candidates"));
        }
        if message.pointer("/promptFeedback/blockReason").is_some() {
            out.stop = Some(Stop::Refused);
        }
        if let Some(candidate) = message["candidates"].get(0) {
            items(&candidate["content"], "parts").for_each(|value| part(value, out));
            if let Some(reason) = text(candidate, "finishReason") {
                out.stop = Some(match reason {
                    "STOP" => out.calls.stop(),
                    "MAX_TOKENS" => Stop::MaxTokens,
                    "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
                    | "IMAGE_SAFETY" => Stop::Refused,
                    other => Stop::Other(other.to_owned()),
                });
            }
        }
        let usage = &message["usageMetadata"];
        if usage.is_object() {
            let input = count(usage, "/promptTokenCount") + count(usage, "/toolUsePromptTokenCount");
            let thought = count(usage, "/thoughtsTokenCount");
            let output = count(usage, "/candidatesTokenCount") + thought;
            out.usage_with_cache(input, count(usage, "/cachedContentTokenCount"), output, thought);
        }
        Ok(())
    }
}
