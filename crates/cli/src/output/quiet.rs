//! `--format quiet`: only the answer; its cost on stderr.

use attache::Flow;
use attache::wire::v1::{ContentBlock, SessionNotification, SessionUpdate};
use attache_rpc::Frame;

use super::renderer::WireMessage;
use super::{Mark, Written};
use crate::lenient::{Cost, PromptResult};
use attache_term::render::style::Line;

#[derive(Default)]
pub(super) struct Quiet {
    /// Whether a part of the answer was printed.
    begun: bool,
}

impl Quiet {
    pub(super) fn message(&mut self, seen: &WireMessage<'_>, out: &mut Written) {
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
                    // An empty answer is a line, too.
                    out.stdout.line(&Line::new());
                }
                self.flush(out);
                costs(PromptResult::parse(result.get()), out);
            }
            _ => {}
        }
    }

    pub(super) fn flush(&mut self, out: &mut Written) {
        out.stdout.end_line();
    }
}

fn costs(result: PromptResult, out: &mut Written) {
    let usage = result.usage.unwrap_or_default();
    let counts = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cached_read_tokens),
        ("cache_write", usage.cached_write_tokens),
        ("total", usage.total_tokens),
    ];
    let counts = counts.into_iter().filter_map(|(name, count)| Some(format!("{name}={}", count?)));
    let counts: Vec<String> = counts.collect();
    if !counts.is_empty() {
        out.stderr.line(&Mark::Note.then(format!("tokens: {}", counts.join(" "))));
    }
    if let Some(Cost { amount: Some(amount), currency }) = result.cost {
        let currency = currency.unwrap_or_default();
        out.stderr.line(&Mark::Note.then(format!("cost: {amount} {currency}").trim_end()));
    }
}
