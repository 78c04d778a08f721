//! The conversation of a session as one value, in the shape in which records of acpx hold it: who said what, which tools were used,
//! what it cost.

use serde_json::{Map, Value, json};

/// Puts the messages together from the raw lines.
pub(super) fn messages(lines: &[Value]) -> Value {
    let mut thread = Thread::default();
    for line in lines {
        match line.get("method").and_then(Value::as_str) {
            Some("session/prompt") => thread.prompt(line),
            Some("session/update") => {
                if let Some(update) = line.pointer("/params/update") {
                    thread.update(update);
                }
            }
            _ => {
                if let Some(usage) = line.pointer("/result/usage") {
                    thread.usage = tokens(usage);
                }
            }
        }
    }
    thread.end();
    let mut value = Map::from_iter([("messages".to_owned(), json!(thread.messages))]);
    if let Some(usage) = thread.usage {
        value.insert("cumulative_token_usage".to_owned(), usage);
    }
    if let Some(cost) = thread.cost {
        value.insert("cumulative_cost".to_owned(), cost);
    }
    Value::Object(value)
}

#[derive(Default)]
struct Thread {
    messages: Vec<Value>,
    /// What the agent is saying.
    content: Vec<Value>,
    results: Map<String, Value>,
    usage: Option<Value>,
    cost: Option<Value>,
}

impl Thread {
    fn prompt(&mut self, line: &Value) {
        self.end();
        let blocks = line.pointer("/params/prompt").and_then(Value::as_array);
        let content: Vec<Value> = blocks.into_iter().flatten().map(block).collect();
        let id = line.get("request").or_else(|| line.get("at")).cloned().unwrap_or_default();
        self.messages.push(json!({ "User": { "id": id, "content": content } }));
    }

    fn update(&mut self, update: &Value) {
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("agent_message_chunk") => self.piece(update, "Text"),
            Some("agent_thought_chunk") => self.piece(update, "Thinking"),
            Some("tool_call" | "tool_call_update") => self.tool(update),
            Some("usage_update") => {
                self.cost = update.get("cost").filter(|cost| cost.is_object()).cloned().or(self.cost.take());
            }
            _ => {}
        }
    }

    /// Pieces of one kind that follow each other are one text.
    fn piece(&mut self, update: &Value, kind: &str) {
        let Some(text) = update.pointer("/content/text").and_then(Value::as_str) else { return };
        let place = match kind {
            "Text" => "/Text",
            _ => "/Thinking/text",
        };
        if let Some(Value::String(last)) = self.content.last_mut().and_then(|last| last.pointer_mut(place)) {
            last.push_str(text);
            return;
        }
        self.content.push(match kind {
            "Text" => json!({ "Text": text }),
            _ => json!({ "Thinking": { "text": text, "signature": null } }),
        });
    }

    fn tool(&mut self, update: &Value) {
        let Some(id) = update.get("toolCallId").and_then(Value::as_str) else { return };
        let known = self.content.iter_mut().find(|part| part.pointer("/ToolUse/id") == Some(&json!(id)));
        let part = match known {
            Some(part) => part,
            None => {
                self.content.push(json!({ "ToolUse": {
                    "id": id, "name": id, "raw_input": "{}", "input": {}, "is_input_complete": true, "thought_signature": null,
                } }));
                let Some(part) = self.content.last_mut() else { return };
                part
            }
        };
        if let Some(title) = update.get("title").filter(|title| title.is_string()) {
            part["ToolUse"]["name"] = title.clone();
        }
        if let Some(input) = update.get("rawInput").filter(|input| !input.is_null()) {
            part["ToolUse"]["raw_input"] = json!(input.to_string());
            part["ToolUse"]["input"] = input.clone();
        }
        let status = update.get("status").and_then(Value::as_str);
        if let Some(status @ ("completed" | "failed")) = status {
            let text: String = update
                .get("content")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|content| content.pointer("/content/text")?.as_str())
                .collect();
            let result = json!({
                "tool_use_id": id,
                "tool_name": part["ToolUse"]["name"],
                "is_error": status == "failed",
                "content": { "Text": text },
            });
            self.results.insert(id.to_owned(), result);
        }
    }

    /// The agent has had its say.
    fn end(&mut self) {
        if self.content.is_empty() {
            return;
        }
        let (content, results) = (std::mem::take(&mut self.content), std::mem::take(&mut self.results));
        self.messages.push(json!({ "Agent": { "content": content, "tool_results": results } }));
    }
}

fn block(block: &Value) -> Value {
    match block.get("text").and_then(Value::as_str) {
        Some(text) => json!({ "Text": text }),
        None => match block.get("uri").and_then(Value::as_str) {
            Some(uri) => json!({ "Mention": { "uri": uri, "content": block.get("name") } }),
            None => {
                json!({ "Text": format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or("content")) })
            }
        },
    }
}

fn tokens(usage: &Value) -> Option<Value> {
    let names = [
        ("inputTokens", "input_tokens"),
        ("outputTokens", "output_tokens"),
        ("cachedReadTokens", "cache_read_input_tokens"),
        ("cachedWriteTokens", "cache_creation_input_tokens"),
        ("totalTokens", "total_tokens"),
    ];
    let members = names.iter().filter_map(|(theirs, ours)| {
        let count = usage.get(theirs).filter(|count| count.is_number())?;
        Some(((*ours).to_owned(), count.clone()))
    });
    let members: Map<String, Value> = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_messages() {
        let update = |update: Value| json!({ "method": "session/update", "params": { "update": update } });
        let chunk = |kind: &str, text: &str| {
            update(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
        };
        let lines = [
            json!({ "method": "session/prompt", "request": "r1", "params": { "prompt": [{ "type": "text", "text": "hi" }] } }),
            chunk("agent_thought_chunk", "let "),
            chunk("agent_thought_chunk", "me see"),
            update(
                json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read a", "rawInput": { "path": "a" } }),
            ),
            update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
                "content": [{ "type": "content", "content": { "type": "text", "text": "read" } }] })),
            chunk("agent_message_chunk", "he"),
            chunk("agent_message_chunk", "llo"),
            json!({ "id": 1, "result": { "stopReason": "end_turn", "usage": { "totalTokens": 5 } } }),
        ];
        let value = messages(&lines);
        assert_eq!(value["messages"][0], json!({ "User": { "id": "r1", "content": [{ "Text": "hi" }] } }));
        let agent = &value["messages"][1]["Agent"];
        assert_eq!(agent["content"][0]["Thinking"]["text"], "let me see");
        assert_eq!(agent["content"][1]["ToolUse"]["input"]["path"], "a");
        assert_eq!(agent["content"][2], json!({ "Text": "hello" }));
        assert_eq!(agent["tool_results"]["t"]["content"]["Text"], "read");
        assert_eq!(value["cumulative_token_usage"], json!({ "total_tokens": 5 }));
    }
}
