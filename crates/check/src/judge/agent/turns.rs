//! Turns: how they end, and that they do.

use std::collections::BTreeMap;

use super::super::{Book, Findings, Kind, Said, Watcher};
use super::is_one_of;
use crate::Party;

/// PROMPT-07, PROMPT-08, PROMPT-11, CANCEL-08.
#[derive(Default)]
pub(super) struct Turns {
    /// By session: the last turn was cancelled, and where its answer is. Gone when the next one begins.
    ended: BTreeMap<String, (bool, usize)>,
}

const REASONS: [&str; 5] = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
/// What belongs to a turn and to nothing else.
const OF_A_TURN: [&str; 5] =
    ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];

impl Watcher for Turns {
    fn rules(&self) -> &'static [&'static str] {
        &["PROMPT-07", "PROMPT-08", "PROMPT-11", "CANCEL-08", "PROMPT-19"]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        match said.kind {
            Kind::Request {
                method: "session/prompt" | "session/load" | "session/resume" | "session/fork",
                params,
                ..
            } => {
                self.ended.remove(params["sessionId"].as_str().unwrap_or_default());
            }
            Kind::Answer { to: Some(asked), outcome: Ok(result), .. } if asked.method == "session/prompt" => {
                let reason = &result["stopReason"];
                out.check("PROMPT-07", said, !reason.is_null(), || {
                    "the answer has no `stopReason`".to_owned()
                });
                if !reason.is_null() {
                    out.check("PROMPT-08", said, is_one_of(reason, &REASONS), || {
                        format!("the stop reason is {reason}")
                    });
                }
                let usage = &result["usage"];
                if !usage.is_null() {
                    let counts = ["totalTokens", "inputTokens", "outputTokens"];
                    let whole = counts.iter().all(|key| usage[key].is_u64());
                    out.check("PROMPT-19", said, whole, || format!("`usage` is {usage}"));
                }
                let session = asked.session().unwrap_or_default().to_owned();
                self.ended.insert(session, (*reason == "cancelled", said.index));
            }
            _ => {}
        }
        if said.from == Party::Agent
            && let Some((session, kind, _)) = said.update()
        {
            self.update(book, said, session, kind, out);
        }
    }

    fn end(&mut self, _: &Book, _: bool, out: &mut Findings) {
        for (cancelled, at) in self.ended.values() {
            out.pass_at("PROMPT-11", Party::Agent, &[*at]);
            if *cancelled {
                out.pass_at("CANCEL-08", Party::Agent, &[*at]);
            }
        }
    }
}

impl Turns {
    fn update(&self, book: &Book, said: &Said<'_>, session: &str, kind: &str, out: &mut Findings) {
        let running =
            book.sessions.get(session).is_none_or(|known| !known.prompts.is_empty() || known.loading);
        let Some((cancelled, at)) = self.ended.get(session).filter(|_| !running) else { return };
        if !OF_A_TURN.contains(&kind) {
            return;
        }
        let places = [*at, said.index];
        let why = format!("`{kind}` comes after the answer of its turn");
        if *cancelled {
            out.fail_at("CANCEL-08", Party::Agent, &places, why.clone());
        }
        out.fail_at("PROMPT-11", Party::Agent, &places, why);
    }
}
