//! A client on a session: a cursor in the journal whose entries become messages.
//!
//! Everything that a client sees of a session comes from the journal, in its order: updates,
//! questions, the ends of turns and the responses to its requests. So a client that reads slowly
//! costs a cursor, and delays no other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use attache_conn::rpc::{ErrorObject, Id};
use attache_journal::{Entry, Error, Follower, Seq, StoredPage};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing::debug;

use crate::entry::{self, Decision, Question, TurnEnded, kind};
use crate::hub::{at, journal_error, not_found, with_meta};
use crate::identity::Identity;
use crate::message::{self, Outcome};
use crate::outbox::{Gone, Outbox};
#[cfg(unix)]
use crate::providers::Answering;
#[cfg(unix)]
use crate::session::Editor;
use crate::session::{Session, SessionRef};

mod v2;

pub(crate) use v2::{View, inserted, settings_of, state_line};

/// The state of a connection that its attachments share.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) identity: Identity,
    pub(crate) outbox: Outbox,
    /// The client counts positions.
    pub(crate) counts: AtomicBool,
    /// The client speaks version 2.
    pub(crate) is_v2: AtomicBool,
    /// The client is an editor of this machine, whose buffers count.
    pub(crate) is_editor: AtomicBool,
    pub(crate) open: Mutex<OpenRequests>,
}

/// Requests in both directions without a response.
#[derive(Default)]
pub(crate) struct OpenRequests {
    /// Prompts of the client, by session and prompt id.
    pub(crate) prompts: HashMap<(String, String), Vec<Id>>,
    /// Other requests of the client that the agent answers.
    pub(crate) forwarded: HashMap<Id, Forwarded>,
    /// Questions that the client was asked: session and question, by the id of the request.
    pub(crate) asks: HashMap<i64, (String, String)>,
    /// Requests of the hub for the client itself, with their sessions.
    pub(crate) calls: HashMap<i64, (String, oneshot::Sender<Outcome>)>,
    next_ask: i64,
    /// The last entry of each session that was shown.
    pub(crate) positions: HashMap<String, Seq>,
    /// Sessions that work, as a client of version 2 was told.
    pub(crate) working: HashSet<String>,
}

/// A request of a client that the agent answers.
pub(crate) struct Forwarded {
    pub(crate) session: String,
    /// The form of its response.
    pub(crate) form: Form,
}

/// The form of a response for a client.
pub(crate) enum Form {
    /// As the agent wrote it.
    Same,
    /// The config options, for a client of version 2.
    Options,
    /// The config options with this mode, for a client of version 2.
    Mode(String),
}

impl OpenRequests {
    /// Takes the requests that wait for a prompt.
    pub(crate) fn take_prompts(&mut self, session: &str, prompt: &str) -> Vec<Id> {
        self.prompts.remove(&(session.to_owned(), prompt.to_owned())).unwrap_or_default()
    }

    /// Takes the requests that wait for a session: prompts, and others.
    pub(crate) fn take_session(&mut self, session: &str) -> (Vec<Id>, Vec<Id>) {
        let prompts = self.prompts.extract_if(|(of, _), _| of == session).flat_map(|(_, ids)| ids).collect();
        let others = self.forwarded.extract_if(|_, of| of.session == session).map(|(id, _)| id).collect();
        (prompts, others)
    }

    pub(crate) fn is_shown(&self, session: &str, seq: Seq) -> bool {
        self.positions.get(session).is_some_and(|position| *position >= seq)
    }
}

/// The id of the first request to a client. Those of another connection are others, because a
/// client that comes back may still answer what it was asked before. All of them fit into the
/// numbers of JavaScript.
fn first_ask(connection: u64) -> i64 {
    ((connection & u64::from(u32::MAX)) << 20).cast_signed()
}

impl Connection {
    pub(crate) fn new(id: u64, identity: Identity, outbox: Outbox) -> Connection {
        Connection {
            id,
            identity,
            outbox,
            counts: false.into(),
            is_v2: false.into(),
            is_editor: false.into(),
            open: Mutex::new(OpenRequests { next_ask: first_ask(id), ..OpenRequests::default() }),
        }
    }

    /// Sends a request of the hub to the client. `None` if the client leaves the session.
    #[cfg(unix)]
    async fn call(&self, session: &str, method: &str, params: &Value) -> Option<Outcome> {
        let (reply, answered) = oneshot::channel();
        let id = {
            let mut open = self.open.lock();
            let id = open.next_ask;
            open.next_ask += 1;
            // Requests whose time is over are forgotten.
            open.calls.retain(|_, (_, reply)| !reply.is_closed());
            open.calls.insert(id, (session.to_owned(), reply));
            id
        };
        let line = match self.counts.load(Ordering::Relaxed) {
            true => message::request(&Id::Int(id), method, &with_meta(&message::raw(params), &no_position())),
            false => message::request(&Id::Int(id), method, params),
        };
        self.outbox.send(line).await.ok()?;
        answered.await.ok()
    }

    pub(crate) async fn respond(&self, id: &Id, outcome: &Outcome) -> Result<(), Gone> {
        self.outbox.send(message::response(id, outcome)).await
    }

    /// Answers all requests that wait for a prompt.
    pub(crate) async fn end_prompt(
        &self,
        session: &str,
        prompt: &str,
        outcome: &Outcome,
    ) -> Result<bool, Gone> {
        let ids = self.open.lock().take_prompts(session, prompt);
        for id in &ids {
            self.respond(id, outcome).await?;
        }
        Ok(!ids.is_empty())
    }
}

#[cfg(unix)]
impl Editor for Connection {
    fn id(&self) -> u64 {
        self.id
    }

    fn read(self: Arc<Self>, session: String, params: Value) -> Answering {
        Box::pin(async move { self.call(&session, "fs/read_text_file", &params).await })
    }
}

/// The response to the request that attached the client, sent when the replay is over.
pub(crate) struct OpenReply {
    pub(crate) id: Id,
    pub(crate) result: Box<RawValue>,
    /// The whole history was sent instead of what follows an unknown cursor.
    pub(crate) is_replayed: bool,
    /// It is the response to `session/new`, which precedes everything of the session.
    pub(crate) is_new: bool,
}

/// `_meta.attache` of a message that is no position.
fn no_position() -> Value {
    json!({"at": Value::Null})
}

/// A client on a session.
pub(crate) struct Attachment {
    pub(crate) connection: Arc<Connection>,
    pub(crate) session: SessionRef,
    pub(crate) follower: Follower,
    pub(crate) reply: Option<OpenReply>,
    /// Entries were passed over that the client has to count.
    pub(crate) owes_position: Option<Seq>,
    /// Questions that were asked and not decided.
    pub(crate) asked: HashSet<String>,
    /// The prompt whose messages are shown.
    pub(crate) prompt: Option<String>,
    /// What a client of version 2 sees.
    pub(crate) view: Option<View>,
}

impl Attachment {
    pub(crate) fn new(
        connection: Arc<Connection>,
        session: SessionRef,
        follower: Follower,
        reply: OpenReply,
        view: Option<View>,
    ) -> Self {
        Attachment {
            connection,
            session,
            follower,
            reply: Some(reply),
            owes_position: None,
            asked: HashSet::new(),
            prompt: None,
            view,
        }
    }

    /// Shows the session until the client leaves.
    pub(crate) async fn run(mut self) {
        match self.show().await {
            Ok(()) | Err(End::Gone) => {}
            // It was deleted.
            Err(End::Journal(Error::Unknown)) => self.fail(not_found(self.session.id())).await,
            Err(End::Journal(error)) => {
                debug!(session = ?self.session.key, %error, "a client lost its session");
                self.fail(journal_error(error)).await;
            }
            Err(End::Failed) => {
                self.fail(ErrorObject::internal("the session has failed; load it again")).await
            }
        }
    }

    async fn show(&mut self) -> Result<(), End> {
        let mut signal = self.session.signal.subscribe();
        loop {
            // SESS-05: nothing of a session precedes the response that names it.
            if (self.follower.is_live() || self.reply.as_ref().is_some_and(|reply| reply.is_new))
                && let Some(reply) = self.reply.take()
            {
                self.reply(reply).await?;
                self.ask(true).await?;
            }
            tokio::select! {
                page = self.follower.next() => {
                    let page = page.map_err(End::Journal)?;
                    match self.view.is_some() {
                        true => self.show_page_v2(&page).await?,
                        false => self.show_page(&page).await?,
                    }
                }
                _ = signal.changed() => {
                    if signal.borrow_and_update().failed {
                        return Err(End::Failed);
                    }
                    if self.reply.is_none() {
                        self.ask(false).await?;
                    }
                }
            }
        }
    }

    /// Answers everything that waits for this session.
    async fn fail(&mut self, error: ErrorObject) {
        let outcome = Outcome::error(&error);
        let (prompts, others) = self.connection.open.lock().take_session(self.session.id());
        let opening = self.reply.take().map(|reply| reply.id);
        for id in opening.into_iter().chain(prompts).chain(others) {
            if self.connection.respond(&id, &outcome).await.is_err() {
                return;
            }
        }
    }

    async fn reply(&mut self, reply: OpenReply) -> Result<(), End> {
        let position = self.follower.position();
        let summary = self.session.summary.lock().clone();
        let mut meta = json!({
            "at": self.at(position),
            "state": if summary.is_busy { "running" } else { "idle" },
        });
        if reply.is_replayed {
            meta["replayed"] = json!("start");
        }
        let result = with_meta(&self.result(reply.result), &meta);
        if !reply.is_new {
            self.report_state(position).await?;
        }
        // The response says it.
        self.owes_position = None;
        self.connection.open.lock().positions.insert(self.session.id().to_owned(), position);
        self.connection.respond(&reply.id, &Outcome::Result(result)).await?;
        Ok(())
    }

    fn at(&self, seq: Seq) -> String {
        at(self.session.epoch().get(), seq.get())
    }

    fn counts(&self) -> bool {
        self.connection.counts.load(Ordering::Relaxed)
    }

    /// Sends the entries of a page. Lines of the agent go out as they are, all of a run at once.
    async fn show_page(&mut self, page: &StoredPage) -> Result<(), End> {
        let body = page.page().body();
        let (mut start, mut end) = (0, 0);
        for entry in page.entries() {
            let from = end;
            end += entry.bytes().len();
            if entry.kind() == kind::LINE {
                if start == from {
                    self.pay_position().await?;
                }
                continue;
            }
            self.connection.outbox.send(body.slice(start..from)).await?;
            start = end;
            self.show_entry(entry).await?;
        }
        self.connection.outbox.send(body.slice(start..end)).await?;
        self.pay_position().await?;
        self.connection.open.lock().positions.insert(self.session.id().to_owned(), page.last());
        Ok(())
    }

    /// Sends its position to a client that counts.
    async fn pay_position(&mut self) -> Result<(), End> {
        match self.owed_position() {
            Some(line) => Ok(self.connection.outbox.send(line).await?),
            None => Ok(()),
        }
    }

    /// The line that reports the position to a client that counts, if there is something to report.
    fn owed_position(&mut self) -> Option<Vec<u8>> {
        let seq = self.owes_position.take().filter(|_| self.counts())?;
        let params = json!({"sessionId": self.session.id(), "at": self.at(seq)});
        Some(message::notification("_attache/position", &params))
    }

    /// Sends an entry that is not a line of the agent, in the form for this client.
    async fn show_entry(&mut self, entry: Entry<'_>) -> Result<(), End> {
        let is_replay = self.reply.is_some();
        let connection = Arc::clone(&self.connection);
        self.owes_position = Some(entry.seq());
        match entry.kind() {
            kind::PROMPT => {
                self.prompt = entry::decode::<entry::Prompt>(entry.bytes()).map(|begun| begun.prompt);
                Ok(())
            }
            kind::NOTICE => {
                let Some((but, line)) = entry::decode_notice(entry.bytes()) else { return Ok(()) };
                if but == connection.id && !is_replay {
                    return Ok(());
                }
                self.send_notice(but, line, entry.seq()).await
            }
            kind::TURN_ENDED => {
                self.prompt = None;
                let Some(ended) = entry::decode::<TurnEnded>(entry.bytes()) else { return Ok(()) };
                connection.open.lock().positions.insert(self.session.id().to_owned(), entry.seq());
                let is_own = connection.end_prompt(self.session.id(), &ended.prompt, &ended.outcome).await?;
                match self.counts() || (!is_own && !is_replay) {
                    true => self.send_own(&self.turn_ended(&ended), entry.seq()).await,
                    false => Ok(()),
                }
            }
            kind::QUESTION if !is_replay => self.ask(false).await,
            kind::DECISION => match entry::decode::<Decision>(entry.bytes()) {
                Some(decision) => self.withdraw(&decision.question).await,
                None => Ok(()),
            },
            kind::RESPONSE => {
                let Some(response) = entry::decode::<entry::Response>(entry.bytes()) else { return Ok(()) };
                let Some(id) = response.id().filter(|_| response.connection == connection.id) else {
                    return Ok(());
                };
                let forwarded = connection.open.lock().forwarded.remove(&id);
                let Some(forwarded) = forwarded else { return Ok(()) };
                let outcome = self.in_form(response.outcome, &forwarded.form);
                Ok(connection.respond(&id, &outcome).await?)
            }
            _ => Ok(()),
        }
    }

    fn turn_ended(&self, ended: &TurnEnded) -> Vec<u8> {
        let mut params = json!({"sessionId": self.session.id(), "prompt": ended.prompt});
        match &ended.outcome {
            Outcome::Result(result) => params["result"] = json!(result),
            Outcome::Error(error) => params["error"] = json!(error),
        }
        if ended.interrupted {
            params["interrupted"] = json!(true);
        }
        message::notification("_attache/turn_ended", &params)
    }

    /// Sends a notification that the session has for all connections but one.
    async fn send_notice(&mut self, but: u64, line: &[u8], seq: Seq) -> Result<(), End> {
        // A client counts what names the session, so it is sent the position after this line.
        if but == entry::NO_SESSION {
            return Ok(self.connection.outbox.send(line.to_vec()).await?);
        }
        self.send_own(line, seq).await
    }

    /// Sends a message of the hub, with its position for clients that count, and the prompt that it
    /// is a part of.
    async fn send_own(&mut self, line: &[u8], seq: Seq) -> Result<(), End> {
        let lines = match line.strip_suffix(b"}}\n") {
            Some(front) if self.counts() => {
                let mut meta = json!({"at": self.at(seq)});
                if let Some(prompt) = self.prompt.as_ref().filter(|_| is_user_message(line)) {
                    meta["prompt"] = json!(prompt);
                }
                let meta = format!(r#","_meta":{{"attache":{meta}}}}}}}"#);
                [front, meta.as_bytes(), b"\n"].concat()
            }
            _ => line.to_vec(),
        };
        self.owes_position = None;
        Ok(self.connection.outbox.send(lines).await?)
    }

    /// Asks the questions that the client may answer and was not asked.
    async fn ask(&mut self, again: bool) -> Result<(), End> {
        let connection = Arc::clone(&self.connection);
        let upto = match again {
            true => self.follower.position(),
            false => self.owes_position.unwrap_or_else(|| self.follower.position()),
        };
        let questions = self.session.questions.lock().ask(connection.id, &connection.identity, upto);
        for Question { question, method, params } in questions {
            let id = {
                let mut open = connection.open.lock();
                let id = open.next_ask;
                open.next_ask += 1;
                open.asks.insert(id, (self.session.id().to_owned(), question.clone()));
                id
            };
            self.asked.insert(question);
            let params = self.question_params(&method, params);
            let params = match self.counts() {
                // A question is not a position: it may be asked again, or not at all.
                true => with_meta(&params, &no_position()),
                false => params,
            };
            connection.outbox.send(message::request(&Id::Int(id), &method, &params)).await?;
        }
        Ok(())
    }

    /// Takes a question back that was decided elsewhere.
    async fn withdraw(&mut self, question: &str) -> Result<(), End> {
        if !self.asked.remove(question) {
            return Ok(());
        }
        let ids: Vec<i64> = {
            let mut open = self.connection.open.lock();
            let session = self.session.id();
            let is_it = |of: &(String, String)| of.0 == session && of.1 == question;
            open.asks.extract_if(|_, of| is_it(of)).map(|(id, _)| id).collect()
        };
        for id in ids {
            let line = message::notification("$/cancel_request", &json!({"requestId": id}));
            self.connection.outbox.send(line).await?;
        }
        Ok(())
    }
}

/// Whether a notification that the hub made is a piece of a prompt.
fn is_user_message(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Line {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        update: Update,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        session_update: String,
    }
    let read = serde_json::from_slice::<Line>(line);
    read.is_ok_and(|line| line.params.update.session_update == "user_message_chunk")
}

/// Why an attachment ends.
enum End {
    Gone,
    Failed,
    Journal(Error),
}

impl From<Gone> for End {
    fn from(_: Gone) -> End {
        End::Gone
    }
}

/// The result of `session/load` and `session/resume`: that of `session/new`, with the present mode.
pub(crate) fn open_result(session: &Session) -> Box<RawValue> {
    let mut result: Value = serde_json::from_str(session.opened.result.get()).unwrap_or(Value::Null);
    if let Some(members) = result.as_object_mut() {
        members.remove("sessionId");
        members.remove("_meta");
        let summary = session.summary.lock();
        if let (Some(options), true) = (&summary.options, members.contains_key("configOptions")) {
            members.insert("configOptions".to_owned(), json!(options));
        }
        let mode = summary.mode.clone();
        drop(summary);
        if let (Some(mode), Some(current)) = (mode, result.pointer_mut("/modes/currentModeId")) {
            *current = json!(mode);
        }
    }
    message::raw(&result)
}
