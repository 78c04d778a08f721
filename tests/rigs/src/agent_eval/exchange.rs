//! One request to the model and its answer, as the gateway saw them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    request: Value,
    status: u16,
    pub(super) text: String,
    calls: Vec<ModelCall>,
    /// Tokens of the prompt.
    pub(super) read: u64,
    /// Tokens of the answer.
    pub(super) written: u64,
    pub(super) took: Duration,
}

/// A tool call in the API's own form.
#[derive(Clone, Debug, Default)]
struct ModelCall {
    name: String,
    arguments: String,
}

impl Exchange {
    pub(super) fn new(request: Value, answer: &str, status: u16, took: Duration) -> Self {
        let mut exchange = Exchange { request, status, took, ..Exchange::default() };
        let mut calls: BTreeMap<u64, ModelCall> = BTreeMap::new();
        let is_stream = answer.trim_start().starts_with("data:");
        let pieces = if is_stream {
            answer.lines().filter_map(|line| line.strip_prefix("data:")).collect()
        } else {
            vec![answer]
        };
        for piece in pieces {
            let Ok(piece) = serde_json::from_str::<Value>(piece.trim()) else { continue };
            let choice = &piece["choices"][0];
            let message = if is_stream { &choice["delta"] } else { &choice["message"] };
            exchange.text.push_str(message["content"].as_str().unwrap_or_default());
            for (at, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
                let entry = calls.entry(call["index"].as_u64().unwrap_or(at as u64)).or_default();
                entry.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
                entry.arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
            }
            if let Some(read) = piece["usage"]["prompt_tokens"].as_u64() {
                (exchange.read, exchange.written) =
                    (read, piece["usage"]["completion_tokens"].as_u64().unwrap_or(0));
            }
        }
        exchange.calls = calls.into_values().collect();
        exchange
    }

    /// The number of tool calls that an agent cannot run as they are: written as text, for a tool
    /// that was not offered, with arguments that are not an object, or without required arguments.
    pub(super) fn malformed(&self) -> usize {
        let native = self.calls.iter().filter(|call| !self.is_valid(call)).count();
        let is_text_call = self.calls.is_empty() && self.tools().any(|tool| mentions_call(&self.text, tool));
        native + usize::from(is_text_call)
    }

    /// Whether tools were offered; titles and summaries have none.
    pub(super) fn is_step(&self) -> bool {
        self.tools().next().is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.status >= 400
    }

    fn tools(&self) -> impl Iterator<Item = &Value> {
        self.request["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"])
    }

    fn is_valid(&self, call: &ModelCall) -> bool {
        let Some(tool) = self.tools().find(|tool| tool["name"] == call.name.as_str()) else { return false };
        let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else { return false };
        let mut required =
            tool["parameters"]["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        required.all(|name| arguments.contains_key(name))
    }

    pub(super) fn to_json(&self) -> Value {
        let calls = self.calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments}));
        json!({
            "ms": self.took.as_millis() as u64, "status": self.status, "read": self.read, "written": self.written,
            "text": self.text, "calls": calls.collect::<Vec<_>>(), "malformed": self.malformed(), "request": self.request,
        })
    }
}

/// Whether a text contains a call of this tool as JSON.
fn mentions_call(text: &str, tool: &Value) -> bool {
    let Some(name) = tool["name"].as_str() else { return false };
    let dense: String = text.chars().filter(|char| !char.is_whitespace()).collect();
    ["name", "tool", "function"].iter().any(|key| dense.contains(&format!("\"{key}\":\"{name}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(answer: &str) -> Exchange {
        let tool = json!({"function": {"name": "read", "parameters": {"required": ["path"]}}});
        Exchange::new(json!({"tools": [tool]}), answer, 200, Duration::ZERO)
    }

    fn with_call(name: &str, arguments: &str) -> Exchange {
        let call = json!({"function": {"name": name, "arguments": arguments}});
        exchange(&json!({"choices": [{"message": {"tool_calls": [call]}}]}).to_string())
    }

    #[test]
    fn calls_that_cannot_be_run_are_counted() {
        assert_eq!(with_call("read", r#"{"path": "a"}"#).malformed(), 0);
        for (name, arguments) in
            [("look", "{\"path\": \"a\"}"), ("read", "{\"path\": "), ("read", "[]"), ("read", "{}")]
        {
            assert_eq!(with_call(name, arguments).malformed(), 1, "{name} {arguments}");
        }
        let said = |text: &str| exchange(&json!({"choices": [{"message": {"content": text}}]}).to_string());
        assert_eq!(said("```json\n{\"name\": \"read\", \"arguments\": {}}\n```").malformed(), 1);
        assert_eq!(said("I read {\"name\": \"harbor\"}").malformed(), 0);
    }

    #[test]
    fn streamed_pieces_make_one_answer() {
        let piece = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
        let call = |name: &str, text: &str| json!({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": text}}]});
        let usage = "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n";
        let all = [
            piece(json!({"content": "So"})),
            piece(call("read", "{\"pa")),
            piece(call("", "th\": 1}")),
            usage.to_owned(),
        ];
        let exchange = exchange(&all.concat());
        assert_eq!((exchange.text.as_str(), exchange.read, exchange.written), ("So", 5, 2));
        assert_eq!(exchange.calls[0].arguments, "{\"path\": 1}");
        assert_eq!(exchange.malformed(), 0);
    }
}
