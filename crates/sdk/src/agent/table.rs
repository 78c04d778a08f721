//! The session table: which sessions are open, which turn runs in each.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use attache_conn::CancelToken;
use attache_wire::v1::SessionId;
use tokio::sync::Notify;

use super::session::{DynSession, Settings};

/// One open session.
pub(super) struct SessionEntry {
    pub(super) id: SessionId,
    pub(super) session: Box<dyn DynSession>,
    state: Mutex<State>,
    /// Told whenever a turn ends.
    idle: Notify,
    /// From now on nothing of the session is sent any more.
    pub(super) over: AtomicBool,
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
        Arc::new(SessionEntry { id, session, state, idle: Notify::new(), over: AtomicBool::new(false) })
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

/// All open sessions of one connection.
#[derive(Default)]
pub(super) struct SessionTable {
    open: Mutex<HashSet<ById, BuildHasherDefault<Remembered>>>,
    /// Clients name the sessions that they load, so ids are hashed with keys of our own.
    keys: RandomState,
}

/// An entry that is found by its id. It remembers the hash, so that a table that grows need not look at every session.
struct ById {
    hash: u64,
    entry: Arc<SessionEntry>,
}

/// What sessions are found by: those in the table, and the id that is looked for.
trait Named {
    fn hash(&self) -> u64;
    fn id(&self) -> &str;
}

impl Named for ById {
    fn hash(&self) -> u64 {
        self.hash
    }
    fn id(&self) -> &str {
        self.entry.id.as_str()
    }
}

impl Named for (u64, &str) {
    fn hash(&self) -> u64 {
        self.0
    }
    fn id(&self) -> &str {
        self.1
    }
}

impl<'a> Borrow<dyn Named + 'a> for ById {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl Hash for dyn Named + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Named::hash(self));
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        Named::hash(self) == Named::hash(other) && self.id() == other.id()
    }
}

impl Eq for dyn Named + '_ {}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        let (a, b): (&dyn Named, &dyn Named) = (self, other);
        a == b
    }
}

impl Eq for ById {}

/// Passes on a hash that was made before.
#[derive(Default)]
struct Remembered(u64);

impl Hasher for Remembered {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        // Nothing but hashes is ever hashed; anything else would only be slow.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl SessionTable {
    fn hash(&self, id: &SessionId) -> u64 {
        self.keys.hash_one(id.as_str())
    }

    fn by_id(&self, entry: Arc<SessionEntry>) -> ById {
        ById { hash: self.hash(&entry.id), entry }
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        let wanted = (self.hash(id), id.as_str());
        let wanted: &dyn Named = &wanted;
        lock(&self.open).get(wanted).map(|found| found.entry.clone())
    }

    /// Puts a session in, unless there is one with the same id.
    pub(super) fn add(&self, entry: &Arc<SessionEntry>) -> bool {
        let entry = self.by_id(entry.clone());
        lock(&self.open).insert(entry)
    }

    /// Puts a session in; gives back one that had the same id.
    pub(super) fn replace(&self, entry: &Arc<SessionEntry>) -> Option<Arc<SessionEntry>> {
        let entry = self.by_id(entry.clone());
        lock(&self.open).replace(entry).map(|replaced| replaced.entry)
    }

    pub(super) fn remove(&self, id: &SessionId) -> Option<Arc<SessionEntry>> {
        let wanted = (self.hash(id), id.as_str());
        let wanted: &dyn Named = &wanted;
        lock(&self.open).take(wanted).map(|removed| removed.entry)
    }

    pub(super) fn all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.open).iter().map(|found| found.entry.clone()).collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.open).drain().map(|found| found.entry).collect()
    }
}

/// A session id that no other session has (SESS-03).
pub(super) fn new_session_id() -> SessionId {
    unique_id(b"sess-")
}

/// A name that nothing else has, in this process or another, and that cannot be guessed from those that were seen.
pub(super) fn unique_id<T: for<'a> From<&'a str>>(prefix: &[u8; 5]) -> T {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Keys from the system's randomness, drawn once.
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = KEYS.get_or_init(RandomState::new).hash_one(count);
    // By hand: a session is made faster than its id would be formatted.
    let mut name = [0; 29];
    let (front, digits) = name.split_at_mut(5);
    front.copy_from_slice(prefix);
    let (high, low) = digits.split_at_mut(16);
    high.copy_from_slice(&hex(random));
    // The count goes round after four billion, but never within the life of a key.
    low.copy_from_slice(&hex(count)[8..]);
    T::from(std::str::from_utf8(&name).unwrap_or_default())
}

/// Sixteen digits, all at once: each byte of the two words holds a digit.
fn hex(number: u64) -> [u8; 16] {
    // Spreads eight digits over eight bytes.
    let spread = |half: u64| {
        let mut wide = half & 0xffff_ffff;
        wide = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
        wide = (wide | wide << 8) & 0x00ff_00ff_00ff_00ff;
        (wide | wide << 4) & 0x0f0f_0f0f_0f0f_0f0f
    };
    // Digits above nine are letters, which begin 39 places behind the one that would follow the nine.
    let letters = |digits: u64| {
        let above = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
        (digits + 0x3030_3030_3030_3030 + above * 39).to_be_bytes()
    };
    let mut text = [0; 16];
    let (high, low) = text.split_at_mut(8);
    high.copy_from_slice(&letters(spread(number >> 32)));
    low.copy_from_slice(&letters(spread(number)));
    text
}

/// A poisoned lock means that a handler panicked while it held it; the tables behind our locks are never left
/// half-changed, so the connection goes on.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_digits() {
        for number in [0, 9, 10, 0xdead_beef_0123_4567, u64::MAX, 0x9a9a_9a9a_9a9a_9a9a] {
            assert_eq!(std::str::from_utf8(&hex(number)), Ok(&*format!("{number:016x}")));
        }
    }
}
