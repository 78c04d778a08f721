//! `--format json`: the messages themselves, one per line.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use attache_rpc::Frame;
use serde_json::{Value, json};

use super::Written;
use super::renderer::WireMessage;
use super::tool::{SUPPRESSED, is_read};

/// Tool calls that are remembered; of older ones everything is left out.
const CALLS: usize = 4096;

pub(super) struct Json {
    suppress_reads: bool,
    calls: Calls,
}

impl Json {
    pub(super) fn new(suppress_reads: bool) -> Self {
        Json { suppress_reads, calls: Calls::default() }
    }

    pub(super) fn message(&mut self, seen: &WireMessage<'_>, out: &mut Written) {
        // A log line on the wrong stream is no message.
        if matches!(seen.frame, Frame::Malformed(_)) && serde_json::from_slice::<Value>(seen.line).is_err() {
            return;
        }
        let hidden = if self.suppress_reads { self.suppressed(seen) } else { None };
        match hidden {
            Some(value) => out.stdout.json(value.to_string().as_bytes()),
            None => out.stdout.json(seen.line),
        }
    }

    /// The message without what was read, if it holds something that was read.
    fn suppressed(&mut self, seen: &WireMessage<'_>) -> Option<Value> {
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
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        if !self.calls.reads(update.get("toolCallId")?.as_str()?, text("kind"), text("title")) {
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

/// Which tool calls read, by the hash of their id.
#[derive(Default)]
struct Calls {
    hasher: RandomState,
    /// Whether its kind says that it reads, and whether its title does.
    known: HashMap<u64, (bool, bool)>,
    order: VecDeque<u64>,
    /// Whether calls were forgotten.
    forgotten: bool,
}

impl Calls {
    /// Whether a call reads, after an update of its kind and title. What is absent stays as it was.
    fn reads(&mut self, id: &str, kind: Option<&str>, title: Option<&str>) -> bool {
        let id = self.hasher.hash_one(id);
        let has_news = kind.is_some() || title.is_some();
        if !self.known.contains_key(&id) {
            if !has_news && self.forgotten {
                return true;
            }
            if self.order.len() >= CALLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
                self.forgotten = true;
            }
            self.order.push_back(id);
        }
        let known = self.known.entry(id).or_default();
        if kind.is_some() {
            known.0 = is_read(kind, None);
        }
        if title.is_some() {
            known.1 = is_read(None, title);
        }
        known.0 || known.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_forgotten_to_the_safe_side() {
        let mut calls = Calls::default();
        assert!(calls.reads("first", Some("read"), Some("Read a")));
        assert!(!calls.reads("second", Some("edit"), None));
        assert!(calls.reads("first", None, None));
        assert!(!calls.reads("unknown", None, None));
        for number in 0..10 * CALLS {
            assert!(!calls.reads(&format!("call {number}"), Some("edit"), None));
        }
        assert_eq!((calls.known.len(), calls.order.len()), (CALLS, CALLS));
        // Whether these read is not known any more.
        assert!(calls.reads("second", None, None) && calls.reads("first", None, None));
    }
}
