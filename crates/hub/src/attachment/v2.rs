//! A client of version 2 on a session, whose agent and journal have version 1.
//!
//! Lines of the agent are translated by the SDK. States are made of the entries of the journal: a
//! turn that begins, a question, a decision, the end of a turn. A message without an id gets one
//! that is made of the number of its first entry, so that every client, and a client that comes
//! back, knows it by the same id.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use attache::agent::translate::{self, Session as Translator};
use attache::wire::v1::{
    MessageId, NewSessionResponse, PromptResponse, RequestPermissionRequest, SessionNotification,
    SessionUpdate, SetSessionConfigOptionResponse, decode_tolerant,
};
use attache::wire::v2::IdleStateUpdate;
use attache_conn::rpc::{ErrorObject, Frame};
use attache_journal::{Entry, Error, Journal, Seq, StoredPage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Attachment, End, Form, open_result};
use crate::entry::{self, Decision, Prompt, Question, TurnEnded, kind};
use crate::message::{self, DEPTH, Outcome};
use crate::session::Session;

/// Entries that are read first to find the begin of a message, and the most that are.
const BACK: u64 = 64;
const MOST_BACK: u64 = 16 << 10;
/// Bytes that are translated before they are sent.
const BATCH: usize = 64 << 10;

/// The id of the message that begins with an entry.
fn message_id(seq: Seq) -> MessageId {
    MessageId::from(format!("msg-{}", seq.get()))
}

/// The session's modes and options as a client of version 2 sees them.
pub(crate) fn settings_of(session: &Session) -> Translator {
    // The response to `session/load` lacks the id that the type requires.
    let mut result: Value = serde_json::from_str(open_result(session).get()).unwrap_or_default();
    if let Some(members) = result.as_object_mut() {
        members.insert("sessionId".to_owned(), json!(session.id()));
    }
    match serde_json::from_value::<NewSessionResponse>(result) {
        Ok(opened) => Translator::new(opened.modes, opened.config_options),
        Err(_) => Translator::new(None, None),
    }
}

/// What a client of version 2 has seen of a session.
pub(crate) struct View {
    translator: Translator,
    is_running: bool,
    /// Questions without a decision.
    questions: HashSet<String>,
}

impl View {
    /// The view of a client that starts after an entry. `beginning` is the entry before the first
    /// one of the journal.
    pub(crate) async fn open(
        session: &Session,
        journal: &Journal,
        beginning: Seq,
        after: Seq,
    ) -> Result<View, Error> {
        let mut back = BACK;
        loop {
            let start = Seq::new(after.get().saturating_sub(back).max(beginning.get()));
            let mut view =
                View { translator: settings_of(session), is_running: false, questions: HashSet::new() };
            if start < after {
                let mut pages = journal.read(&session.key, start, Some(after)).await?;
                while let Some(page) = pages.next().await? {
                    for entry in page.entries().filter(|entry| entry.seq() > start && entry.seq() <= after) {
                        view.pass(entry);
                    }
                }
            }
            // A message that the first entry is part of may have begun before.
            let is_cut = view.translator.message() == Some(message_id(start.plus(1)));
            if !is_cut || start == beginning || back >= MOST_BACK {
                return Ok(view);
            }
            back *= 16;
        }
    }

    /// Takes note of an entry that the client has seen before.
    fn pass(&mut self, entry: Entry<'_>) {
        match entry.kind() {
            kind::LINE => drop(self.line(entry.bytes(), entry.seq())),
            kind::PROMPT => self.translator.begin_user_message(message_id(entry.seq())),
            kind::NOTICE => {
                if let Some((_, line)) = entry::decode_notice(entry.bytes()) {
                    drop(self.line(line, entry.seq()));
                }
            }
            kind::TURN_ENDED => self.translator.end_message(),
            _ => {}
        }
    }

    /// A line of version 1 in version 2. `None` if there is nothing to report in it.
    fn line<'a>(&mut self, line: &'a [u8], seq: Seq) -> Option<Cow<'a, [u8]>> {
        let Some(update) = session_update(line) else { return Some(Cow::Borrowed(line)) };
        let params = self.translator.update(&update?, message_id(seq))?;
        Some(Cow::Owned(message::notification("session/update", &params)))
    }

    fn state(&self) -> &'static str {
        match (self.is_running, self.questions.is_empty()) {
            (false, _) => "idle",
            (true, true) => "running",
            (true, false) => "requires_action",
        }
    }
}

/// The update in a line; `None` if it is another message, `Some(None)` if the update is malformed.
fn session_update(line: &[u8]) -> Option<Option<SessionNotification>> {
    match Frame::parse(line.trim_ascii_end(), DEPTH) {
        Frame::Notification { method, params } if method == "session/update" => {
            Some(decode_tolerant("session/update", params).ok())
        }
        _ => None,
    }
}

impl Attachment {
    /// The result of the request that attached the client, in its version.
    pub(super) fn result(&self, result: Box<RawValue>) -> Box<RawValue> {
        if self.view.is_none() {
            return result;
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            session_id: Option<String>,
        }
        let mut translated = json!({});
        let options = settings_of(&self.session).options();
        // V2-44
        if !options.is_empty() {
            translated["configOptions"] = json!(options);
        }
        if let Ok(Named { session_id: Some(id) }) = serde_json::from_str(result.get()) {
            translated["sessionId"] = json!(id);
        }
        message::raw(&translated)
    }

    /// Sends the present state to a client of version 2.
    // V2-27
    pub(super) async fn report_state(&mut self, position: Seq) -> Result<(), End> {
        let Some(view) = &mut self.view else { return Ok(()) };
        let summary = self.session.summary.lock().clone();
        // The end of a turn that is not shown yet does not count.
        let is_unseen = summary.ended.as_ref().is_some_and(|end| end.ended > position);
        view.is_running = summary.is_busy || is_unseen;
        view.questions = self.session.questions.lock().ids().collect();
        let stop = summary.ended.map(|end| end.outcome);
        let line = self.state_line(stop.as_ref());
        self.send_uncounted(&line).await
    }

    /// Sends the entries of a page to a client of version 2.
    pub(super) async fn show_page_v2(&mut self, page: &StoredPage) -> Result<(), End> {
        let mut lines = Vec::new();
        for entry in page.entries() {
            if entry.kind() == kind::LINE {
                let translated = self.view.as_mut().and_then(|view| view.line(entry.bytes(), entry.seq()));
                match translated {
                    Some(line) => {
                        lines.extend(self.owed_position().unwrap_or_default());
                        lines.extend_from_slice(&line);
                    }
                    None => self.owes_position = Some(entry.seq()),
                }
                if lines.len() < BATCH {
                    continue;
                }
            }
            self.connection.outbox.send(std::mem::take(&mut lines)).await?;
            if entry.kind() != kind::LINE {
                self.show_entry_v2(entry).await?;
            }
        }
        self.connection.outbox.send(lines).await?;
        self.pay_position().await?;
        self.connection.open.lock().positions.insert(self.session.id().to_owned(), page.last());
        Ok(())
    }

    async fn show_entry_v2(&mut self, entry: Entry<'_>) -> Result<(), End> {
        let is_replay = self.reply.is_some();
        let Some(view) = &mut self.view else { return Ok(()) };
        let seq = entry.seq();
        match entry.kind() {
            kind::PROMPT => {
                self.owes_position = Some(seq);
                let Some(begun) = entry::decode::<Prompt>(entry.bytes()) else { return Ok(()) };
                self.prompt = Some(begun.prompt.clone());
                view.translator.begin_user_message(message_id(seq));
                view.is_running = true;
                let (connection, session) = (Arc::clone(&self.connection), self.session.id());
                {
                    let mut open = connection.open.lock();
                    open.positions.insert(session.to_owned(), seq);
                    open.working.insert(session.to_owned());
                }
                // V2-08: answered when the message is part of the conversation.
                connection.end_prompt(session, &begun.prompt, &inserted(seq)).await?;
                match is_replay {
                    true => Ok(()),
                    false => self.send_state(seq, None).await, // V2-11
                }
            }
            kind::NOTICE => {
                let Some((but, line)) = entry::decode_notice(entry.bytes()) else { return Ok(()) };
                self.owes_position = Some(seq);
                let update = session_update(line).flatten().map(|update| update.update);
                let is_message = matches!(update, Some(SessionUpdate::UserMessageChunk(_)));
                let translated = view.line(line, seq).map(Cow::into_owned);
                // V2-10: messages come back to their author; of a changed setting its response
                // tells.
                match translated {
                    Some(line) if is_message || is_replay || but != self.connection.id => {
                        self.send_notice(but, &line, seq).await
                    }
                    _ => Ok(()),
                }
            }
            kind::TURN_ENDED => {
                self.owes_position = Some(seq);
                self.prompt = None;
                view.translator.end_message();
                view.is_running = false;
                let Some(ended) = entry::decode::<TurnEnded>(entry.bytes()) else { return Ok(()) };
                {
                    let mut open = self.connection.open.lock();
                    open.positions.insert(self.session.id().to_owned(), seq);
                    open.working.remove(self.session.id());
                }
                match is_replay {
                    true => Ok(()),
                    false => self.send_state(seq, Some(&ended.outcome)).await,
                }
            }
            kind::QUESTION => {
                let id = entry::decode::<Question>(entry.bytes()).map(|question| question.question);
                view.questions.extend(id);
                // V2-13
                if !is_replay && view.is_running && view.questions.len() == 1 {
                    let line = self.state_line(None);
                    self.send_uncounted(&line).await?;
                }
                self.show_entry(entry).await
            }
            kind::DECISION => {
                let decided = entry::decode::<Decision>(entry.bytes());
                let was_open = decided.is_some_and(|decided| view.questions.remove(&decided.question));
                let is_resumed = was_open && view.is_running && view.questions.is_empty();
                self.show_entry(entry).await?;
                match is_resumed && !is_replay {
                    true => self.send_state(seq, None).await,
                    false => Ok(()),
                }
            }
            _ => self.show_entry(entry).await,
        }
    }

    async fn send_state(&mut self, seq: Seq, stop: Option<&Outcome>) -> Result<(), End> {
        let line = self.state_line(stop);
        self.send_own(&line, seq).await
    }

    /// The present state, with the reason why the last turn ended if there is none now.
    fn state_line(&self, stop: Option<&Outcome>) -> Vec<u8> {
        let state = self.view.as_ref().map_or("idle", View::state);
        state_line(self.session.id(), state, stop)
    }

    /// Sends a message that is no position of a client that counts.
    async fn send_uncounted(&mut self, line: &[u8]) -> Result<(), End> {
        let owed = self.owes_position.take();
        let lines = match line.strip_suffix(b"}}\n") {
            Some(front) if self.counts() => {
                [front, br#","_meta":{"attache":{"at":null}}}}"#, b"\n".as_slice()].concat()
            }
            _ => line.to_vec(),
        };
        self.connection.outbox.send(lines).await?;
        self.owes_position = owed;
        Ok(())
    }

    /// A response of the agent in the form for this client.
    pub(super) fn in_form(&mut self, outcome: Outcome, form: &Form) -> Outcome {
        let (Some(view), Outcome::Result(result)) = (&mut self.view, &outcome) else { return outcome };
        match form {
            Form::Same => return outcome,
            Form::Mode(mode) => drop(view.translator.set_mode(&mode.as_str().into())),
            Form::Options => {
                if let Ok(changed) = serde_json::from_str::<SetSessionConfigOptionResponse>(result.get()) {
                    view.translator.set_options(changed.config_options);
                }
            }
        }
        Outcome::result(&json!({"configOptions": view.translator.options()}))
    }

    /// The params of a question in the client's version.
    pub(super) fn question_params(&self, method: &str, params: Box<RawValue>) -> Box<RawValue> {
        if self.view.is_none() || method != "session/request_permission" {
            return params;
        }
        let translated = serde_json::from_str::<RequestPermissionRequest>(params.get())
            .and_then(|request| translate::permission(&request));
        translated.unwrap_or(params)
    }
}

/// The response to a prompt of a client of version 2.
pub(crate) fn inserted(begun: Seq) -> Outcome {
    Outcome::result(&json!({"messageId": message_id(begun)}))
}

/// A state of a session.
// V2-12
pub(crate) fn state_line(session: &str, state: &str, stop: Option<&Outcome>) -> Vec<u8> {
    let mut update = json!({"sessionUpdate": "state_update", "state": state});
    if state == "idle"
        && let Some(stop) = stop
        && let idle = IdleStateUpdate::new(translate::stop_reason(stop_of(stop)))
        && let Ok(Value::Object(reason)) = serde_json::to_value(idle)
        && let Some(members) = update.as_object_mut()
    {
        members.extend(reason);
    }
    message::notification("session/update", &json!({"sessionId": session, "update": update}))
}

fn stop_of(outcome: &Outcome) -> Result<attache::wire::v1::StopReason, ErrorObject> {
    let unreadable = || ErrorObject::internal("the agent ended the turn without a reason");
    match outcome {
        Outcome::Result(result) => serde_json::from_str::<PromptResponse>(result.get())
            .map(|response| response.stop_reason)
            .map_err(|_| unreadable()),
        Outcome::Error(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| unreadable())),
    }
}
