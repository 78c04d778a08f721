//! The session table: which sessions are open, which turn runs in each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_conn::CancelToken;
use attache_wire::v1::{SessionId, SessionUpdate};
use tokio::sync::Notify;

use super::session::{AnySession, Offers};

/// One open session.
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) session: Arc<dyn AnySession>,
    state: Mutex<State>,
    /// Told whenever a turn ends.
    idle: Notify,
}

#[derive(Default)]
pub(super) struct State {
    /// The running turn. Its token is registered by dispatch, before anything waits.
    running: Option<CancelToken>,
    pub(super) offers: Offers,
}

impl Entry {
    pub(super) fn new(id: SessionId, session: Arc<dyn AnySession>, offers: Offers) -> Arc<Self> {
        let state = Mutex::new(State { running: None, offers });
        Arc::new(Entry { id, session, state, idle: Notify::new() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Registers a turn. PROMPT-13: only one runs at a time.
    pub(super) fn begin(self: &Arc<Self>, token: CancelToken) -> Option<Running> {
        let mut state = self.state();
        if state.running.is_some() {
            return None;
        }
        state.running = Some(token);
        Some(Running { entry: self.clone(), finished: false })
    }

    /// CANCEL-10, CANCEL-11: cancels the turn that runs now, in this session, and nothing else.
    pub(super) fn cancel(&self) {
        let running = self.state().running.clone();
        if let Some(token) = running {
            token.cancel();
        }
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

/// A turn's place in its session; gives it up when dropped, also when the handler panics.
pub(super) struct Running {
    entry: Arc<Entry>,
    finished: bool,
}

impl Running {
    /// Gives the place up and answers, as one step: whoever sees the place free also finds the answer queued, so a
    /// `session/close` that waits for the turn is answered behind it (SESS-27), and a client that prompts again at
    /// once is not refused.
    pub(super) fn finish(mut self, answer: impl FnOnce()) {
        self.finished = true;
        let mut state = self.entry.state();
        state.running = None;
        answer();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `finish` the place may already belong to the next turn.
        if !self.finished {
            self.entry.state().running = None;
        }
        self.entry.idle.notify_waiters();
    }
}

/// All open sessions of one connection.
#[derive(Default)]
pub(super) struct Table {
    open: Mutex<HashMap<SessionId, Arc<Entry>>>,
}

impl Table {
    pub(super) fn get(&self, id: &str) -> Option<Arc<Entry>> {
        lock(&self.open).get(id).cloned()
    }

    /// Puts a session in; gives back one that had the same id.
    pub(super) fn insert(&self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        lock(&self.open).insert(entry.id.clone(), entry)
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Entry>> {
        lock(&self.open).remove(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        lock(&self.open).values().cloned().collect()
    }
}

/// Updates that were sent before the client can know the session's id: they are held back until the answer that
/// names it is written (SESS-31).
#[derive(Default)]
pub(super) struct Gate(Mutex<Option<Vec<SessionUpdate>>>);

impl Gate {
    /// A gate that holds updates back.
    pub(super) fn shut() -> Arc<Self> {
        Arc::new(Gate(Mutex::new(Some(Vec::new()))))
    }

    /// A gate that never held anything back.
    pub(super) fn open() -> Arc<Self> {
        Arc::new(Gate::default())
    }

    /// Keeps an update if the gate is shut, or gives it back to be sent.
    pub(super) fn hold(&self, update: SessionUpdate) -> Option<SessionUpdate> {
        match lock(&self.0).as_mut() {
            Some(held) => {
                held.push(update);
                None
            }
            None => Some(update),
        }
    }

    /// Opens the gate and sends what was held, in order, before anything else can pass.
    pub(super) fn release(&self, mut send: impl FnMut(SessionUpdate)) {
        let mut gate = lock(&self.0);
        for update in gate.take().unwrap_or_default() {
            send(update);
        }
    }
}

/// A session id that no other session has (SESS-03), in this process or another.
pub(super) fn fresh_id() -> SessionId {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // `RandomState` draws its keys from the system's randomness.
    let random = RandomState::new().hash_one((count, std::process::id()));
    SessionId::from(format!("sess-{random:016x}{count:x}"))
}

/// A poisoned lock means that a handler panicked while it held it; the tables behind our locks are never left
/// half-changed, so the connection goes on.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
