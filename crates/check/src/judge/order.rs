//! What may be said when: nothing before `initialize`, nothing of a session before it is known, nothing of a turn after its answer.

use super::{Book, Findings, Kind, Said, Session, Watcher};
use crate::Role;
use crate::schema::Method;

/// Judges the order of a client's requests.
#[derive(Debug, Default)]
pub(super) struct Beginning;

impl Watcher for Beginning {
    fn rules(&self) -> &'static [&'static str] {
        &["INIT-01", "INIT-02", "INIT-10", "SESS-01", "SESS-02", "PROMPT-01"]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        match said.from {
            Role::Client => client(book, said, out),
            Role::Agent => agent(book, said, out),
        }
    }
}

fn client(book: &Book, said: &Said<'_>, out: &mut Findings) {
    let Some((method, params)) = said.call(Role::Client) else { return };
    if method == "initialize" {
        if book.initialize.is_none() {
            out.check("INIT-02", said, book.lines[1] == 0, || {
                "something was sent before `initialize`".to_owned()
            });
        }
        return;
    }
    if book.lines[1] == 0 {
        out.fail("INIT-02", said, format!("the first message is `{method}` and not `initialize`"));
    }
    let ready = !book.initialized.is_null();
    let session = method.starts_with("session/");
    let private = session || method == "authenticate" || method == "logout" || method.starts_with("auth/");
    if private && book.initialize.is_some() {
        out.check("INIT-02", said, ready, || format!("`{method}` is sent before `initialize` is answered"));
    }
    if session && method != "session/cancel" {
        out.check("INIT-01", said, book.initialize.is_some(), || format!("`{method}` without `initialize`"));
    }
    if matches!(method, "session/new" | "session/load" | "session/resume" | "session/list" | "session/delete")
    {
        out.check("SESS-01", said, ready, || format!("`{method}` before initialization is finished"));
        return;
    }
    if !session || Method::of(method).is_none() || method == "session/cancel" {
        return;
    }
    let id = params["sessionId"].as_str().unwrap_or_default();
    let known = book.sessions.get(id).is_some_and(|session| session.opened) || book.listed.contains(id);
    out.check("SESS-02", said, known, || {
        format!("`{method}` for the session {id:?}, which nothing has named")
    });
    if method == "session/prompt" {
        let open = book.sessions.get(id).is_some_and(|session| session.opened);
        out.check("PROMPT-01", said, ready && open, || "a prompt before the session is set up".to_owned());
    }
}

/// Before a version is agreed upon there is nothing that an agent could say by its rules, unless the client went ahead without one.
fn agent(book: &Book, said: &Said<'_>, out: &mut Findings) {
    let Some((method, _)) = said.call(Role::Agent) else { return };
    let began = book.open.iter().chain(&book.done).any(|asked| asked.method.starts_with("session/"));
    if book.initialized.is_null() && !began && Method::of(method).is_some() {
        out.fail("INIT-10", said, format!("`{method}` is sent before `initialize` is answered"));
    }
}

/// Judges where updates stand.
#[derive(Debug, Default)]
pub(super) struct Updates;

impl Watcher for Updates {
    fn rules(&self) -> &'static [&'static str] {
        &["PROMPT-11", "PROMPT-12", "CANCEL-08", "SESS-12", "SESS-23", "SESS-31"]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        if let Some((id, kind, _)) = said.update() {
            return update(book, said, id, kind, out);
        }
        let Kind::Answer { to: Some(asked), outcome, .. } = said.kind else { return };
        let Some(session) = asked.session().and_then(|id| book.sessions.get(id)) else { return };
        match (asked.method.as_str(), outcome) {
            ("session/prompt", _) => {
                if session.turn_updates > 0 {
                    out.pass("PROMPT-11", said);
                }
                if session.cancelled {
                    out.pass("CANCEL-08", said);
                }
            }
            ("session/load", Ok(_)) if session.opening_updates > 0 => out.pass("SESS-12", said),
            ("session/resume", Ok(_)) if session.opening_updates == 0 => out.pass("SESS-23", said),
            _ => {}
        }
    }
}

/// Kinds that tell the conversation itself; the others describe the session and may come at any time (SESS-31).
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

fn update(book: &Book, said: &Said<'_>, id: &str, kind: &str, out: &mut Findings) {
    // A client that names a session of its own making has named it.
    let known = book
        .sessions
        .get(id)
        .filter(|session| session.opened || session.opening || !session.prompts.is_empty());
    let Some(session) = known else {
        let opening = ["session/new", "session/fork"]
            .iter()
            .any(|method| book.open_for(Role::Client, method).count() > 0);
        if opening {
            let why = "an update of a session whose id the client does not have yet";
            out.fail("SESS-31", said, why);
        } else {
            out.fail("PROMPT-12", said, format!("an update of the session {id:?}, which nothing has named"));
        }
        return;
    };
    out.pass("PROMPT-12", said);
    if !is_conversation(kind) {
        out.pass("SESS-31", said);
        return;
    }
    if session.opening {
        if session.opened_by == "session/resume" {
            out.fail("SESS-23", said, "history is sent before the answer to session/resume");
        }
        return;
    }
    if session.prompts.is_empty() {
        late(session, said, kind, out);
    }
}

/// Conversation outside of a turn. Before the first one nothing forbids a greeting.
fn late(session: &Session, said: &Said<'_>, kind: &str, out: &mut Findings) {
    if session.turns == 0 {
        if session.opened_by == "session/load" {
            out.fail("SESS-12", said, format!("`{kind}` comes after the answer to session/load"));
        }
        return;
    }
    if session.last_cancelled {
        out.fail("CANCEL-08", said, format!("`{kind}` comes after the answer of the cancelled prompt"));
    } else {
        out.fail("PROMPT-11", said, format!("`{kind}` comes after the answer of its prompt"));
    }
}
