//! Reads a history message by message.
//!
//! A history may be larger than the memory, so it is neither read as a whole nor folded into a
//! transcript, which keeps everything.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use serde_json::Value;

use crate::output::push_bounded;

/// Bytes of a message that are shown.
const LONGEST: usize = 1 << 20;

/// A message of the user or the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) role: &'static str,
    pub(crate) at: Option<String>,
    pub(crate) text: String,
}

/// Calls `each` with the messages of a history, in order. A missing history has none.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Message)) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut open: Option<Message> = None;
    let mut at = None;
    let mut done = |message: Option<Message>| {
        message.filter(|message| !message.text.trim().is_empty()).into_iter().for_each(&mut each);
    };
    while reader.read_until(b'\n', &mut line)? > 0 {
        // A half-written line is skipped.
        if let Ok(value) = serde_json::from_slice::<Value>(&line) {
            let method = value.get("method").and_then(Value::as_str);
            if method == Some("session/prompt") {
                done(open.take());
                at = value.get("at").and_then(Value::as_str).map(str::to_owned);
                let blocks = value.pointer("/params/prompt").and_then(Value::as_array);
                let mut text = String::new();
                for (number, part) in blocks.into_iter().flatten().filter_map(block_text).enumerate() {
                    push_bounded(&mut text, if number > 0 { " " } else { "" }, LONGEST);
                    push_bounded(&mut text, part, LONGEST);
                }
                done(Some(Message { role: "user", at: at.clone(), text }));
            } else if method == Some("session/update")
                && let Some(update) = value.pointer("/params/update")
                && update.get("sessionUpdate").and_then(Value::as_str) == Some("agent_message_chunk")
                && let Some(text) = update.get("content").and_then(block_text)
            {
                // MSG-04: another kind of chunk begins a new message.
                let open = open.get_or_insert_with(|| Message {
                    role: "assistant",
                    at: at.clone(),
                    text: String::new(),
                });
                push_bounded(&mut open.text, text, LONGEST);
            }
        }
        line.clear();
        line.shrink_to(LONGEST);
    }
    done(open);
    Ok(())
}

/// Returns the text of a content block, or a word for what it is. Blocks are read as they were recorded, complete or not.
fn block_text(block: &Value) -> Option<&str> {
    match block.get("type")?.as_str()? {
        "text" => block.get("text")?.as_str(),
        "resource_link" => block.get("title").or_else(|| block.get("name"))?.as_str(),
        "image" => Some("[image]"),
        "audio" => Some("[audio]"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_put_together_and_none_is_kept_whole() {
        let prompt = |text: &str| json!({ "method": "session/prompt", "at": "now", "params": { "prompt": [{ "type": "text", "text": text }, { "type": "image" }] } });
        let chunk = |kind: &str, text: &str| json!({ "method": "session/update", "params": { "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } } });
        let huge = "y".repeat(LONGEST);
        let lines = [
            prompt("hi"),
            chunk("agent_message_chunk", "he"),
            chunk("agent_thought_chunk", "hm"),
            chunk("agent_message_chunk", "llo"),
            prompt("again"),
            chunk("agent_message_chunk", &huge),
            chunk("agent_message_chunk", &huge),
            chunk("agent_message_chunk", " "),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = std::env::temp_dir().join(format!("attache-conversation-{}.jsonl", std::process::id()));
        std::fs::write(&path, format!("{text}{{\"method\":\"session/pro")).unwrap();
        let mut seen = Vec::new();
        read(&path, |message| seen.push((message.role, message.text))).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(seen.len(), 4);
        assert_eq!(seen[0], ("user", "hi [image]".to_owned()));
        assert_eq!(seen[1], ("assistant", "hello".to_owned()));
        assert_eq!((seen[3].0, seen[3].1.len()), ("assistant", LONGEST));
        let mut none = 0;
        read(&path, |_| none += 1).unwrap();
        assert_eq!(none, 0);
    }
}
