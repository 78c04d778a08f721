//! `--format quiet`: the answer and nothing else; what it cost on stderr.

use attache::Flow;
use attache::wire::v1::{ContentBlock, SessionNotification, SessionUpdate};
use attache_rpc::Frame;
use serde_json::Value;

use super::screen::{Seen, Written};

#[derive(Default)]
pub(super) struct Quiet {
    text: String,
}

impl Quiet {
    pub(super) fn message(&mut self, seen: &Seen<'_>, out: &mut Written) {
        match &seen.frame {
            Frame::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Ok(notification) = serde_json::from_str::<SessionNotification>(params.get())
                    && let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    self.text.push_str(&text.text);
                }
            }
            Frame::Response { outcome: Ok(result), .. }
                if seen.flow == Flow::In && seen.answers == Some("session/prompt") =>
            {
                self.text.push_str(if self.text.ends_with('\n') { "" } else { "\n" });
                self.flush(out);
                if let Ok(result) = serde_json::from_str::<Value>(result.get()) {
                    costs(&result, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn flush(&mut self, out: &mut Written) {
        if self.text.is_empty() {
            return;
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        out.stdout.extend_from_slice(self.text.as_bytes());
        self.text.clear();
    }
}

fn costs(result: &Value, out: &mut Written) {
    const COUNTS: [(&str, &str); 5] = [
        ("input", "inputTokens"),
        ("output", "outputTokens"),
        ("cache_read", "cachedReadTokens"),
        ("cache_write", "cachedWriteTokens"),
        ("total", "totalTokens"),
    ];
    let count = |(name, key): &(&str, &str)| {
        let value = result.pointer(&format!("/usage/{key}")).filter(|value| value.is_number())?;
        Some(format!("{name}={value}"))
    };
    let counts: Vec<String> = COUNTS.iter().filter_map(count).collect();
    if !counts.is_empty() {
        out.tell(&format!("[attache] tokens: {}", counts.join(" ")));
    }
    if let Some(amount) = result.pointer("/cost/amount").filter(|amount| amount.is_number()) {
        let currency = result.pointer("/cost/currency").and_then(Value::as_str).unwrap_or_default();
        out.tell(format!("[attache] cost: {amount} {currency}").trim_end());
    }
}
