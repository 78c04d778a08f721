//! Anthropic messages.

use serde_json::{Value, json};

use super::{ReplyHead, Sent, Stream, list, word};
use crate::model::talk::{Ask, Input, Reply, Tool, Turn, texts};

pub(super) fn read(body: &Value) -> Ask {
    let mut turns = Vec::new();
    for message in list(body, "messages") {
        let user = message["role"] == "user";
        let turn = |text: String| if user { Turn::User(text) } else { Turn::Model(text) };
        match &message["content"] {
            Value::Array(blocks) => turns.extend(blocks.iter().map(|block| match block["type"].as_str() {
                Some("tool_result") => Turn::Result(texts(&block["content"])),
                _ => turn(texts(block)),
            })),
            content => turns.push(turn(texts(content))),
        }
    }
    Ask {
        model: word(body, "model"),
        stream: body["stream"] == true,
        tools: list(body, "tools")
            .map(|tool| Tool { name: word(tool, "name"), schema: tool["input_schema"].clone() })
            .collect(),
        turns,
    }
}

fn stop(reply: &Reply) -> &'static str {
    if matches!(reply, Reply::Call { .. }) { "tool_use" } else { "end_turn" }
}

fn json_input(input: &Input) -> Value {
    match input {
        Input::Json(value) => value.clone(),
        Input::Text(text) => json!({"input": text}),
    }
}

fn message(model: &str, number: u64, content: Value, stop: Value) -> Value {
    json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    })
}

pub(super) fn whole(model: &str, number: u64, reply: &Reply) -> Value {
    let content = match reply {
        Reply::Text(text) => json!([{"type": "text", "text": text}]),
        Reply::Endless | Reply::Fail => json!([]),
        Reply::Call { tool, input } => {
            json!([{"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": json_input(input)}])
        }
    };
    message(model, number, content, json!(stop(reply)))
}

/// A reply in the form of this API.
pub(super) struct Streamed(pub(super) ReplyHead);

impl Streamed {
    fn begin(&self, block: Value) -> Sent {
        let message = message(&self.0.model, self.0.number, json!([]), Value::Null);
        vec![
            event("message_start", json!({"message": message})),
            event("content_block_start", json!({"index": 0, "content_block": block})),
        ]
    }
}

fn event(name: &'static str, mut data: Value) -> (&'static str, String) {
    data["type"] = json!(name);
    (name, data.to_string())
}

fn delta(delta: Value) -> (&'static str, String) {
    event("content_block_delta", json!({"index": 0, "delta": delta}))
}

impl Stream for Streamed {
    fn begin_text(&mut self) -> Sent {
        self.begin(json!({"type": "text", "text": ""}))
    }

    fn text(&mut self, piece: &str) -> Sent {
        vec![delta(json!({"type": "text_delta", "text": piece}))]
    }

    fn call(&mut self, tool: &str, input: &Input) -> Sent {
        let id = format!("toolu_{}", self.0.number);
        let mut sent = self.begin(json!({"type": "tool_use", "id": id, "name": tool, "input": {}}));
        let input = json_input(input).to_string();
        sent.push(delta(json!({"type": "input_json_delta", "partial_json": input})));
        sent
    }

    fn end(&mut self, reply: &Reply) -> Sent {
        let end = json!({"stop_reason": stop(reply), "stop_sequence": null});
        vec![
            event("content_block_stop", json!({"index": 0})),
            event("message_delta", json!({"delta": end, "usage": {"output_tokens": 5}})),
            event("message_stop", json!({})),
        ]
    }
}
