//! The session table: which sessions are open, which turn runs in each.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use attache_conn::CancelToken;
use attache_wire::v1::SessionId;
use tokio::sync::Notify;

use super::session::{AnySession, Offers};

/// One open session.
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) session: Box<dyn AnySession>,
    state: Mutex<State>,
    /// Told whenever a turn ends.
    idle: Notify,
    /// From now on nothing of the session is sent any more.
    pub(super) over: AtomicBool,
}

pub(super) struct State {
    /// The running turn. Its token is registered by dispatch, before anything waits.
    running: Option<CancelToken>,
    /// No turn may begin any more.
    shut: bool,
    /// Most sessions have none.
    offers: Option<Box<Offers>>,
    /// Raised when the latest change of modes and options is over.
    changed: Option<CancelToken>,
}

impl State {
    pub(super) fn offers(&mut self) -> &mut Offers {
        self.offers.get_or_insert_default()
    }
}

/// Why a turn may not begin.
pub(super) enum Refusal {
    /// Another one runs.
    Busy,
    /// The session is being closed.
    Shut,
}

impl Entry {
    pub(super) fn new(id: SessionId, session: Box<dyn AnySession>, offers: Option<Box<Offers>>) -> Arc<Self> {
        let state = Mutex::new(State { running: None, shut: false, offers, changed: None });
        Arc::new(Entry { id, session, state, idle: Notify::new(), over: AtomicBool::new(false) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Registers a turn. PROMPT-13: only one runs at a time.
    pub(super) fn begin(self: &Arc<Self>, token: CancelToken) -> Result<Running, Refusal> {
        let mut state = self.state();
        if state.shut {
            return Err(Refusal::Shut);
        }
        if state.running.is_some() {
            return Err(Refusal::Busy);
        }
        state.running = Some(token);
        Ok(Running { entry: self.clone(), finished: false })
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
    pub(super) fn line_up(&self) -> Place {
        let done = CancelToken::new();
        let before = self.state().changed.replace(done.clone());
        Place { before, done }
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
pub(super) struct Running {
    entry: Arc<Entry>,
    finished: bool,
}

impl Running {
    pub(super) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

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

/// A place in a line; whoever is behind it comes when it is dropped.
pub(super) struct Place {
    before: Option<CancelToken>,
    done: CancelToken,
}

impl Place {
    /// Waits for one's turn.
    pub(super) async fn comes(&self) {
        if let Some(before) = &self.before {
            before.cancelled().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.done.cancel();
    }
}

/// All open sessions of one connection.
#[derive(Default)]
pub(super) struct Table {
    open: Mutex<HashSet<ById>>,
}

/// An entry that is found by its id.
struct ById(Arc<Entry>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        self.0.id.as_str()
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.as_str().hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

impl Table {
    pub(super) fn get(&self, id: &SessionId) -> Option<Arc<Entry>> {
        lock(&self.open).get(id.as_str()).map(|found| found.0.clone())
    }

    pub(super) fn contains(&self, id: &SessionId) -> bool {
        lock(&self.open).contains(id.as_str())
    }

    /// Puts a session in; gives back one that had the same id.
    pub(super) fn insert(&self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        lock(&self.open).replace(ById(entry)).map(|replaced| replaced.0)
    }

    pub(super) fn remove(&self, id: &SessionId) -> Option<Arc<Entry>> {
        lock(&self.open).take(id.as_str()).map(|removed| removed.0)
    }

    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        lock(&self.open).iter().map(|entry| entry.0.clone()).collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Entry>> {
        lock(&self.open).drain().map(|entry| entry.0).collect()
    }
}

/// A session id that no other session has (SESS-03).
pub(super) fn fresh_id() -> SessionId {
    fresh(b"sess-")
}

/// A name that nothing else has, in this process or another, and that cannot be guessed from those that were seen.
pub(super) fn fresh<T: for<'a> From<&'a str>>(prefix: &[u8; 5]) -> T {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Keys from the system's randomness, drawn once.
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = KEYS.get_or_init(RandomState::new).hash_one(count);
    // By hand: a session is made faster than its id would be formatted.
    let mut name = [0; 29];
    name[..5].copy_from_slice(prefix);
    for (place, digit) in name[5..].iter_mut().rev().enumerate() {
        let number = if place < 8 { count >> (4 * place) } else { random >> (4 * (place - 8)) };
        *digit = DIGITS[(number & 0xf) as usize];
    }
    T::from(std::str::from_utf8(&name).unwrap_or_default())
}

/// A poisoned lock means that a handler panicked while it held it; the tables behind our locks are never left
/// half-changed, so the connection goes on.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
