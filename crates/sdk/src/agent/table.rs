//! The open sessions and their turns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use attache_conn::CancelToken;
use attache_wire::v1::SessionId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::client::SharedIds;
use super::session::{DynSession, Settings};
use super::shared::SessionShared;
use super::steering::{Offer, PendingPrompt};
use crate::task::lock;

/// One open session.
pub(super) struct SessionEntry {
    pub(super) id: SessionId,
    pub(super) ids: SharedIds,
    pub(super) session: Box<dyn DynSession>,
    state: Mutex<State>,
    /// Notified whenever a turn ends.
    idle: Notify,
    /// Created by the first use, because there may be many sessions that have no turn.
    shared: OnceLock<Arc<SessionShared>>,
    pub(super) span: tracing::Span,
}

pub(super) struct State {
    /// The turns that have not ended, by number: the running one, then those that wait for it.
    /// Registered by dispatch.
    turns: Vec<QueuedTurn>,
    /// The number of the latest turn.
    begun: u64,
    /// No turn may start any more.
    shut: bool,
    /// Most sessions have none.
    settings: Option<Box<Settings>>,
    /// Raised when the latest change of modes and options is over.
    changed: Option<CancelToken>,
}

/// A turn that runs or waits.
struct QueuedTurn {
    number: u64,
    token: CancelToken,
    /// The prompt, if the running turn may take it.
    offer: Option<Arc<Offer>>,
}

impl State {
    /// Ends a turn. The next one may be registered already.
    fn end(&mut self, number: u64) {
        self.turns.retain(|turn| turn.number != number);
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
        ids: SharedIds,
    ) -> Arc<Self> {
        let state = State { turns: Vec::new(), begun: 0, shut: false, settings, changed: None };
        let state = Mutex::new(state);
        let span = tracing::debug_span!("session", id = %id);
        let (idle, shared) = (Notify::new(), OnceLock::new());
        Arc::new(SessionEntry { id, ids, session, state, idle, shared, span })
    }

    pub(super) fn shared(&self) -> &Arc<SessionShared> {
        self.shared.get_or_init(|| SessionShared::new(self.id.clone(), self.ids.clone()))
    }

    /// Whether no update of the session may be sent any more.
    pub(super) fn is_over(&self) -> bool {
        self.shared.get().is_some_and(|shared| shared.over.load(Ordering::SeqCst))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    // PROMPT-13, CANCEL-12
    /// Registers a turn. One runs at a time. The next turn waits for a cancelled one that has not
    /// ended ([`TurnSlot::wait_turn`]), because clients do not wait after a cancel. With `queue` it
    /// waits for any.
    pub(super) fn begin(
        self: &Arc<Self>,
        token: CancelToken,
        queue: bool,
        offer: Option<Arc<Offer>>,
    ) -> Result<TurnSlot, BeginError> {
        let is_offered = offer.is_some();
        let mut state = self.state();
        if state.shut {
            return Err(BeginError::Shut);
        }
        if !queue && state.turns.iter().any(|turn| !turn.token.is_cancelled()) {
            return Err(BeginError::Busy);
        }
        state.begun += 1;
        let number = state.begun;
        state.turns.push(QueuedTurn { number, token, offer });
        drop(state);
        if is_offered {
            self.shared().offered().notify_waiters();
        }
        Ok(TurnSlot { entry: self.clone(), number, finished: false })
    }

    /// Waits for a prompt that is offered to the running turn.
    pub(super) fn offered(&self) -> Notified<'_> {
        self.shared().offered().notified()
    }

    /// Takes the first prompt that waits for the turn of this number.
    pub(super) fn take_offer(&self, running: u64) -> Option<PendingPrompt> {
        let mut state = self.state();
        let waiting = |turn: &QueuedTurn| turn.number > running && !turn.token.is_cancelled();
        let at = state.turns.iter().position(waiting)?;
        let prompt = state.turns[at].offer.as_ref()?.take()?;
        state.turns.remove(at);
        Some(prompt)
    }

    /// Whether a turn runs or waits.
    pub(super) fn is_busy(&self) -> bool {
        !self.state().turns.is_empty()
    }

    /// Cancels the turns of this session only, the waiting ones first.
    // CANCEL-10, CANCEL-11, V2-15
    pub(super) fn cancel(&self) {
        let tokens: Vec<_> = self.state().turns.iter().map(|turn| turn.token.clone()).collect();
        tokens.iter().rev().for_each(CancelToken::cancel);
    }

    /// Cancels the running turn and the background work, and starts no more.
    pub(super) fn shut(&self) {
        self.state().shut = true;
        self.cancel();
        if let Some(shared) = self.shared.get() {
            shared.cancel_background();
        }
    }

    /// Enqueues a change of modes or options. Called by dispatch, so that changes happen in wire
    /// order although each has its own task.
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
            if self.state().turns.is_empty() {
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

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether no earlier turn is left.
    fn is_first(&self) -> bool {
        self.entry.state().turns.iter().all(|turn| turn.number >= self.number)
    }

    /// Waits until earlier turns have ended and are answered.
    pub(super) async fn wait_turn(&self) {
        loop {
            let notified = self.entry.idle.notified();
            if self.is_first() {
                return;
            }
            notified.await;
        }
    }

    // SESS-27
    /// Ends the turn and responds in one step, so that `session/close` is answered after the turn
    /// and a client that prompts again at once is not refused.
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
