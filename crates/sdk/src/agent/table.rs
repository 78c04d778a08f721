//! The open sessions and their turns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use attache_conn::CancelToken;
use attache_wire::v1::SessionId;
use tokio::sync::Notify;

use super::session::{DynSession, Settings};
use crate::task::lock;

/// One open session.
pub(super) struct SessionEntry {
    pub(super) id: SessionId,
    pub(super) session: Box<dyn DynSession>,
    state: Mutex<State>,
    /// Notified whenever a turn ends.
    idle: Notify,
    /// Set when no update of the session may be sent any more.
    pub(super) over: AtomicBool,
    pub(super) span: tracing::Span,
}

pub(super) struct State {
    /// The token of the running turn, or of one that waits for a cancelled one to end. Registered by dispatch.
    running: Option<CancelToken>,
    /// Numbers of started and ended turns; turns end in the order of their start.
    begun: u64,
    ended: u64,
    /// No turn may start any more.
    shut: bool,
    /// Most sessions have none.
    settings: Option<Box<Settings>>,
    /// Raised when the latest change of modes and options is over.
    changed: Option<CancelToken>,
}

impl State {
    /// Ends a turn. The next one may be registered already.
    fn end(&mut self, number: u64) {
        self.ended = self.ended.max(number);
        if self.begun == number {
            self.running = None;
        }
    }

    pub(super) fn settings(&mut self) -> &mut Settings {
        self.settings.get_or_insert_default()
    }
}

/// The reason why a turn cannot start.
pub(super) enum BeginError {
    /// Another turn runs and is not cancelled.
    Busy,
    /// The session is being closed.
    Shut,
}

impl SessionEntry {
    pub(super) fn new(
        id: SessionId,
        session: Box<dyn DynSession>,
        settings: Option<Box<Settings>>,
    ) -> Arc<Self> {
        let state = State { running: None, begun: 0, ended: 0, shut: false, settings, changed: None };
        let state = Mutex::new(state);
        let span = tracing::debug_span!("session", id = %id);
        Arc::new(SessionEntry { id, session, state, idle: Notify::new(), over: AtomicBool::new(false), span })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Registers a turn. PROMPT-13: one runs at a time. CANCEL-12: the next turn waits for a cancelled one that has not ended
    /// ([`TurnSlot::wait_turn`]), because clients do not wait after a cancel.
    pub(super) fn begin(self: &Arc<Self>, token: CancelToken) -> Result<TurnSlot, BeginError> {
        let mut state = self.state();
        if state.shut {
            return Err(BeginError::Shut);
        }
        if state.running.as_ref().is_some_and(|running| !running.is_cancelled()) {
            return Err(BeginError::Busy);
        }
        state.running = Some(token);
        state.begun += 1;
        Ok(TurnSlot { entry: self.clone(), number: state.begun, finished: false })
    }

    /// CANCEL-10, CANCEL-11: cancels the running turn of this session only.
    pub(super) fn cancel(&self) {
        let running = self.state().running.clone();
        if let Some(token) = running {
            token.cancel();
        }
    }

    /// Cancels the running turn and starts no more.
    pub(super) fn shut(&self) {
        self.state().shut = true;
        self.cancel();
    }

    /// Enqueues a change of modes or options. Called by dispatch, so that changes happen in wire order although each has its own
    /// task.
    pub(super) fn enqueue_change(&self) -> QueuePosition {
        let done = CancelToken::new();
        let before = self.state().changed.replace(done.clone());
        QueuePosition { before, done }
    }

    /// The last change, which a turn waits for.
    pub(super) fn last_change(&self) -> Option<CancelToken> {
        self.state().changed.clone().filter(|changed| !changed.is_cancelled())
    }

    /// Waits until no turn runs.
    pub(super) async fn until_idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.state().running.is_none() {
                return;
            }
            notified.await;
        }
    }
}

/// The registration of a turn, which ends when dropped.
pub(super) struct TurnSlot {
    entry: Arc<SessionEntry>,
    /// The number of the turn, counted from 1.
    number: u64,
    finished: bool,
}

impl TurnSlot {
    pub(super) fn entry(&self) -> &Arc<SessionEntry> {
        &self.entry
    }

    /// Waits until earlier turns have ended and are answered.
    pub(super) async fn wait_turn(&self) {
        loop {
            let notified = self.entry.idle.notified();
            if self.entry.state().ended + 1 >= self.number {
                return;
            }
            notified.await;
        }
    }

    /// Ends the turn and responds in one step, so that `session/close` is answered after the turn (SESS-27) and a client that
    /// prompts again at once is not refused.
    pub(super) fn finish(mut self, answer: impl FnOnce()) {
        self.finished = true;
        let mut state = self.entry.state();
        state.end(self.number);
        answer();
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        if !self.finished {
            self.entry.state().end(self.number);
        }
        self.entry.idle.notify_waiters();
    }
}

/// A position in a queue; dropping it lets the next one continue.
pub(super) struct QueuePosition {
    before: Option<CancelToken>,
    done: CancelToken,
}

impl QueuePosition {
    /// Waits for the changes before.
    pub(super) async fn wait_turn(&self) {
        if let Some(before) = &self.before {
            before.cancelled().await;
        }
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        self.done.cancel();
    }
}

/// All open sessions of one connection.
#[derive(Default)]
pub(super) struct SessionTable {
    open: Mutex<HashMap<HashedId, Arc<SessionEntry>, BuildHasherDefault<StoredHash>>>,
    /// Clients choose the ids that they load, so ids are hashed with random keys.
    keys: RandomState,
}

/// An id with its hash, so that a table that grows does not hash every id again.
#[derive(PartialEq, Eq)]
struct HashedId {
    hash: u64,
    id: SessionId,
}

impl Hash for HashedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Returns the stored hash of a [`HashedId`].
#[derive(Default)]
struct StoredHash(u64);

impl Hasher for StoredHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl SessionTable {
    fn key(&self, id: &SessionId) -> HashedId {
        HashedId { hash: self.keys.hash_one(id.as_str()), id: id.clone() }
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        lock(&self.open).get(&self.key(id)).cloned()
    }

    /// Adds a session unless one of the same id is open.
    pub(super) fn add(&self, entry: &Arc<SessionEntry>) -> bool {
        match lock(&self.open).entry(self.key(&entry.id)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(entry.clone());
                true
            }
        }
    }

    /// Adds a session and returns an open one of the same id.
    pub(super) fn replace(&self, entry: &Arc<SessionEntry>) -> Option<Arc<SessionEntry>> {
        lock(&self.open).insert(self.key(&entry.id), entry.clone())
    }

    pub(super) fn remove(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        lock(&self.open).remove(&self.key(id))
    }

    pub(super) fn all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.open).values().cloned().collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.open).drain().map(|(_, entry)| entry).collect()
    }
}
