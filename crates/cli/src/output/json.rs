//! `--format json`: the messages themselves, one per line.

use std::collections::HashMap;

use attache_rpc::Frame;
use serde_json::{Value, json};

use super::screen::{Seen, Written};
use super::tool::{SUPPRESSED, is_read};

pub(super) struct Json {
    suppress_reads: bool,
    /// Kind and title of the tool calls so far, to tell which of them read.
    tools: HashMap<String, (Option<String>, Option<String>)>,
}

impl Json {
    pub(super) fn new(suppress_reads: bool) -> Self {
        Json { suppress_reads, tools: HashMap::new() }
    }

    pub(super) fn message(&mut self, seen: &Seen<'_>, out: &mut Written) {
        // A log line on the wrong stream is no message.
        if matches!(seen.frame, Frame::Malformed(_)) && serde_json::from_slice::<Value>(seen.line).is_err() {
            return;
        }
        let hidden = if self.suppress_reads { self.suppressed(seen) } else { None };
        match hidden {
            Some(value) => out.line(&value.to_string()),
            None => {
                out.stdout.extend_from_slice(seen.line);
                out.stdout.push(b'\n');
            }
        }
    }

    /// The message without what was read, if it holds something that was read.
    fn suppressed(&mut self, seen: &Seen<'_>) -> Option<Value> {
        match &seen.frame {
            Frame::Response { outcome: Ok(_), .. } if seen.answers == Some("fs/read_text_file") => {
                let mut value: Value = serde_json::from_slice(seen.line).ok()?;
                *value.pointer_mut("/result/content")? = json!(SUPPRESSED);
                Some(value)
            }
            Frame::Notification { method, .. } if method == "session/update" => {
                self.suppressed_tool(seen.line)
            }
            _ => None,
        }
    }

    fn suppressed_tool(&mut self, line: &[u8]) -> Option<Value> {
        let mut value: Value = serde_json::from_slice(line).ok()?;
        let update = value.pointer_mut("/params/update")?.as_object_mut()?;
        if !matches!(update.get("sessionUpdate")?.as_str()?, "tool_call" | "tool_call_update") {
            return None;
        }
        let id = update.get("toolCallId")?.as_str()?.to_owned();
        let known = self.tools.entry(id).or_default();
        let text = |key: &str| update.get(key).and_then(Value::as_str).map(str::to_owned);
        known.0 = text("kind").or_else(|| known.0.take());
        known.1 = text("title").or_else(|| known.1.take());
        if !is_read(known.0.as_deref(), known.1.as_deref()) {
            return None;
        }
        let mut changed = false;
        if let Some(output) = update.get_mut("rawOutput") {
            *output = json!({ "content": SUPPRESSED });
            changed = true;
        }
        if let Some(content) = update.get_mut("content").filter(|content| content.is_array()) {
            *content = json!([{ "type": "content", "content": { "type": "text", "text": SUPPRESSED } }]);
            changed = true;
        }
        changed.then_some(value)
    }
}
