//! The order of messages: nothing before `initialize`, nothing of a session before it is known,
//! nothing of a turn after its answer.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{EventLog, Findings, Message, Session, Watcher};
use crate::Role;
use crate::schema::Method;

/// Judges the order of a client's requests.
#[derive(Debug, Default)]
pub(super) struct Beginning;

impl Watcher for Beginning {
    fn rules(&self) -> &'static [&'static str] {
        &["INIT-01", "INIT-02", "INIT-10", "SESS-01", "SESS-02", "PROMPT-01"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        match message.from {
            Role::Client => client(log, message, out),
            Role::Agent => agent(log, message, out),
        }
    }
}

fn client(log: &EventLog, message: &Message, out: &mut Findings) {
    let Some((method, params)) = message.call(Role::Client) else { return };
    if method == "initialize" {
        if log.initialize.is_none() {
            out.check("INIT-02", message, log.lines[1] == 0, || {
                "something was sent before `initialize`".to_owned()
            });
        }
        return;
    }
    if log.lines[1] == 0 {
        out.fail("INIT-02", message, format!("the first message is `{method}` and not `initialize`"));
    }
    let ready = !log.initialized.is_null();
    let session = method.starts_with("session/");
    let private = session || method == "authenticate" || method == "logout" || method.starts_with("auth/");
    if private && log.initialize.is_some() {
        out.check("INIT-02", message, ready, || {
            format!("`{method}` is sent before `initialize` is answered")
        });
    }
    if session && method != "session/cancel" {
        out.check("INIT-01", message, log.initialize.is_some(), || {
            format!("`{method}` without `initialize`")
        });
    }
    if matches!(method, "session/new" | "session/load" | "session/resume" | "session/list" | "session/delete")
    {
        out.check("SESS-01", message, ready, || format!("`{method}` before initialization is finished"));
        return;
    }
    if !session || Method::of(log.version(), method).is_none() || method == "session/cancel" {
        return;
    }
    let id = params["sessionId"].as_str().unwrap_or_default();
    let known = log.sessions.get(id).is_some_and(|session| session.opened) || log.listed.contains(id);
    out.check("SESS-02", message, known, || {
        format!("`{method}` for the session {id:?}, which nothing has named")
    });
    if method == "session/prompt" {
        let open = log.sessions.get(id).is_some_and(|session| session.opened);
        out.check("PROMPT-01", message, ready && open, || "a prompt before the session is set up".to_owned());
    }
}

/// An agent sends nothing before a version is negotiated, unless the client opened a session
/// without one.
fn agent(log: &EventLog, message: &Message, out: &mut Findings) {
    let Some((method, _)) = message.call(Role::Agent) else { return };
    let began = log.open.iter().chain(&log.done).any(|asked| asked.method.starts_with("session/"));
    if log.initialized.is_null() && !began && Method::of(log.version(), method).is_some() {
        out.fail("INIT-10", message, format!("`{method}` is sent before `initialize` is answered"));
    }
}

/// Judges the order of updates.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// The parts of conversations so far, by session.
    said: BTreeSet<(String, String)>,
}

impl Watcher for Updates {
    fn rules(&self) -> &'static [&'static str] {
        &["PROMPT-11", "PROMPT-12", "CANCEL-08", "SESS-12", "SESS-23", "SESS-31"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((id, kind, content)) = message.update() {
            let part = part(content).filter(|_| is_conversation(kind)).map(|part| (id.to_owned(), part));
            let is_again = part.as_ref().is_some_and(|part| self.said.contains(part));
            let late =
                log.sessions.get(id).is_some_and(|session| !session.opening && session.prompts.is_empty());
            self.said.extend(part.filter(|_| !late));
            return update(log, message, (id, kind), is_again, out);
        }
        let Some((asked, outcome)) = log.response(message) else { return };
        let Some(session) = asked.session().and_then(|id| log.sessions.get(id)) else { return };
        match (asked.method.as_str(), outcome) {
            ("session/prompt", _) => {
                if session.turn_updates > 0 {
                    out.pass("PROMPT-11", message);
                }
                if session.cancelled {
                    out.pass("CANCEL-08", message);
                }
            }
            ("session/load", Ok(_)) if session.opening_updates > 0 => out.pass("SESS-12", message),
            ("session/resume", Ok(_)) if session.opening_updates == 0 => out.pass("SESS-23", message),
            _ => {}
        }
    }
}

/// Whether an update of this kind is part of the conversation. The others describe the session and
/// may come at any time.
// SESS-31
pub(crate) fn is_conversation(kind: &str) -> bool {
    matches!(
        kind,
        "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
    )
}

/// The part of a conversation that an update is about: a tool call, a message, or words that are
/// long enough to be known again.
pub(crate) fn part(update: &Value) -> Option<String> {
    const LONG: usize = 16;
    let named = |key: &str| update[key].as_str().map(|id| format!("{key} {id}"));
    let words = || update["content"]["text"].as_str().filter(|text| text.len() >= LONG).map(str::to_owned);
    named("toolCallId").or_else(|| named("messageId")).or_else(words)
}

fn update(log: &EventLog, message: &Message, (id, kind): (&str, &str), is_again: bool, out: &mut Findings) {
    // A client that names a session of its own making has named it.
    let known = log
        .sessions
        .get(id)
        .filter(|session| session.opened || session.opening || !session.prompts.is_empty());
    let Some(session) = known else {
        let opening = ["session/new", "session/fork"]
            .iter()
            .any(|method| log.open_for(Role::Client, method).count() > 0);
        if opening {
            let why = "an update of a session whose id the client does not have yet";
            out.fail("SESS-31", message, why);
        } else {
            out.fail(
                "PROMPT-12",
                message,
                format!("an update of the session {id:?}, which nothing has named"),
            );
        }
        return;
    };
    out.pass("PROMPT-12", message);
    if !is_conversation(kind) {
        out.pass("SESS-31", message);
        return;
    }
    if session.opening {
        if session.opened_by == "session/resume" {
            out.fail("SESS-23", message, "history is sent before the answer to session/resume");
        }
        return;
    }
    if session.prompts.is_empty() {
        late(session, message, kind, is_again, out);
    }
}

/// Conversation outside of a turn. Before the first one nothing forbids a greeting.
fn late(session: &Session, message: &Message, kind: &str, is_again: bool, out: &mut Findings) {
    if session.turns == 0 {
        // SESS-12: a new message of the agent is no replay.
        if session.opened_by == "session/load" && (is_again || kind == "user_message_chunk") {
            out.fail("SESS-12", message, format!("`{kind}` comes after the answer to session/load"));
        }
        return;
    }
    if session.last_cancelled {
        out.fail("CANCEL-08", message, format!("`{kind}` comes after the answer of the cancelled prompt"));
    } else {
        out.fail("PROMPT-11", message, format!("`{kind}` comes after the answer of its prompt"));
    }
}
