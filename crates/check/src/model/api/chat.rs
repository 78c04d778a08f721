//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{ReplyHead, Sent, Stream, list, word};
use crate::model::talk::{Ask, Input, Reply, Tool, Turn, texts};

pub(super) fn read(body: &Value) -> Ask {
    let tools = list(body, "tools").map(|tool| &tool["function"]);
    let turns = list(body, "messages").filter_map(|message| {
        let text = texts(&message["content"]);
        Some(match message["role"].as_str()? {
            "user" => Turn::User(text),
            "assistant" => Turn::Model(text),
            "tool" => Turn::Result(text),
            _ => return None,
        })
    });
    Ask {
        model: word(body, "model"),
        stream: body["stream"] == true,
        tools: tools
            .map(|tool| Tool { name: word(tool, "name"), schema: tool["parameters"].clone() })
            .collect(),
        turns: turns.collect(),
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

fn finish(reply: &Reply) -> &'static str {
    if matches!(reply, Reply::Call { .. }) { "tool_calls" } else { "stop" }
}

fn function(number: u64, tool: &str, input: &Input) -> Value {
    let arguments = match input {
        Input::Json(value) => value.to_string(),
        Input::Text(text) => text.clone(),
    };
    json!({"id": format!("call_{number}"), "type": "function", "function": {"name": tool, "arguments": arguments}})
}

pub(super) fn whole(model: &str, number: u64, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    match reply {
        Reply::Text(text) => message["content"] = json!(text),
        Reply::Endless | Reply::Fail => {}
        Reply::Call { tool, input } => message["tool_calls"] = json!([function(number, tool, input)]),
    }
    json!({
        "id": format!("chatcmpl-{number}"),
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}],
        "usage": usage(),
    })
}

/// A reply in the form of this API.
pub(super) struct Streamed(pub(super) ReplyHead);

impl Streamed {
    fn chunk(&self, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.0.number),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.0.model,
            "choices": choices,
        })
    }

    fn delta(&self, delta: Value, finish: Value) -> (&'static str, String) {
        ("", self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}])).to_string())
    }
}

impl Stream for Streamed {
    fn begin_text(&mut self) -> Sent {
        vec![self.delta(json!({"role": "assistant", "content": ""}), Value::Null)]
    }

    fn text(&mut self, piece: &str) -> Sent {
        vec![self.delta(json!({"content": piece}), Value::Null)]
    }

    fn call(&mut self, tool: &str, input: &Input) -> Sent {
        let mut function = function(self.0.number, tool, input);
        function["index"] = json!(0);
        let arguments = function["function"]["arguments"].take();
        function["function"]["arguments"] = json!("");
        let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
        vec![
            self.delta(json!({"role": "assistant", "content": null, "tool_calls": [function]}), Value::Null),
            self.delta(rest, Value::Null),
        ]
    }

    fn end(&mut self, reply: &Reply) -> Sent {
        let mut last = self.chunk(json!([]));
        last["usage"] = usage();
        vec![self.delta(json!({}), json!(finish(reply))), ("", last.to_string()), ("", "[DONE]".to_owned())]
    }
}
