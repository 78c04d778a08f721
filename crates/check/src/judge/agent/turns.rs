//! The end of turns.

use super::super::{EventLog, Findings, Message, Watcher};
use super::is_one_of;

// PROMPT-07, PROMPT-08, PROMPT-19
pub(super) struct Turns;

const REASONS: [&str; 5] = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];

impl Watcher for Turns {
    fn rules(&self) -> &'static [&'static str] {
        &["PROMPT-07", "PROMPT-08", "PROMPT-19"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let Some((_, result)) = log.result_of(message, "session/prompt") else { return };
        let reason = &result["stopReason"];
        out.check("PROMPT-07", message, !reason.is_null(), || "the answer has no `stopReason`".to_owned());
        if !reason.is_null() {
            out.check("PROMPT-08", message, is_one_of(reason, &REASONS), || {
                format!("the stop reason is {reason}")
            });
        }
        let usage = &result["usage"];
        if !usage.is_null() {
            let counts = ["totalTokens", "inputTokens", "outputTokens"];
            let whole = counts.iter().all(|key| usage[key].is_u64());
            out.check("PROMPT-19", message, whole, || format!("`usage` is {usage}"));
        }
    }
}
