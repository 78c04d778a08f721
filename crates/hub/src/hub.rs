//! The state of a hub: its sessions, and an agent in reserve.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use attache_conn::rpc::ErrorObject;
use attache_journal::{Claim, Error, Journal, SessionInfo, SessionKey};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tracing::warn;

use crate::agent::AgentLink;
use crate::entry::Opened;
use crate::identity::Identity;
use crate::message::{self, with_session};
use crate::metrics::Metrics;
use crate::nodes::{Guest, Seat};
use crate::options::Options;
use crate::session::{Command, Context, History, Opening, Session, SessionRef, Task, place};

/// Sessions of one page of a list.
const PAGE: usize = 100;

type Cell = Arc<OnceCell<Arc<Session>>>;
type Reserve = (AgentLink, OwnedSemaphorePermit);

/// The state that all clients of a hub share.
pub(crate) struct Shared {
    pub(crate) cx: Context,
    pub(crate) sessions: Mutex<HashMap<SessionKey, Cell>>,
    /// Agents that are started and have no session.
    reserve: tokio::sync::Mutex<VecDeque<Reserve>>,
    /// Agents for the reserve are being started.
    is_warming: AtomicBool,
    /// The result of `initialize` of the last agent.
    initialized: Mutex<Option<Box<RawValue>>>,
    /// Held while a new session gets its id.
    naming: tokio::sync::Mutex<()>,
    connections: AtomicU64,
    /// Whether the hub is shut down.
    stop: watch::Sender<bool>,
    /// The number of sessions with a task.
    running: watch::Sender<usize>,
}

impl Shared {
    pub(crate) fn new(journal: Journal, options: Options) -> Shared {
        let agents = Arc::new(Semaphore::new(options.agents));
        let (options, metrics) = (Arc::new(options), Arc::new(Metrics::default()));
        let (stop, stopping) = watch::channel(false);
        Shared {
            cx: Context { options, journal, metrics, agents, stop: stopping },
            stop,
            running: watch::Sender::new(0),
            sessions: Mutex::default(),
            reserve: tokio::sync::Mutex::default(),
            is_warming: false.into(),
            initialized: Mutex::default(),
            naming: tokio::sync::Mutex::default(),
            // Entries name connections, so those of an earlier process must have other numbers.
            connections: AtomicU64::new(RandomState::new().build_hasher().finish()),
        }
    }

    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// The agent's answer to `initialize`. The first call starts an agent, which the next session
    /// gets.
    pub(crate) async fn initialize(
        self: &Arc<Self>,
        elicitation: bool,
    ) -> Result<Box<RawValue>, ErrorObject> {
        if let Some(known) = self.initialized.lock().clone() {
            return Ok(known);
        }
        let mut reserve = self.reserve.lock().await;
        if let Some((agent, _)) = reserve.front() {
            return Ok(agent.initialized.clone());
        }
        let (agent, place) = self.start(elicitation).await?;
        let initialized = agent.initialized.clone();
        reserve.push_back((agent, place));
        drop(reserve);
        self.expire_reserve();
        Ok(initialized)
    }

    async fn start(&self, elicitation: bool) -> Result<Reserve, ErrorObject> {
        let place = place(&self.cx.agents)?;
        let agent = AgentLink::start(&self.cx.options, elicitation).await?;
        self.cx.metrics.agents_started.add(1);
        *self.initialized.lock() = Some(agent.initialized.clone());
        Ok((agent, place))
    }

    /// Ends the agents in reserve after the idle time, but for those that are kept warm.
    fn expire_reserve(self: &Arc<Self>) {
        let hub = Arc::downgrade(self);
        let idle = self.cx.options.idle;
        tokio::spawn(async move {
            tokio::time::sleep(idle).await;
            let Some(hub) = hub.upgrade() else { return };
            let mut reserve = hub.reserve.lock().await;
            let kept = hub.cx.options.warm.min(reserve.len());
            let ended = reserve.split_off(kept);
            drop(reserve);
            for (agent, _place) in ended {
                agent.shut_down().await;
            }
        });
    }

    /// Starts agents until as many are in reserve as are to be kept warm.
    pub(crate) fn warm_up(self: &Arc<Self>, elicitation: bool) {
        if self.cx.options.warm == 0 || self.is_warming.swap(true, Ordering::AcqRel) {
            return;
        }
        let hub = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(hub) = hub.upgrade() {
                let mut reserve = hub.reserve.lock().await;
                if reserve.len() >= hub.cx.options.warm {
                    // Under the lock: who takes an agent from now on warms up again.
                    hub.is_warming.store(false, Ordering::Release);
                    return;
                }
                match hub.start(elicitation).await {
                    Ok(started) => reserve.push_back(started),
                    Err(error) => {
                        warn!(error = error.message, "no agent is kept warm");
                        hub.is_warming.store(false, Ordering::Release);
                        return;
                    }
                }
            }
        });
    }

    /// Passes a request that is about no session on to the agent in reserve.
    pub(crate) async fn call_agent(
        self: &Arc<Self>,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let mut reserve = self.reserve.lock().await;
        let mut agent = match reserve.pop_front() {
            Some(agent) => agent,
            None => self.start(false).await?,
        };
        let called = agent.0.call(method, params).await;
        if !agent.0.is_gone {
            reserve.push_front(agent);
        }
        drop(reserve);
        self.expire_reserve();
        called
    }

    /// Creates a session with an agent of its own. Returns the result for the client.
    pub(crate) async fn create(
        self: &Arc<Self>,
        identity: &Identity,
        params: &RawValue,
        elicitation: bool,
    ) -> Result<(SessionRef, Box<RawValue>), ErrorObject> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            session_id: String,
        }
        let (agent, place, result) = loop {
            let (mut agent, place, was_waiting) = self.take_agent(elicitation).await?;
            match agent.call("session/new", params).await {
                Ok(result) => break (agent, place, result),
                // It may have ended while it waited.
                Err(_) if agent.is_gone && was_waiting => {}
                Err(error) if agent.is_gone => return Err(error),
                Err(error) => {
                    // It may need a login, which goes to this agent.
                    self.reserve.lock().await.push_front((agent, place));
                    self.expire_reserve();
                    return Err(error);
                }
            }
        };
        self.warm_up(elicitation);
        let Ok(Created { session_id }) = serde_json::from_str(result.get()) else {
            return Err(ErrorObject::internal("the agent created a session without an id"));
        };
        let naming = self.naming.lock().await;
        let key = self.free_key(identity, &session_id).await?;
        let result = match key.session() == session_id {
            true => result,
            false => with_session(&result, key.session()),
        };
        let claim = Claim::new(self.cx.options.node.clone(), self.cx.options.lease);
        let lease = self.cx.journal.claim(&key, &claim).await.map_err(journal_error)?;
        let opened = Opened {
            agent_session: session_id,
            params: params.to_owned(),
            result: result.clone(),
            by: identity.name().to_owned(),
            epoch: lease.epoch().get(),
            elicitation,
        };
        let history = History { opened: Some(opened), ..History::default() };
        let opening = Opening { lease, history, is_new: true, agent: Some((agent, place)) };
        let (session, task) = Task::open(self.cx.clone(), opening).await.map_err(journal_error)?;
        drop(naming);
        let cell: Cell = Arc::new(OnceCell::new_with(Some(Arc::clone(&session))));
        self.sessions.lock().insert(key.clone(), Arc::clone(&cell));
        let used = session.enter().ok_or_else(|| ErrorObject::internal("the session has ended"))?;
        self.run(key, &cell, Seat::Owner(Box::new(task)));
        Ok((used, result))
    }

    /// An agent in reserve if one fits, or a new one, and whether it was in reserve.
    async fn take_agent(
        &self,
        elicitation: bool,
    ) -> Result<(AgentLink, OwnedSemaphorePermit, bool), ErrorObject> {
        let mut reserve = self.reserve.lock().await;
        let fits = |(agent, _): &Reserve| agent.elicitation == elicitation;
        if let Some((agent, place)) = reserve.iter().position(fits).and_then(|at| reserve.remove(at)) {
            return Ok((agent, place, true));
        }
        // One that does not fit may hold the last place.
        let unfit = reserve.pop_front();
        drop(reserve);
        if let Some((agent, place)) = unfit {
            agent.shut_down().await;
            drop(place);
        }
        let (agent, place) = self.start(elicitation).await?;
        Ok((agent, place, false))
    }

    /// A name for a session: the agent's id, or one like it if that is taken.
    async fn free_key(&self, identity: &Identity, id: &str) -> Result<SessionKey, ErrorObject> {
        let mut name = id.to_owned();
        let mut number = 1;
        loop {
            let key = SessionKey::new(identity.tenant_name(), &name).map_err(journal_error)?;
            match self.cx.journal.info(&key).await {
                Err(Error::Unknown) => return Ok(key),
                Err(error) => return Err(journal_error(error)),
                Ok(_) => {
                    number += 1;
                    name = format!("{id}~{number}");
                }
            }
        }
    }

    /// Runs a session's task, and forgets the session when it ends.
    fn run(self: &Arc<Self>, key: SessionKey, cell: &Cell, seat: Seat) {
        let (hub, cell) = (Arc::downgrade(self), Arc::downgrade(cell));
        let running = RunningTask::count(&self.running);
        tokio::spawn(async move {
            let mut seat = Some(seat);
            while let Some(present) = seat {
                seat = present.run().await;
            }
            drop(running);
            if let (Some(hub), Some(cell)) = (hub.upgrade(), cell.upgrade()) {
                hub.remove(&key, &cell);
            }
        });
    }

    /// Ends all sessions in memory. The agents in reserve may exit by themselves meanwhile.
    pub(crate) async fn shut_down(&self) {
        self.stop.send_replace(true);
        if let Ok(mut reserve) = self.reserve.try_lock() {
            for (agent, _place) in reserve.drain(..) {
                tokio::spawn(agent.shut_down());
            }
        }
        // The sender lives as long as this hub, so this ends without an error.
        let _ = self.running.subscribe().wait_for(|count| *count == 0).await;
    }

    fn remove(&self, key: &SessionKey, cell: &Cell) {
        let mut sessions = self.sessions.lock();
        if sessions.get(key).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            sessions.remove(key);
        }
    }

    /// A session of this identity's tenant, from memory or from the journal.
    pub(crate) async fn open(
        self: &Arc<Self>,
        identity: &Identity,
        id: &str,
    ) -> Result<SessionRef, ErrorObject> {
        let key = SessionKey::new(identity.tenant_name(), id).map_err(|_| not_found(id))?;
        self.open_key(&key).await.map_err(|error| match error {
            Error::Unknown => not_found(id),
            error => journal_error(error),
        })
    }

    /// A session, from memory or from the journal.
    pub(crate) async fn open_key(self: &Arc<Self>, key: &SessionKey) -> Result<SessionRef, Error> {
        loop {
            let cell = Arc::clone(self.sessions.lock().entry(key.clone()).or_default());
            let opened = cell.get_or_try_init(|| self.restore(key, &cell)).await;
            match opened {
                Ok(session) => {
                    if let Some(used) = session.enter() {
                        return Ok(used);
                    }
                    self.remove(key, &cell);
                }
                Err(error) => {
                    self.remove(key, &cell);
                    return Err(error);
                }
            }
        }
    }

    /// A session in memory.
    pub(crate) fn known(&self, key: &SessionKey) -> Option<SessionRef> {
        let cell = self.sessions.lock().get(key).map(Arc::clone)?;
        cell.get()?.enter()
    }

    /// Takes up a stored session.
    async fn restore(self: &Arc<Self>, key: &SessionKey, cell: &Cell) -> Result<Arc<Session>, Error> {
        let claim = Claim::new(self.cx.options.node.clone(), self.cx.options.lease).existing();
        let is_shared = self.cx.options.network.is_some();
        if is_shared && !self.is_reachable(key).await? {
            return self.visit(key, cell).await;
        }
        let lease = match self.cx.journal.claim(key, &claim).await {
            Err(Error::Held { .. }) if is_shared => return self.visit(key, cell).await,
            claimed => claimed?,
        };
        let history = History::read(&self.cx.journal, key).await?;
        let opening = Opening { lease, history, is_new: false, agent: None };
        let (session, task) = Task::open(self.cx.clone(), opening).await?;
        self.run(key.clone(), cell, Seat::Owner(Box::new(task)));
        Ok(session)
    }

    /// Shows a session of another hub.
    async fn visit(self: &Arc<Self>, key: &SessionKey, cell: &Cell) -> Result<Arc<Session>, Error> {
        let (session, guest) = Guest::open(self.cx.clone(), key).await?;
        self.run(key.clone(), cell, Seat::Guest(guest));
        Ok(session)
    }

    /// Whether the files of a session are on this machine.
    async fn is_reachable(&self, key: &SessionKey) -> Result<bool, Error> {
        let history = History::read_head(&self.cx.journal, key).await?;
        let directory = history.opened.map(|opened| opened.cwd()).unwrap_or_default();
        Ok((self.cx.options.reachable)(Path::new(&directory)))
    }

    /// Ends the agent of a session.
    pub(crate) async fn close(&self, session: &Session) -> Result<(), ErrorObject> {
        let (reply, closed) = oneshot::channel();
        session.send(Command::Close(reply)).await?;
        closed.await.map_err(|_| ErrorObject::internal("the session has failed"))
    }

    /// Removes a closed session from the journal. Clients that follow it get the error of an
    /// unknown session.
    pub(crate) async fn forget(&self, session: &Session) -> Result<(), ErrorObject> {
        session.close();
        self.sessions.lock().remove(&session.key);
        self.cx.journal.forget(&session.key).await.map_err(journal_error)
    }

    /// A page of the sessions of a tenant, those in memory first.
    pub(crate) async fn list(
        &self,
        identity: &Identity,
        params: Option<&RawValue>,
    ) -> Result<Value, ErrorObject> {
        #[derive(Default, Deserialize)]
        struct Params {
            cwd: Option<String>,
            cursor: Option<String>,
        }
        let params: Params = match params.map(|params| serde_json::from_str(params.get())) {
            None => Params::default(),
            Some(params) => params.map_err(|error| ErrorObject::invalid_params(error.to_string()))?,
        };
        let tenant = identity.tenant_name();
        let live: Vec<Arc<Session>> = {
            let sessions = self.sessions.lock();
            let live = sessions.values().filter_map(|cell| cell.get());
            live.filter(|session| session.key.tenant() == tenant).map(Arc::clone).collect()
        };
        let mut listed = Vec::new();
        if params.cursor.is_none() {
            for session in &live {
                let Ok(info) = self.cx.journal.info(&session.key).await else { continue };
                listed.push(describe_live(session, &info));
            }
            let updated = |value: &Value| value.get("updatedAt").map(Value::to_string);
            listed.sort_by_key(|value| std::cmp::Reverse(updated(value)));
        }
        let stored =
            self.cx.journal.list(tenant, params.cursor.as_deref(), PAGE).await.map_err(journal_error)?;
        for info in &stored {
            if live.iter().any(|session| session.key == info.key) {
                continue;
            }
            match History::read_head(&self.cx.journal, &info.key).await {
                Ok(history) => listed.extend(describe_stored(info, &history)),
                Err(error) => warn!(session = ?info.key, %error, "a session cannot be read"),
            }
        }
        if let Some(cwd) = params.cwd {
            listed.retain(|session| session.get("cwd").is_some_and(|value| *value == *cwd));
        }
        let mut result = json!({"sessions": listed});
        if let (Some(last), true) = (stored.last(), stored.len() == PAGE) {
            result["nextCursor"] = json!(last.key.session());
        }
        Ok(result)
    }
}

pub(crate) fn describe_live(session: &Session, info: &SessionInfo) -> Value {
    let summary = session.summary.lock().clone();
    let state = if summary.is_busy { "running" } else { "idle" };
    let meta = json!({
        "state": state,
        "clients": session.users(),
        "queued": summary.queued,
        "questions": session.questions.lock().len(),
        "at": at(session.epoch().get(), info.last.get()),
    });
    describe(info, &session.opened, summary.title, meta)
}

fn describe_stored(info: &SessionInfo, history: &History) -> Option<Value> {
    let meta = json!({"state": "stored", "clients": 0, "at": at(info.epoch.get(), info.last.get())});
    Some(describe(info, history.opened.as_ref()?, history.title.clone(), meta))
}

fn describe(info: &SessionInfo, opened: &Opened, title: Option<String>, meta: Value) -> Value {
    let updated = std::time::UNIX_EPOCH + std::time::Duration::from_millis(info.updated);
    let mut described = json!({
        "sessionId": info.key.session(),
        "cwd": opened.cwd(),
        "updatedAt": attache_host::timestamp(updated),
        "_meta": {"attache": meta},
    });
    if let Some(title) = title {
        described["title"] = json!(title);
    }
    described
}

/// A position in a session's journal, as clients see it.
pub(crate) fn at(epoch: u64, seq: u64) -> String {
    format!("{epoch}.{seq}")
}

/// The answer about a session that does not exist, or belongs to another tenant.
/// A counted task of a session. A task that panics is not counted any more either, or the hub would
/// wait for it at its end.
struct RunningTask(watch::Sender<usize>);

impl RunningTask {
    fn count(running: &watch::Sender<usize>) -> RunningTask {
        running.send_modify(|count| *count += 1);
        RunningTask(running.clone())
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

pub(crate) fn not_found(id: &str) -> ErrorObject {
    ErrorObject::resource_not_found("session not found").with_data(&json!({"sessionId": id}))
}

/// The answer when the journal fails. Its details stay here.
pub(crate) fn journal_error(error: Error) -> ErrorObject {
    warn!(%error, "the journal failed");
    ErrorObject::internal(match error {
        Error::Held { .. } => "the session is in use by another hub",
        Error::Full => "the hub's disk is full",
        Error::InvalidKey { .. } => "the id of the session cannot be stored",
        _ => "the hub's journal failed",
    })
}

/// Adds `_meta.attache` to the result of a request.
pub(crate) fn with_meta(result: &RawValue, meta: &Value) -> Box<RawValue> {
    let mut result: Value = serde_json::from_str(result.get()).unwrap_or(Value::Null);
    if !result.is_object() {
        result = json!({});
    }
    if !result["_meta"].is_object() {
        result["_meta"] = json!({});
    }
    result["_meta"]["attache"] = meta.clone();
    message::raw(&result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_not_waited_for() {
        let running = watch::Sender::new(0);
        let task = RunningTask::count(&running);
        assert_eq!(*running.borrow(), 1);
        let ended = tokio::spawn(async move {
            let _task = task;
            panic!("a fault of the task");
        });
        assert!(ended.await.is_err_and(|error| error.is_panic()));
        assert_eq!(*running.borrow(), 0);
    }
}
