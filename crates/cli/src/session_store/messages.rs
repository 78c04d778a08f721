//! The conversation of a session as one value, in the format of acpx: messages, tool calls, usage
//! and cost.

use std::collections::HashMap;

use attache::wire::v1::{ContentBlock, ToolCallContent, ToolCallStatus};
use attache_transcript::{Event, ItemKind, Role, ToolCall, Transcript};
use serde_json::{Map, Value, json};

use super::line::{Entry, HistoryLine};
use crate::lenient::TokenCounts;

/// Folds the lines of a history.
pub(super) fn messages(lines: impl Iterator<Item = HistoryLine>) -> Value {
    let mut transcript = Transcript::default();
    let mut ids: HashMap<u64, Value> = HashMap::new();
    let mut usage = None;
    for line in lines {
        match line.entry() {
            Entry::Prompt(blocks) => {
                ids.insert(transcript.end(), line.request.or(line.at).unwrap_or_default());
                transcript.fold(Event::Prompt(blocks));
            }
            Entry::Update(update) => transcript.fold((*update).into()),
            Entry::Other => {
                if let Some(counts) = line.result().and_then(|result| result.usage) {
                    usage = tokens(counts);
                }
            }
        }
    }
    let mut value = Map::from_iter([("messages".to_owned(), json!(turns(&transcript, &ids)))]);
    if let Some(usage) = usage {
        value.insert("cumulative_token_usage".to_owned(), usage);
    }
    if let Some(cost) = transcript.usage.and_then(|usage| usage.cost) {
        value.insert("cumulative_cost".to_owned(), json!(cost));
    }
    Value::Object(value)
}

/// Returns the prompts, each followed by one message with all that the agent did in its turn.
fn turns(transcript: &Transcript, ids: &HashMap<u64, Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut content: Vec<Value> = Vec::new();
    let mut results = Map::new();
    let end_turn = |all: &mut Vec<Value>, content: &mut Vec<Value>, results: &mut Map<String, Value>| {
        if !content.is_empty() {
            let (content, results) = (std::mem::take(content), std::mem::take(results));
            all.push(json!({ "Agent": { "content": content, "tool_results": results } }));
        }
    };
    for (at, item) in transcript.items() {
        match &item.kind {
            ItemKind::Message(message) if message.prompt => {
                end_turn(&mut all, &mut content, &mut results);
                let blocks: Vec<Value> = message.content.iter().map(block).collect();
                all.push(json!({ "User": { "id": ids.get(&at), "content": blocks } }));
            }
            ItemKind::Message(message) => {
                let text: String = message.texts().collect();
                match message.role {
                    Role::Agent => content.push(json!({ "Text": text })),
                    Role::Thought => content.push(json!({ "Thinking": { "text": text, "signature": null } })),
                    Role::User => {}
                }
            }
            ItemKind::ToolCall(call) => {
                content.push(tool_use(call));
                if call.is_final() {
                    results.insert(call.id().to_string(), tool_result(call));
                }
            }
            _ => {}
        }
    }
    end_turn(&mut all, &mut content, &mut results);
    all
}

fn tool_use(call: &ToolCall) -> Value {
    let input: Value =
        call.state.raw_input.as_ref().and_then(|input| input.parse().ok()).unwrap_or_else(|| json!({}));
    json!({ "ToolUse": {
        "id": call.id(), "name": tool_name(call), "raw_input": input.to_string(), "input": input,
        "is_input_complete": true, "thought_signature": null,
    } })
}

fn tool_result(call: &ToolCall) -> Value {
    let texts = call.content().iter().filter_map(|content| match content {
        ToolCallContent::Content(content) => content.content.as_text(),
        _ => None,
    });
    json!({
        "tool_use_id": call.id(),
        "tool_name": tool_name(call),
        "is_error": call.status() == ToolCallStatus::Failed,
        "content": { "Text": texts.collect::<String>() },
    })
}

fn tool_name(call: &ToolCall) -> &str {
    call.state.title.as_deref().unwrap_or(call.id().as_str())
}

fn block(block: &ContentBlock) -> Value {
    let mention = |uri: &str, name: Option<&str>| json!({ "Mention": { "uri": uri, "content": name } });
    match block {
        ContentBlock::Text(text) => json!({ "Text": text.text }),
        ContentBlock::ResourceLink(link) => mention(&link.uri, Some(&link.name)),
        ContentBlock::Image(image) => match &image.uri {
            Some(uri) => mention(uri, None),
            None => json!({ "Text": "[image]" }),
        },
        ContentBlock::Audio(_) => json!({ "Text": "[audio]" }),
        _ => json!({ "Text": "[resource]" }),
    }
}

fn tokens(usage: TokenCounts) -> Option<Value> {
    let counts = [
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("cache_read_input_tokens", usage.cached_read_tokens),
        ("cache_creation_input_tokens", usage.cached_write_tokens),
        ("total_tokens", usage.total_tokens),
    ];
    let members =
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), Value::Number(count?))));
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
        let lines = lines.iter().filter_map(|line| HistoryLine::parse(line.to_string().as_bytes()));
        let value = messages(lines);
        assert_eq!(value["messages"][0], json!({ "User": { "id": "r1", "content": [{ "Text": "hi" }] } }));
        let agent = &value["messages"][1]["Agent"];
        assert_eq!(agent["content"][0]["Thinking"]["text"], "let me see");
        assert_eq!(agent["content"][1]["ToolUse"]["input"]["path"], "a");
        assert_eq!(agent["content"][2], json!({ "Text": "hello" }));
        assert_eq!(agent["tool_results"]["t"]["content"]["Text"], "read");
        assert_eq!(value["cumulative_token_usage"], json!({ "total_tokens": 5 }));
    }
}
