//! OpenAI responses.

use serde_json::{Value, json};

use super::{Sent, Stream, list, word};
use crate::model::talk::{Ask, Input, Reply, Tool, Turn, texts};

pub(super) fn read(body: &Value) -> Ask {
    let turns = match &body["input"] {
        Value::String(text) => vec![Turn::User(text.clone())],
        _ => list(body, "input").filter_map(turn).collect(),
    };
    // Besides functions and tools that take plain text there are some that the service itself would
    // run.
    let tools = list(body, "tools").filter_map(|tool| match tool["type"].as_str()? {
        "function" => Some(Tool { name: word(tool, "name"), schema: tool["parameters"].clone() }),
        "custom" => Some(Tool { name: word(tool, "name"), schema: Value::Null }),
        _ => None,
    });
    Ask { model: word(body, "model"), stream: body["stream"] == true, tools: tools.collect(), turns }
}

fn turn(item: &Value) -> Option<Turn> {
    let text = texts(&item["content"]);
    match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
        ("message", Some("user")) => Some(Turn::User(text)),
        ("message", Some("assistant")) => Some(Turn::Model(text)),
        ("function_call_output" | "custom_tool_call_output", _) => Some(Turn::Result(texts(&item["output"]))),
        _ => None,
    }
}

fn item(number: u64, reply: &Reply) -> Value {
    let call_id = format!("call_{number}");
    match reply {
        Reply::Text(text) => message(number, text),
        Reply::Endless | Reply::Fail => message(number, ""),
        Reply::Call { tool, input: Input::Json(input) } => json!({
            "type": "function_call",
            "id": format!("fc_{number}"),
            "call_id": call_id,
            "name": tool,
            "arguments": input.to_string(),
            "status": "completed",
        }),
        Reply::Call { tool, input: Input::Text(input) } => json!({
            "type": "custom_tool_call",
            "id": format!("ctc_{number}"),
            "call_id": call_id,
            "name": tool,
            "input": input,
            "status": "completed",
        }),
    }
}

fn message(number: u64, text: &str) -> Value {
    json!({
        "type": "message",
        "id": format!("msg_{number}"),
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

fn response(model: &str, number: u64, status: &str, output: Value) -> Value {
    json!({
        "id": format!("resp_{number}"),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": model,
        "output": output,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    })
}

pub(super) fn whole(model: &str, number: u64, reply: &Reply) -> Value {
    response(model, number, "completed", json!([item(number, reply)]))
}

pub(super) struct Streamed {
    model: String,
    number: u64,
    events: u64,
    said: String,
}

impl Streamed {
    pub(super) fn new(model: &str, number: u64) -> Self {
        Self { model: model.to_owned(), number, events: 0, said: String::new() }
    }

    fn event(&mut self, name: &'static str, mut data: Value) -> (&'static str, String) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events);
        self.events += 1;
        (name, data.to_string())
    }

    fn created(&mut self) -> (&'static str, String) {
        let response = response(&self.model, self.number, "in_progress", json!([]));
        self.event("response.created", json!({"response": response}))
    }

    fn message_id(&self) -> String {
        format!("msg_{}", self.number)
    }
}

impl Stream for Streamed {
    fn begin_text(&mut self) -> Sent {
        let item = json!({"type": "message", "id": self.message_id(), "role": "assistant", "status": "in_progress", "content": []});
        let part = json!({"type": "output_text", "text": "", "annotations": []});
        let part = json!({"item_id": self.message_id(), "output_index": 0, "content_index": 0, "part": part});
        vec![
            self.created(),
            self.event("response.output_item.added", json!({"output_index": 0, "item": item})),
            self.event("response.content_part.added", part),
        ]
    }

    fn text(&mut self, piece: &str) -> Sent {
        self.said.push_str(piece);
        let delta =
            json!({"item_id": self.message_id(), "output_index": 0, "content_index": 0, "delta": piece});
        vec![self.event("response.output_text.delta", delta)]
    }

    fn call(&mut self, tool: &str, input: &Input) -> Sent {
        let item = item(self.number, &Reply::Call { tool: tool.to_owned(), input: input.clone() });
        let (mut begun, id) = (item.clone(), item["id"].clone());
        begun["status"] = json!("in_progress");
        let (delta, done, key) = match input {
            Input::Json(_) => (
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "arguments",
            ),
            Input::Text(_) => {
                ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input")
            }
        };
        begun[key] = json!("");
        let mut whole = json!({"item_id": id, "output_index": 0});
        whole[key] = item[key].clone();
        vec![
            self.created(),
            self.event("response.output_item.added", json!({"output_index": 0, "item": begun})),
            self.event(delta, json!({"item_id": id, "output_index": 0, "delta": item[key]})),
            self.event(done, whole),
        ]
    }

    fn end(&mut self, reply: &Reply) -> Sent {
        let mut sent = Vec::new();
        let item = if matches!(reply, Reply::Call { .. }) {
            item(self.number, reply)
        } else {
            let (id, text) = (self.message_id(), self.said.clone());
            let place = json!({"item_id": id, "output_index": 0, "content_index": 0, "text": text});
            sent.push(self.event("response.output_text.done", place));
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            let part = json!({"item_id": id, "output_index": 0, "content_index": 0, "part": part});
            sent.push(self.event("response.content_part.done", part));
            message(self.number, &text)
        };
        sent.push(self.event("response.output_item.done", json!({"output_index": 0, "item": item})));
        let response = response(&self.model, self.number, "completed", json!([item]));
        sent.push(self.event("response.completed", json!({"response": response})));
        sent
    }
}
