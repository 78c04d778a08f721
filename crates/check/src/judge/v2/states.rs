//! Prompts, states and background work of sessions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{is_conversation, items};
use crate::judge::message::text;
use crate::judge::{EventLog, Findings, Kind, Message, Watcher};
use crate::role::Role;

/// Judges the life of prompts.
#[derive(Debug, Default)]
pub(super) struct States {
    sessions: BTreeMap<String, Activity>,
}

/// The activity of a session.
#[derive(Debug, Default)]
struct Activity {
    state: String,
    /// Prompts without an answer, each with the number of user messages before it.
    open: Vec<(Value, usize)>,
    /// Ids that answers named and no user message had so far, with the entry of the answer.
    unseen: Vec<(String, usize)>,
    /// The ids of all user messages.
    user_messages: BTreeSet<String>,
    /// Whether a prompt was accepted since the last idle state.
    prompted: bool,
    /// Whether running was reported since the first prompt after the last idle state.
    ran: bool,
    /// Whether the last state was idle and cancelled.
    cancelled: bool,
    /// Background work as last listed; `None` if the agent never reported any.
    background: Option<BTreeSet<Work>>,
    announced: BTreeSet<Work>,
    finished: BTreeSet<Work>,
}

/// The type and id of background work.
type Work = (String, String);

impl Watcher for States {
    fn rules(&self) -> &'static [&'static str] {
        &["V2-09", "V2-10", "V2-11", "V2-12", "V2-14", "V2-36"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((session, kind, update)) = message.update() {
            let resuming = log.sessions.get(session).is_some_and(|session| session.opening);
            let activity = self.sessions.entry(session.to_owned()).or_default();
            return activity.update(message, kind, update, resuming, out);
        }
        if let Kind::Request { id, params, .. } = &message.kind
            && message.from == Role::Client
            && message.asks("session/prompt")
        {
            let activity = self.sessions.entry(text(&params["sessionId"]).to_owned()).or_default();
            activity.ran |= is_busy(&activity.state);
            let before = activity.user_messages.len();
            activity.open.push((id.clone(), before));
            return;
        }
        if let Some((asked, outcome)) = log.response(message)
            && asked.method == "session/prompt"
            && let Some(activity) = asked.session().and_then(|id| self.sessions.get_mut(id))
        {
            activity.answered(message, &asked.id, asked.index, outcome, out);
        }
    }
}

fn is_busy(state: &str) -> bool {
    matches!(state, "running" | "requires_action")
}

impl Activity {
    fn answered(
        &mut self,
        message: &Message,
        id: &Value,
        asked: usize,
        outcome: Result<&Value, &Value>,
        out: &mut Findings,
    ) {
        // With several open prompts a new user message may belong to any of them.
        let alone = self.open.len() == 1;
        let before = self.open.iter().find(|(open, _)| open == id).map_or(0, |(_, before)| *before);
        self.open.retain(|(open, _)| open != id);
        match outcome {
            Ok(result) => {
                out.pass("V2-09", message);
                self.prompted = true;
                let named = text(&result["messageId"]);
                if self.user_messages.contains(named) {
                    out.pass("V2-10", message);
                } else if !named.is_empty() {
                    self.unseen.push((named.to_owned(), message.index));
                }
            }
            Err(error) if alone && self.user_messages.len() > before => {
                let why = format!("the message was inserted, and the prompt is answered with {error}");
                out.fail_at("V2-09", message.from, &[asked, message.index], why);
            }
            Err(_) => {}
        }
    }

    fn update(&mut self, message: &Message, kind: &str, update: &Value, resuming: bool, out: &mut Findings) {
        self.track(kind, update);
        match kind {
            "state_update" => self.state(message, update, resuming, out),
            "user_message" | "user_message_chunk" => {
                let id = text(&update["messageId"]);
                self.user_messages.insert(id.to_owned());
                if self.unseen.iter().any(|(unseen, _)| unseen == id) {
                    out.pass("V2-10", message);
                    self.unseen.retain(|(unseen, _)| unseen != id);
                }
            }
            _ if resuming || !self.cancelled || !self.open.is_empty() => {}
            // Listed background work outlives the cancel and may speak.
            _ if is_conversation(kind) && self.background.as_ref().is_none_or(BTreeSet::is_empty) => {
                out.fail("V2-14", message, format!("`{kind}` comes after the cancelled work has ended"));
            }
            _ => {}
        }
    }

    /// Keeps the work that was announced and that has finished.
    fn track(&mut self, kind: &str, update: &Value) {
        let (work, finished) = match kind {
            "tool_call_update" => {
                let status = text(&update["status"]);
                let finished = matches!(status, "completed" | "failed" | "cancelled");
                (("tool_call".to_owned(), text(&update["toolCallId"]).to_owned()), finished)
            }
            "terminal_update" => {
                let id = text(&update["terminalId"]).to_owned();
                (("terminal".to_owned(), id), update["exitStatus"].is_object())
            }
            "subagent_update" => (("subagent".to_owned(), text(&update["sessionId"]).to_owned()), true),
            _ => return,
        };
        if finished {
            self.finished.insert(work.clone());
        }
        self.announced.insert(work);
    }

    fn state(&mut self, message: &Message, update: &Value, resuming: bool, out: &mut Findings) {
        self.list(message, &update["background"], out);
        let state = text(&update["state"]);
        let was_busy = is_busy(&self.state);
        state.clone_into(&mut self.state);
        self.cancelled = false;
        match state {
            "running" => self.ran = true,
            // A snapshot for a client that resumes ends nothing.
            "idle" if !resuming => self.idle(message, &update["stopReason"], was_busy, out),
            _ => {}
        }
    }

    fn idle(&mut self, message: &Message, reason: &Value, was_busy: bool, out: &mut Findings) {
        if was_busy {
            out.check("V2-12", message, reason.is_string(), || "no stop reason is given".to_owned());
        }
        if self.prompted {
            out.check("V2-11", message, self.ran, || {
                "idle ends a turn that was never reported as running".to_owned()
            });
            for (id, answer) in self.unseen.drain(..) {
                let why = format!("the prompt is the message {id:?}, and no user message has that id");
                out.fail_at("V2-10", message.from, &[answer, message.index], why);
            }
        }
        self.prompted = false;
        self.ran = false;
        self.cancelled = reason == "cancelled";
    }

    /// The list of background work.
    // V2-36
    fn list(&mut self, message: &Message, listed: &Value, out: &mut Findings) {
        if !listed.is_array() {
            if self.background.is_some() {
                out.fail("V2-36", message, "a state without `background`, which earlier states have");
            }
            return;
        }
        let work = |item: &Value| -> Option<Work> {
            let kind = text(&item["type"]);
            let id = match kind {
                "terminal" => &item["terminalId"],
                "tool_call" => &item["toolCallId"],
                "subagent" => &item["sessionId"],
                _ => return None,
            };
            Some((kind.to_owned(), text(id).to_owned()))
        };
        let now: BTreeSet<Work> = items(listed).filter_map(work).collect();
        let before = self.background.take().unwrap_or_default();
        if let Some((kind, id)) = now.iter().find(|item| !self.announced.contains(*item)) {
            out.fail("V2-36", message, format!("the {kind} {id:?} is listed and was never announced"));
        } else if let Some((kind, id)) = before.difference(&now).find(|item| !self.finished.contains(*item)) {
            out.fail("V2-36", message, format!("the {kind} {id:?} left the list without an end"));
        } else if !before.is_empty() {
            out.pass("V2-36", message);
        }
        self.background = Some(now);
    }
}
