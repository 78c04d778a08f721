//! `--format quiet`: the answer and nothing else; what it cost on stderr.

use attache::Flow;
use attache::wire::v1::{ContentBlock, SessionNotification, SessionUpdate};
use attache_rpc::Frame;
use serde_json::Value;

use super::renderer::Seen;
use super::{Mark, Written};
use attache_term::render::style::Line;

#[derive(Default)]
pub(super) struct Quiet {
    /// Something of the answer was printed.
    begun: bool,
}

impl Quiet {
    pub(super) fn message(&mut self, seen: &Seen<'_>, out: &mut Written) {
        match &seen.frame {
            Frame::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Ok(notification) = serde_json::from_str::<SessionNotification>(params.get())
                    && let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    // An answer may be larger than the memory, so none of it is kept.
                    self.begun |= !text.text.is_empty();
                    out.stdout.foreign(&text.text);
                }
            }
            Frame::Response { outcome: Ok(result), .. }
                if seen.flow == Flow::In && seen.answers == Some("session/prompt") =>
            {
                if !std::mem::take(&mut self.begun) {
                    // Also an empty answer is a line.
                    out.stdout.line(&Line::new());
                }
                self.flush(out);
                if let Ok(result) = serde_json::from_str::<Value>(result.get()) {
                    costs(&result, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn flush(&mut self, out: &mut Written) {
        out.stdout.end_line();
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
        out.stderr.line(&Mark::Note.then(format!("tokens: {}", counts.join(" "))));
    }
    if let Some(amount) = result.pointer("/cost/amount").filter(|amount| amount.is_number()) {
        let currency = result.pointer("/cost/currency").and_then(Value::as_str).unwrap_or_default();
        out.stderr.line(&Mark::Note.then(format!("cost: {amount} {currency}").trim_end()));
    }
}
