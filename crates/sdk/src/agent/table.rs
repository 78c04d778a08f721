//! The session table: which sessions are open, which turn runs in each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
    /// Told whenever a turn ends.
    idle: Notify,
    /// From now on nothing of the session is sent any more.
    pub(super) over: AtomicBool,
    pub(super) span: tracing::Span,
}

pub(super) struct State {
    /// The running turn, or one that waits for a cancelled one to end. Its token is registered by dispatch, before anything
    /// waits.
    running: Option<CancelToken>,
    /// How many turns have begun, and how many of them are over; they end in the order in which they began.
    begun: u64,
    ended: u64,
    /// No turn may begin any more.
    shut: bool,
    /// Most sessions have none.
    settings: Option<Box<Settings>>,
    /// Raised when the latest change of modes and options is over.
    changed: Option<CancelToken>,
}

impl State {
    /// A turn is over. Its place may already belong to the next.
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

/// Why a turn may not begin.
pub(super) enum BeginError {
    /// Another one runs, and nobody has cancelled it.
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

    /// Registers a turn. PROMPT-13: only one runs at a time. CANCEL-12: one that was cancelled and has not ended yet is no
    /// reason to refuse the next; that waits for it ([`TurnSlot::wait_turn`]). Clients do not wait when their user stops something
    /// and goes on at once.
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

    /// CANCEL-10, CANCEL-11: cancels the turn that runs now, in this session, and nothing else.
    pub(super) fn cancel(&self) {
        let running = self.state().running.clone();
        if let Some(token) = running {
            token.cancel();
        }
    }

    /// Cancels what runs and lets nothing begin.
    pub(super) fn shut(&self) {
        self.state().shut = true;
        self.cancel();
    }

    /// A place in the line of changes to modes and options. Dispatch takes it, so that they happen in the order of the wire
    /// although each is a task of its own.
    pub(super) fn enqueue_change(&self) -> QueuePosition {
        let done = CancelToken::new();
        let before = self.state().changed.replace(done.clone());
        QueuePosition { before, done }
    }

    /// What a turn waits for, so that it sees the changes that were asked for before it.
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

/// A turn's place in its session; gives it up when dropped.
pub(super) struct TurnSlot {
    entry: Arc<SessionEntry>,
    /// Which turn of the session it is, counted from 1.
    number: u64,
    finished: bool,
}

impl TurnSlot {
    pub(super) fn entry(&self) -> &Arc<SessionEntry> {
        &self.entry
    }

    /// Waits until the turns before this one are over, and answered.
    pub(super) async fn wait_turn(&self) {
        loop {
            let notified = self.entry.idle.notified();
            if self.entry.state().ended + 1 >= self.number {
                return;
            }
            notified.await;
        }
    }

    /// Gives the place up and answers, as one step: whoever sees the place free also finds the answer queued, so a
    /// `session/close` that waits for the turn is answered behind it (SESS-27), and a client that prompts again at
    /// once is not refused.
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

/// A place in a line; whoever is behind it comes when it is dropped.
pub(super) struct QueuePosition {
    before: Option<CancelToken>,
    done: CancelToken,
}

impl QueuePosition {
    /// Waits for one's turn.
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

/// All open sessions of one connection. Clients choose the ids that they load, so ids are hashed with random keys.
#[derive(Default)]
pub(super) struct SessionTable(Mutex<HashMap<SessionId, Arc<SessionEntry>>>);

impl SessionTable {
    pub(super) fn get(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        lock(&self.0).get(id).cloned()
    }

    /// Adds a session unless one of the same id is open.
    pub(super) fn add(&self, entry: &Arc<SessionEntry>) -> bool {
        match lock(&self.0).entry(entry.id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(entry.clone());
                true
            }
        }
    }

    /// Adds a session and returns an open one of the same id.
    pub(super) fn replace(&self, entry: &Arc<SessionEntry>) -> Option<Arc<SessionEntry>> {
        lock(&self.0).insert(entry.id.clone(), entry.clone())
    }

    pub(super) fn remove(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        lock(&self.0).remove(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.0).values().cloned().collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.0).drain().map(|(_, entry)| entry).collect()
    }
}
