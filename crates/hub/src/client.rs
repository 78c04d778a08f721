//! A client's connection: its messages become commands.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use attache_conn::rpc::{ErrorObject, Frame, Id};
use attache_conn::{FrameReader, Link};
use attache_journal::Seq;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::attachment::{
    Attachment, Connection, Form, Forwarded, OpenReply, View, inserted, open_result, state_line,
};
use crate::hub::{Shared, journal_error, not_found};
use crate::identity::{Identity, Role};
use crate::message::{self, ClientMeta, DEPTH, Outcome, SessionParams};
use crate::outbox::{Gone, Outbox};
use crate::session::{Command, Forward, PromptCommand, PromptReply, Session, SessionRef, cancelled_id};

mod v2;

/// Requests of a client that are carried out at once; further ones wait.
const REQUESTS: usize = 32;
/// Requests of a client without a response.
const OPEN: usize = 4096;
/// The longest prompt id.
const PROMPT_ID: usize = 256;

/// A connected client.
struct Client {
    hub: Arc<Shared>,
    connection: Arc<Connection>,
    attached: Mutex<HashMap<String, Attached>>,
    /// Held while a session is attached, so that two requests for the same one do not both succeed.
    attaching: tokio::sync::Mutex<()>,
    prompts: AtomicU64,
    elicitation: AtomicBool,
    /// There were requests of version 2 other than `initialize`.
    has_requests: AtomicBool,
}

/// A session that a client follows.
struct Attached {
    session: Arc<Session>,
    task: JoinHandle<()>,
}

/// Serves a client until it leaves.
pub(crate) async fn serve(hub: Arc<Shared>, link: Link, identity: Identity) {
    let (reader, writer) = link.split();
    let (outbox, mut writing) = Outbox::start(writer, hub.cx.options.stall);
    let connection = Arc::new(Connection::new(hub.next_connection(), identity, outbox));
    let client = Arc::new(Client {
        hub,
        connection,
        attached: Mutex::default(),
        attaching: tokio::sync::Mutex::default(),
        prompts: AtomicU64::new(0),
        elicitation: false.into(),
        has_requests: false.into(),
    });
    client.hub.cx.metrics.clients.add(1);
    let is_writing = tokio::select! {
        () = client.read(reader) => true,
        // The client does not take what it is sent, or cannot be written to.
        _ = &mut writing => false,
    };
    client.hub.cx.metrics.clients.subtract(1);
    let attached: Vec<String> = client.attached.lock().keys().cloned().collect();
    for session in attached {
        client.detach(&session).await;
    }
    // Responses that are on their way are written.
    drop(client);
    if is_writing {
        let _ = writing.await;
    }
}

impl Client {
    async fn read(self: &Arc<Self>, mut reader: FrameReader) {
        let requests = Arc::new(Semaphore::new(REQUESTS));
        loop {
            let line = match reader.next().await {
                Ok(Some(line)) => line,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    if let Frame::Malformed(malformed) = Frame::parse_head(reader.head(), &error.to_string())
                        && let Some((id, error)) = malformed.answer
                        && self.connection.respond(&id, &Outcome::error(&error)).await.is_err()
                    {
                        return;
                    }
                    continue;
                }
                Ok(None) | Err(_) => return,
            };
            let handled = match Frame::parse(line, DEPTH) {
                Frame::Request { id, method, params } => {
                    self.on_request(&requests, id, &method, params).await
                }
                Frame::Notification { method, params } => self.on_notification(&method, params).await,
                Frame::Response { id, outcome } => self.on_response(&id, Outcome::of(outcome)).await,
                Frame::Malformed(malformed) => match malformed.answer {
                    Some((id, error)) => self.connection.respond(&id, &Outcome::error(&error)).await,
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            if handled.is_err() {
                return;
            }
        }
    }

    fn identity(&self) -> &Identity {
        &self.connection.identity
    }

    /// Refuses what the client's role does not include.
    fn require(&self, role: Role) -> Result<(), ErrorObject> {
        match self.identity().may(role) {
            true => Ok(()),
            false => {
                let why = format!(
                    "this needs the role {role}; the token has the role {}",
                    self.identity().rights()
                );
                Err(ErrorObject::invalid_request(why))
            }
        }
    }

    /// The session that this client follows.
    fn session(&self, id: Option<&str>) -> Result<Arc<Session>, ErrorObject> {
        let id = id.ok_or_else(|| ErrorObject::invalid_params("there is no sessionId"))?;
        let attached = self.attached.lock();
        attached.get(id).map(|attached| Arc::clone(&attached.session)).ok_or_else(|| not_found(id))
    }

    async fn on_request(
        self: &Arc<Self>,
        requests: &Arc<Semaphore>,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Gone> {
        // What follows is read in the version of the connection.
        if method == "initialize"
            && let Err(error) = self.negotiate(params)
        {
            return self.connection.respond(&id, &Outcome::error(&error)).await;
        }
        let is_v2 = self.connection.is_v2.load(Ordering::Relaxed);
        if is_v2 && method != "initialize" {
            self.has_requests.store(true, Ordering::Relaxed);
        }
        // Prompts and requests for the agent keep their order; the others may take long.
        let failed = match method {
            _ if is_v2 && !v2::is_known(method) => Err(ErrorObject::method_not_found(method)),
            // V2-01
            _ if is_v2 && id == Id::Null => {
                Err(ErrorObject::invalid_request("the id of a request is not null"))
            }
            "session/prompt" => self.prompt(&id, params).await,
            "initialize" | "authenticate" | "logout" | "session/new" | "session/load" | "session/resume"
            | "session/list" | "session/close" | "session/delete" | "auth/login" | "auth/logout"
            | "_attache/status" => {
                let Ok(permit) = Arc::clone(requests).acquire_owned().await else { return Err(Gone) };
                let (client, method) = (Arc::clone(self), method.to_owned());
                let params = params.map(ToOwned::to_owned);
                tokio::spawn(async move {
                    let answered = client.answer(&id, &method, params.as_deref()).await;
                    let _ = match answered {
                        Ok(None) => Ok(()),
                        Ok(Some(result)) => client.connection.respond(&id, &Outcome::Result(result)).await,
                        Err(error) => client.connection.respond(&id, &Outcome::error(&error)).await,
                    };
                    drop(permit);
                });
                return Ok(());
            }
            _ if is_v2 => self.forward_v2(&id, method, params).await,
            _ => self.forward(&id, method, params, Form::Same).await,
        };
        match failed {
            Ok(()) => Ok(()),
            Err(error) => self.connection.respond(&id, &Outcome::error(&error)).await,
        }
    }

    /// Carries out a request. `None` if its response comes with the session.
    async fn answer(
        self: &Arc<Self>,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Option<Box<RawValue>>, ErrorObject> {
        let session = SessionParams::read(params).session();
        let named = || session.as_deref().ok_or_else(|| ErrorObject::invalid_params("there is no sessionId"));
        match method {
            "initialize" => self.initialize().await.map(Some),
            "authenticate" | "logout" | "auth/login" | "auth/logout" => {
                self.require(Role::Drive)?;
                let params = params.map_or_else(|| message::raw(&json!({})), ToOwned::to_owned);
                let of_agent = match method {
                    "auth/login" => "authenticate",
                    "auth/logout" => "logout",
                    method => method,
                };
                self.hub.call_agent(of_agent, &params).await.map(Some)
            }
            "session/new" => {
                self.require(Role::Drive)?;
                let params = params.ok_or_else(|| ErrorObject::invalid_params("there is no cwd"))?;
                let params = match self.is_v2() {
                    true => v2::new_session(params)?,
                    false => params.to_owned(),
                };
                let elicitation = self.elicitation.load(Ordering::Relaxed);
                let (session, result) = self.hub.create(self.identity(), &params, elicitation).await?;
                // The first entry is the session's own.
                let reply = OpenReply { id: id.clone(), result, is_replayed: false, is_new: true };
                self.attach(session, Seq::new(1), reply).await?;
                Ok(None)
            }
            "session/load" | "session/resume" => {
                let session = self.hub.open(self.identity(), named()?).await?;
                let (method, meta) = match self.is_v2() {
                    true => v2::replay_from(params)?,
                    false => (method, SessionParams::read(params).meta()),
                };
                let (after, is_replayed) = self.start(&session, method, &meta).await?;
                let result = open_result(&session);
                let reply = OpenReply { id: id.clone(), result, is_replayed, is_new: false };
                self.attach(session, after, reply).await?;
                Ok(None)
            }
            "session/list" => {
                self.hub.list(self.identity(), params).await.map(|list| Some(message::raw(&list)))
            }
            "session/close" => {
                let session = match self.session(Some(named()?)) {
                    // V2-29
                    Err(_) if self.is_v2() => return Ok(Some(message::raw(&json!({})))),
                    session => session?,
                };
                // Others keep the session if this client may not end it.
                if self.identity().may(Role::Drive) {
                    self.hub.close(&session).await?;
                }
                self.leave(named()?).await;
                Ok(Some(message::raw(&json!({}))))
            }
            "session/delete" => {
                self.require(Role::Admin)?;
                let session = self.hub.open(self.identity(), named()?).await?;
                self.hub.close(&session).await?;
                self.leave(named()?).await;
                self.hub.forget(&session).await?;
                Ok(Some(message::raw(&json!({}))))
            }
            "_attache/status" => {
                self.require(Role::Admin)?;
                self.hub.status(self.identity()).await.map(|status| Some(message::raw(&status)))
            }
            _ => Err(ErrorObject::method_not_found(method)),
        }
    }

    async fn initialize(&self) -> Result<Box<RawValue>, ErrorObject> {
        let agents = self.hub.initialize(self.elicitation.load(Ordering::Relaxed)).await?;
        let mut result: Value = serde_json::from_str(agents.get()).unwrap_or_else(|_| json!({}));
        result["protocolVersion"] = json!(1);
        if !result["agentCapabilities"].is_object() {
            result["agentCapabilities"] = json!({});
        }
        let capabilities = &mut result["agentCapabilities"];
        capabilities["loadSession"] = json!(true);
        let mut sessions = json!({"list": {}, "resume": {}, "close": {}});
        if self.identity().may(Role::Admin) {
            sessions["delete"] = json!({});
        }
        // Others, such as forks, would pass the journal by.
        if let Some(roots) = capabilities["sessionCapabilities"].get("additionalDirectories") {
            sessions["additionalDirectories"] = roots.clone();
        }
        capabilities["sessionCapabilities"] = sessions;
        if !capabilities["_meta"].is_object() {
            capabilities["_meta"] = json!({});
        }
        capabilities["_meta"]["attache"] = json!({
            "hub": env!("CARGO_PKG_VERSION"),
            "role": self.identity().rights().name(),
            "after": true,
            "prompt": true,
        });
        match self.is_v2() {
            true => v2::initialized(result, &self.hub.cx.options.info),
            false => Ok(message::raw(&result)),
        }
    }

    /// The entry after which a client starts, and whether that is the beginning in place of an
    /// unknown cursor.
    async fn start(
        &self,
        session: &Session,
        method: &str,
        meta: &ClientMeta,
    ) -> Result<(Seq, bool), ErrorObject> {
        let info = self.hub.cx.journal.info(&session.key).await.map_err(journal_error)?;
        let beginning = Seq::new(info.first.get().saturating_sub(1));
        if method == "session/load" {
            return Ok((beginning, false));
        }
        let Some(after) = &meta.after else { return Ok((info.last, false)) };
        self.connection.counts.store(true, Ordering::Relaxed);
        let known = after.split_once('.').and_then(|(epoch, seq)| {
            let (epoch, seq) = (epoch.parse::<u64>().ok()?, Seq::new(seq.parse().ok()?));
            let is_of_session = (session.opened.epoch..=info.epoch.get()).contains(&epoch);
            (is_of_session && seq <= info.last && seq >= beginning).then_some(seq)
        });
        match known {
            Some(seq) => Ok((seq, false)),
            None if meta.strict => Err(ErrorObject::invalid_params("the position is unknown or too old")),
            None => Ok((beginning, true)),
        }
    }

    /// Follows a session. The reply is sent when the client has what is there now.
    async fn attach(&self, session: SessionRef, after: Seq, reply: OpenReply) -> Result<(), ErrorObject> {
        let _attaching = self.attaching.lock().await;
        let id = session.id().to_owned();
        self.detach(&id).await;
        let view = match self.is_v2() {
            true => Some(self.view(&session, after).await?),
            false => None,
        };
        let follower = self.hub.cx.journal.follow(&session.key, after).await.map_err(journal_error)?;
        self.connection.open.lock().positions.insert(id.clone(), after);
        let shared = Arc::clone(&session);
        let attachment = Attachment::new(Arc::clone(&self.connection), session, follower, reply, view);
        #[cfg(unix)]
        if self.connection.is_editor.load(Ordering::Relaxed) && self.identity().may(Role::Drive) {
            shared.editors.lock().push(Arc::<Connection>::clone(&self.connection));
        }
        let task = tokio::spawn(attachment.run());
        self.attached.lock().insert(id, Attached { session: shared, task });
        Ok(())
    }

    /// Stops to follow a session. Its open questions can be asked again.
    async fn detach(&self, id: &str) {
        let Some(attached) = self.attached.lock().remove(id) else { return };
        attached.task.abort();
        let _ = attached.task.await;
        attached.session.questions.lock().forget(self.connection.id);
        #[cfg(unix)]
        attached.session.editors.lock().retain(|editor| editor.id() != self.connection.id);
        let mut open = self.connection.open.lock();
        open.asks.retain(|_, (session, _)| session != id);
        open.calls.retain(|_, (session, _)| session != id);
    }

    /// What a client of version 2 sees of a session after an entry.
    async fn view(&self, session: &Session, after: Seq) -> Result<View, ErrorObject> {
        let journal = &self.hub.cx.journal;
        let info = journal.info(&session.key).await.map_err(journal_error)?;
        let beginning = Seq::new(info.first.get().saturating_sub(1));
        View::open(session, journal, beginning, after).await.map_err(journal_error)
    }

    /// Stops to follow a session for good, and answers what the client still waits for.
    async fn leave(&self, id: &str) {
        self.detach(id).await;
        let ((prompts, others), is_working) = {
            let mut open = self.connection.open.lock();
            open.positions.remove(id);
            (open.take_session(id), open.working.remove(id))
        };
        let stopped = Outcome::result(&json!({"stopReason": "cancelled"}));
        // V2-28
        if is_working {
            let line = state_line(id, "idle", Some(&stopped));
            if self.connection.outbox.send(line).await.is_err() {
                return;
            }
        }
        let error = Outcome::error(&ErrorObject::cancelled());
        // V2-15: prompts that were not inserted are refused.
        let cancelled = if self.is_v2() { error.clone() } else { stopped };
        let prompts = prompts.iter().map(|id| (id, &cancelled));
        for (id, outcome) in prompts.chain(others.iter().map(|id| (id, &error))) {
            if self.connection.respond(id, outcome).await.is_err() {
                return;
            }
        }
    }

    /// Takes a prompt. Its response comes with the end of its turn, from the journal.
    async fn prompt(&self, id: &Id, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        self.require(Role::Drive)?;
        let read = SessionParams::read(params);
        let session = self.session(read.session().as_deref())?;
        let params = params.ok_or_else(|| ErrorObject::invalid_params("there is no prompt"))?.to_owned();
        let named = read.meta().prompt.filter(|name| !name.is_empty() && name.len() <= PROMPT_ID);
        let number = self.prompts.fetch_add(1, Ordering::Relaxed);
        let prompt = named.unwrap_or_else(|| format!("{:x}-{number}", self.connection.id));
        let place = (session.id().to_owned(), prompt.clone());
        {
            let mut open = self.connection.open.lock();
            if open.prompts.len() >= OPEN {
                return Err(ErrorObject::internal("too many open requests"));
            }
            open.prompts.entry(place).or_default().push(id.clone());
        }
        let (reply, replied) = oneshot::channel();
        let by = self.identity().name().to_owned();
        let command =
            PromptCommand { connection: self.connection.id, by, prompt: prompt.clone(), params, reply };
        if let Err(error) = session.send(Command::Prompt(command)).await {
            self.connection.open.lock().take_prompts(session.id(), &prompt);
            return Err(error);
        }
        let connection = Arc::clone(&self.connection);
        tokio::spawn(async move {
            let is_shown = |seq| connection.open.lock().is_shown(session.id(), seq);
            let is_v2 = connection.is_v2.load(Ordering::Relaxed);
            // The response is what this client has seen already, else it is sent when that is
            // shown.
            let outcome = match replied.await {
                Ok(PromptReply::Outcome(Outcome::Result(_))) if is_v2 => {
                    Outcome::error(&ErrorObject::cancelled())
                }
                Ok(PromptReply::Outcome(outcome)) => outcome,
                Ok(PromptReply::Ended(end)) if is_v2 && is_shown(end.begun) => inserted(end.begun),
                Ok(PromptReply::Running(Some(begun))) if is_v2 && is_shown(begun) => inserted(begun),
                Ok(PromptReply::Ended(end)) if !is_v2 && is_shown(end.ended) => end.outcome,
                _ => return,
            };
            let _ = connection.end_prompt(session.id(), &prompt, &outcome).await;
        });
        Ok(())
    }

    /// Passes a request about a session on to its agent.
    async fn forward(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
        form: Form,
    ) -> Result<(), ErrorObject> {
        let Some(session) = SessionParams::read(params).session() else {
            return Err(ErrorObject::method_not_found(method));
        };
        // A fork would be a session that the journal does not have.
        if method == "session/fork" {
            return Err(ErrorObject::method_not_found(method));
        }
        let session = self.session(Some(&session))?;
        self.require(Role::Drive)?;
        let Some(params) = params.map(ToOwned::to_owned) else {
            return Err(ErrorObject::method_not_found(method));
        };
        {
            let mut open = self.connection.open.lock();
            if open.forwarded.len() >= OPEN {
                return Err(ErrorObject::internal("too many open requests"));
            }
            open.forwarded.insert(id.clone(), Forwarded { session: session.id().to_owned(), form });
        }
        let forward =
            Forward { connection: self.connection.id, id: id.clone(), method: method.to_owned(), params };
        let sent = session.send(Command::Forward(forward)).await;
        if sent.is_err() {
            self.connection.open.lock().forwarded.remove(id);
        }
        sent
    }

    async fn on_notification(&self, method: &str, params: Option<&RawValue>) -> Result<(), Gone> {
        if method == "$/cancel_request" {
            if let Some(id) = cancelled_id(params) {
                self.cancel_request(&id).await;
            }
            return Ok(());
        }
        if method.starts_with("$/") {
            // CANCEL-14: such as the keep-alive `$/ping` of some clients.
            return Ok(());
        }
        let session = SessionParams::read(params).session();
        let (Ok(session), true) = (self.session(session.as_deref()), self.identity().may(Role::Drive)) else {
            debug!(method, "a notification was ignored");
            return Ok(());
        };
        let command = match (method, params) {
            ("session/cancel", _) => Command::Cancel { connection: self.connection.id },
            (_, Some(params)) => Command::Notify { method: method.to_owned(), params: params.to_owned() },
            (_, None) => return Ok(()),
        };
        // A notification has no answer.
        let _ = session.send(command).await;
        Ok(())
    }

    /// Cancels a prompt or another request of this client.
    async fn cancel_request(&self, id: &Id) {
        let (session, command) = {
            let open = self.connection.open.lock();
            let prompt =
                open.prompts.iter().find(|(_, ids)| ids.contains(id)).map(|(place, _)| place.clone());
            match (prompt, open.forwarded.get(id)) {
                (Some((session, prompt)), _) => (session, Command::CancelPrompt { prompt }),
                (None, Some(forwarded)) => {
                    let (connection, id) = (self.connection.id, id.clone());
                    (forwarded.session.clone(), Command::CancelForward { connection, id })
                }
                (None, None) => return,
            }
        };
        if let Ok(session) = self.session(Some(&session)) {
            let _ = session.send(command).await;
        }
    }

    /// Takes the answer to a question.
    async fn on_response(&self, id: &Id, outcome: Outcome) -> Result<(), Gone> {
        let Id::Int(number) = id else { return Ok(()) };
        let asked = {
            let mut open = self.connection.open.lock();
            if let Some((_, reply)) = open.calls.remove(number) {
                let _ = reply.send(outcome);
                return Ok(());
            }
            open.asks.remove(number)
        };
        let Some((session, question)) = asked else { return Ok(()) };
        let Ok(session) = self.session(Some(&session)) else { return Ok(()) };
        let outcome = if self.is_v2() { v2::answer(outcome) } else { outcome };
        if session.is_guest() {
            let by = self.identity().clone();
            let _ = session.send(Command::Answer { question, by, outcome }).await;
            return Ok(());
        }
        let decided = session.questions.lock().answer(&question, self.identity(), outcome);
        if let Some((agent_id, decision)) = decided {
            let _ = session.send(Command::Decide(agent_id, decision)).await;
        }
        Ok(())
    }
}
