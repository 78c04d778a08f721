//! `--format text`: for people. Sections are separated by a blank line; each begins with a word in brackets, except the answer.

use std::collections::HashMap;

use attache::Flow;
use attache::wire::v1::{ContentBlock, SessionNotification, SessionUpdate};
use attache_rpc::Frame;
use serde_json::Value;

use super::screen::{Seen, Written};
use super::tool::{Tool, block, cut};
use crate::error::Failure;

/// How much of a thought is shown.
const THOUGHT: usize = 900;

pub(super) struct Text {
    color: bool,
    suppress_reads: bool,
    tools: HashMap<String, Tool>,
    thought: String,
    /// Something was written, so that a section needs a blank line before it.
    begun: bool,
    line_start: bool,
}

impl Text {
    pub(super) fn new(color: bool, suppress_reads: bool) -> Self {
        Text {
            color,
            suppress_reads,
            tools: HashMap::new(),
            thought: String::new(),
            begun: false,
            line_start: true,
        }
    }

    pub(super) fn message(&mut self, seen: &Seen<'_>, out: &mut Written) {
        match &seen.frame {
            Frame::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Ok(notification) = serde_json::from_str::<SessionNotification>(params.get()) {
                    self.update(notification.update, out);
                }
            }
            // What the agent wants from this side.
            Frame::Request { method, params, .. }
                if seen.flow == Flow::In && (method.starts_with("fs/") || method == "terminal/create") =>
            {
                let params = params.and_then(|params| serde_json::from_str::<Value>(params.get()).ok());
                let what = params.as_ref().and_then(super::tool::summary).unwrap_or_default();
                let line = format!("{} {method} {what}", self.bold("[client]"));
                self.section(line.trim_end(), out);
            }
            Frame::Response { outcome: Ok(result), .. } if seen.answers == Some("session/prompt") => {
                self.flush(out);
                let result = serde_json::from_str::<Value>(result.get()).unwrap_or_default();
                let reason = result.get("stopReason").and_then(Value::as_str).unwrap_or("unknown");
                let line = self.dim(&format!("[done] {reason}"));
                self.section(&line, out);
            }
            _ => {}
        }
    }

    fn update(&mut self, update: SessionUpdate, out: &mut Written) {
        if !matches!(update, SessionUpdate::AgentThoughtChunk(_)) {
            self.thought_over(out);
        }
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => self.write(&text.text, out),
                other => self.write(&block(other), out),
            },
            SessionUpdate::AgentThoughtChunk(chunk) => {
                if let ContentBlock::Text(text) = &chunk.content {
                    // More is never shown; a long thought is not kept.
                    if self.thought.len() < 8 * THOUGHT {
                        self.thought.push_str(&text.text);
                    }
                }
            }
            SessionUpdate::ToolCall(call) => self.tool((*call).into(), out),
            SessionUpdate::ToolCallUpdate(update) => self.tool(*update, out),
            SessionUpdate::Plan(plan) => {
                let title = self.bold("[plan]");
                self.section(&title, out);
                for entry in &plan.entries {
                    self.write(&format!("  - [{}] {}\n", entry.status.as_str(), entry.content), out);
                }
            }
            _ => {}
        }
    }

    fn tool(&mut self, update: attache::wire::v1::ToolCallUpdate, out: &mut Written) {
        let id = update.tool_call_id.as_str().to_owned();
        let mut tool = self.tools.remove(&id).unwrap_or_default();
        tool.update(update);
        let details = tool.details(self.suppress_reads);
        let title = tool.title.as_deref().unwrap_or(&id);
        let fresh = if tool.is_final() {
            let now = format!("{title} {} {details}", tool.status());
            let fresh = tool.ended.as_ref() != Some(&now);
            tool.ended = Some(now);
            fresh
        } else {
            !std::mem::replace(&mut tool.begun, true)
        };
        if fresh {
            let title = tool.title.as_deref().unwrap_or(&id);
            let color = match tool.status() {
                "completed" => "32",
                "failed" => "31",
                _ => "33",
            };
            let line = format!("{} {title} ({})", self.bold("[tool]"), self.paint(tool.status(), color));
            self.section(&line, out);
            self.write(&details, out);
        }
        self.tools.insert(id, tool);
    }

    /// A line that stands for itself.
    pub(super) fn notice(&mut self, tag: &str, text: &str, out: &mut Written) {
        self.thought_over(out);
        let line = format!("{} {text}", self.bold(tag));
        self.section(&line, out);
    }

    pub(super) fn failure(&mut self, failure: &Failure, out: &mut Written) {
        self.thought_over(out);
        let line = self.paint(&format!("[error] {}: {}", failure.kind.name(), failure.message), "31");
        self.section(&line, out);
        for hint in &failure.hints {
            let line = self.dim(&format!("hint: {hint}"));
            self.write(&format!("{line}\n"), out);
        }
    }

    /// Ends what is open: a thought, a line.
    pub(super) fn flush(&mut self, out: &mut Written) {
        self.thought_over(out);
        if !self.line_start {
            self.write("\n", out);
        }
    }

    fn thought_over(&mut self, out: &mut Written) {
        let thought = std::mem::take(&mut self.thought);
        let thought = cut(thought.replace("\r\n", "\n").trim(), THOUGHT);
        let mut lines = thought.lines();
        let Some(first) = lines.next() else { return };
        let line = self.dim(&format!("[thinking] {first}"));
        self.section(&line, out);
        for line in lines {
            let line = self.dim(&format!("           {line}"));
            self.write(&format!("{line}\n"), out);
        }
    }

    fn section(&mut self, line: &str, out: &mut Written) {
        if !self.line_start {
            self.write("\n", out);
        }
        if self.begun {
            self.write("\n", out);
        }
        self.write(&format!("{line}\n"), out);
    }

    fn write(&mut self, text: &str, out: &mut Written) {
        if text.is_empty() {
            return;
        }
        out.stdout.extend_from_slice(text.as_bytes());
        self.begun = true;
        self.line_start = text.ends_with('\n');
    }

    fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    fn dim(&self, text: &str) -> String {
        self.paint(text, "2")
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
