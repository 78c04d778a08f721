//! Reads a history message by message.
//!
//! A history may be larger than the memory, so only the beginning of each message is kept.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use attache::wire::v1::ContentBlock;
use attache_transcript::{BoundedText, Role, push_bounded};
use serde_json::Value;

use super::line::{Entry, HistoryLine};

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
    // MSG-04: the messages of the agent in one turn are shown as one.
    let mut answer = BoundedText::new(Role::Agent, LONGEST);
    let mut at = None;
    let mut done = |role, at: &Option<String>, text: String| {
        if !text.trim().is_empty() {
            each(Message { role, at: at.clone(), text });
        }
    };
    while reader.read_until(b'\n', &mut line)? > 0 {
        // A half-written line is skipped.
        if let Some(line) = HistoryLine::parse(&line) {
            match line.entry() {
                Entry::Prompt(blocks) => {
                    done("assistant", &at, answer.take());
                    at = line.at.as_ref().and_then(Value::as_str).map(str::to_owned);
                    let mut text = String::new();
                    for (number, part) in blocks.iter().filter_map(block_text).enumerate() {
                        push_bounded(&mut text, if number > 0 { " " } else { "" }, LONGEST);
                        push_bounded(&mut text, part, LONGEST);
                    }
                    done("user", &at, text);
                }
                Entry::Update(update) => _ = answer.fold(&update, block_text),
                // The response ends the answer.
                Entry::Other if line.method.is_none() && line.is_stamped() => {
                    at = line.at.as_ref().and_then(Value::as_str).map(str::to_owned).or(at);
                    done("assistant", &at, answer.take());
                }
                Entry::Other => {}
            }
        }
        line.clear();
        line.shrink_to(LONGEST);
    }
    done("assistant", &at, answer.take());
    Ok(())
}

/// Returns the text of a content block, or a word for its type.
fn block_text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        ContentBlock::ResourceLink(link) => Some(link.title.as_ref().unwrap_or(&link.name)),
        ContentBlock::Image(_) => Some("[image]"),
        ContentBlock::Audio(_) => Some("[audio]"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn chunks_become_messages_of_bounded_length() {
        let prompt = |text: &str| json!({ "method": "session/prompt", "at": "now", "params": { "prompt": [{ "type": "text", "text": text }, { "type": "image", "data": "", "mimeType": "image/png" }] } });
        let chunk = |kind: &str, text: &str| json!({ "method": "session/update", "params": { "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } } });
        let huge = "y".repeat(LONGEST);
        let lines = [
            prompt("hi"),
            chunk("agent_message_chunk", "he"),
            chunk("agent_thought_chunk", "hm"),
            chunk("agent_message_chunk", "llo"),
            json!({ "id": 1, "result": { "stopReason": "end_turn" }, "at": "later" }),
            prompt("again"),
            chunk("agent_message_chunk", &huge),
            chunk("agent_message_chunk", &huge),
            chunk("agent_message_chunk", " "),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = std::env::temp_dir().join(format!("attache-conversation-{}.jsonl", std::process::id()));
        std::fs::write(&path, format!("{text}{{\"method\":\"session/pro")).unwrap();
        let mut seen = Vec::new();
        let mut times = Vec::new();
        read(&path, |message| {
            seen.push((message.role, message.text));
            times.push(message.at.unwrap_or_default());
        })
        .unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(seen.len(), 4);
        assert_eq!(times, ["now", "later", "now", "now"]);
        assert_eq!(seen[0], ("user", "hi [image]".to_owned()));
        assert_eq!(seen[1], ("assistant", "hello".to_owned()));
        assert_eq!((seen[3].0, seen[3].1.len()), ("assistant", LONGEST));
        let mut none = 0;
        read(&path, |_| none += 1).unwrap();
        assert_eq!(none, 0);
    }
}
