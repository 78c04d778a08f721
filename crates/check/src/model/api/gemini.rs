//! Gemini generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::{ReplyHead, Sent, Stream, list, word};
use crate::model::talk::{Ask, Input, Reply, Tool, Turn, texts};

pub(super) fn read(path: &str, body: &Value) -> Ask {
    let (model, verb) = path.rsplit('/').next().unwrap_or_default().split_once(':').unwrap_or_default();
    let mut turns = Vec::new();
    for content in list(body, "contents") {
        for part in list(content, "parts") {
            turns.push(match content["role"].as_str() {
                _ if part.get("functionResponse").is_some() => {
                    Turn::Result(texts(&part["functionResponse"]["response"]))
                }
                Some("model") => Turn::Model(texts(part)),
                _ => Turn::User(texts(part)),
            });
        }
    }
    let declared = list(body, "tools").flat_map(|tool| list(tool, "functionDeclarations"));
    let schema = |tool: &Value| {
        let given = ["parametersJsonSchema", "parameters"].iter().find_map(|key| tool.get(*key));
        given.cloned().unwrap_or_else(|| json!({}))
    };
    Ask {
        model: model.to_owned(),
        stream: verb == "streamGenerateContent",
        tools: declared.map(|tool| Tool { name: word(tool, "name"), schema: schema(tool) }).collect(),
        turns,
    }
}

fn response(model: &str, number: u64, parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": model,
        "responseId": format!("response-{number}"),
    })
}

fn function(number: u64, tool: &str, input: &Input) -> Value {
    let args = match input {
        Input::Json(value) => value.clone(),
        Input::Text(text) => json!({"input": text}),
    };
    json!([{"functionCall": {"id": format!("call-{number}"), "name": tool, "args": args}}])
}

pub(super) fn whole(model: &str, number: u64, reply: &Reply) -> Value {
    let parts = match reply {
        Reply::Text(text) => json!([{"text": text}]),
        Reply::Endless | Reply::Fail => json!([]),
        Reply::Call { tool, input } => function(number, tool, input),
    };
    response(model, number, parts, Some("STOP"))
}

/// A reply in the form of this API.
pub(super) struct Streamed(pub(super) ReplyHead);

impl Streamed {
    fn part(&self, parts: Value, finish: Option<&str>) -> Sent {
        vec![("", response(&self.0.model, self.0.number, parts, finish).to_string())]
    }
}

impl Stream for Streamed {
    fn begin_text(&mut self) -> Sent {
        Vec::new()
    }

    fn text(&mut self, piece: &str) -> Sent {
        self.part(json!([{"text": piece}]), None)
    }

    fn call(&mut self, tool: &str, input: &Input) -> Sent {
        self.part(function(self.0.number, tool, input), None)
    }

    fn end(&mut self, _reply: &Reply) -> Sent {
        self.part(json!([{"text": ""}]), Some("STOP"))
    }
}
