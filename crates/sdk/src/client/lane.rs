//! A session's lane: everything that concerns one session, in the order of the wire.
//!
//! The reader pushes, the session's owner takes. There are two queues, and which one an event goes to is decided when it
//! arrives: while a turn runs (or a history is replayed) it belongs to that, otherwise to the stream of what happens
//! outside. The end of a turn is set in the same lane by the reader when the answer arrives, so no update of the turn
//! can be seen after it and none is lost before it.
//!
//! Invariants: nothing here waits while it holds the lock; no answer is sent under the lock; every queue is bounded
//! (the turn's by the connection's backlog, the other one by forgetting the oldest); a question is in the list
//! of open questions until it is answered.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use attache_conn::{Backlog, CallId, Closed, Peer};
use attache_wire::v1::{
    CancelNotification, PromptResponse, SessionId, SessionUpdate, StopReason, SubagentUpdate, ToolCallUpdate,
};
use attache_wire::{Notification, Patch};
use tokio::time::Instant;

use super::ask::PendingAnswer;
use super::event::Event;
use super::serve::TerminalTable;
use super::state::State;
use crate::{Error, Result};

/// How many events outside of turns are kept for somebody to read them.
const OUTSIDE_EVENTS: usize = 256;
/// How many bytes of them.
const OUTSIDE_BYTES: usize = 64 << 10;
/// How many subagents a session may have, and how long their ids may be.
const CHILDREN: usize = 1_024;
const CHILD_ID_BYTES: usize = 1 << 10;
/// What an event costs beside its text.
const EVENT_BYTES: usize = size_of::<Event>();

/// One session.
pub(crate) struct Lane {
    pub(crate) id: SessionId,
    /// ROOT-07: the working directory first, then the additional ones.
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) terminals: TerminalTable,
    pub(crate) peer: Peer,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    phase: Phase,
    /// The number of the latest turn. An answer that belongs to another one is late and touches nothing.
    turn: u64,
    call: Option<CallId>,
    cancelled_at: Option<Instant>,
    queue: VecDeque<Event>,
    /// The bytes of `queue`.
    queued: usize,
    /// The bytes of the events that were taken out last and are not all used yet, as far as they still count.
    taken: usize,
    end: Option<Result<Option<PromptResponse>>>,
    turn_waker: Option<Waker>,
    outside: VecDeque<(Event, usize)>,
    outside_bytes: usize,
    outside_waker: Option<Waker>,
    asks: Vec<Weak<PendingAnswer>>,
    state: State,
    children: HashMap<SessionId, Child>,
    closed: Option<Closed>,
}

/// A subagent's session, whose events come with ours.
#[derive(Default)]
struct Child {
    /// SUBA-03: whether it said that it can be cancelled.
    cancel: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No turn runs.
    #[default]
    Idle,
    /// A history is being replayed.
    Loading,
    /// A turn runs and somebody reads it.
    Running,
    /// A turn runs and nobody reads it any more; it was cancelled.
    Draining,
}

impl Lane {
    pub(crate) fn new(id: SessionId, roots: Arc<[PathBuf]>, peer: Peer) -> Arc<Self> {
        Arc::new(Lane {
            id,
            roots,
            terminals: TerminalTable::default(),
            peer,
            inner: Mutex::new(Inner::default()),
        })
    }

    /// The working directory.
    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state.
    pub(crate) fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.lock().state)
    }

    // What the reader does.

    /// An update arrived, for the session itself or for one of its subagents.
    pub(crate) fn update(&self, child: Option<&str>, update: SessionUpdate, bytes: usize) {
        let mut inner = self.lock();
        if let SessionUpdate::SubagentUpdate(update) = &update {
            inner.note_subagent(update);
        }
        let event = match child {
            None => inner.state.fold(update, bytes),
            Some(id) => inner.fold_child(id, update, bytes),
        };
        if let Some(event) = event {
            self.push(inner, event, bytes + EVENT_BYTES);
        }
    }

    /// A question arrived. CANCEL-03, PERM-08: in a turn that was cancelled it is answered at once.
    pub(crate) fn ask(&self, child: Option<SessionId>, slot: &Arc<PendingAnswer>, ask: Event, bytes: usize) {
        let mut inner = self.lock();
        if inner.cancelled_at.is_some() && inner.phase == Phase::Running {
            drop(inner);
            return slot.cancel();
        }
        inner.asks.retain(|slot| slot.upgrade().is_some_and(|slot| slot.is_open()));
        inner.asks.push(Arc::downgrade(slot));
        if let (None, Event::Permission(ask)) = (&child, &ask)
            && let Some(change) = inner.state.asked_about(ask.tool_call())
        {
            self.push(inner, Event::ToolCall(change), EVENT_BYTES);
            inner = self.lock();
        }
        let event = match child {
            Some(id) => Event::FromSubagent(id, Box::new(ask)),
            None => ask,
        };
        self.push(inner, event, bytes + EVENT_BYTES);
    }

    /// A question arrived that a handler answers. It is cancelled with the turn like any other.
    pub(crate) fn note_ask(&self, child: bool, slot: &Arc<PendingAnswer>, call: &ToolCallUpdate) {
        let mut inner = self.lock();
        if inner.cancelled_at.is_some() && inner.phase == Phase::Running {
            drop(inner);
            return slot.cancel();
        }
        inner.asks.retain(|slot| slot.upgrade().is_some_and(|slot| slot.is_open()));
        inner.asks.push(Arc::downgrade(slot));
        if let Some(change) = (!child).then(|| inner.state.asked_about(call)).flatten() {
            self.push(inner, Event::ToolCall(change), EVENT_BYTES);
        }
    }

    /// Something arrived that is no update.
    pub(crate) fn push_event(&self, event: Event) {
        self.push(self.lock(), event, EVENT_BYTES);
    }

    fn push(&self, mut inner: MutexGuard<'_, Inner>, event: Event, bytes: usize) {
        match inner.phase {
            Phase::Running | Phase::Loading => {
                inner.queue.push_back(event);
                inner.queued += bytes;
                // Counted under the lock, so that whoever takes the event never gives back more than was counted.
                self.backlog().add(bytes);
                let waker = inner.turn_waker.take();
                drop(inner);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Phase::Draining => {
                drop(inner);
                drop(event);
            }
            Phase::Idle => {
                let forgotten = inner.push_outside(event, bytes);
                let waker = inner.outside_waker.take();
                drop(inner);
                drop(forgotten);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }

    /// The answer of a turn, or of a load, arrived.
    pub(crate) fn end(&self, turn: u64, result: Result<Option<PromptResponse>>) {
        let mut inner = self.lock();
        if inner.turn != turn {
            return;
        }
        match inner.phase {
            Phase::Running | Phase::Loading => inner.end = Some(result),
            Phase::Draining => {}
            Phase::Idle => return,
        }
        inner.phase = Phase::Idle;
        inner.call = None;
        let waker = inner.turn_waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The connection is gone, or the session was let go. TERM-20: its terminals go with it.
    pub(crate) fn close(&self, closed: Option<&Closed>) {
        let mut inner = self.lock();
        if let Some(closed) = closed {
            inner.closed.get_or_insert_with(|| closed.clone());
        }
        let asks = inner.take_asks();
        let wakers = [inner.turn_waker.take(), inner.outside_waker.take()];
        drop(inner);
        asks.iter().for_each(|slot| slot.cancel());
        self.terminals.release_all();
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Makes room for a subagent. False if there are too many, or its id is too long to be kept.
    pub(crate) fn adopt_child(&self, id: &SessionId) -> bool {
        let mut inner = self.lock();
        if !inner.children.contains_key(id)
            && (inner.children.len() >= CHILDREN || id.as_str().len() > CHILD_ID_BYTES)
        {
            return false;
        }
        inner.children.entry(id.clone()).or_default();
        true
    }

    /// Which subagents there are.
    pub(crate) fn children(&self) -> Vec<SessionId> {
        self.lock().children.keys().cloned().collect()
    }

    /// SUBA-03: whether a subagent may be cancelled.
    pub(crate) fn may_cancel(&self, child: &str) -> bool {
        self.lock().children.get(child).is_some_and(|child| child.cancel)
    }

    // What the owner does.

    /// Starts to read a replayed history; from here on, until [`end`](Self::end), everything belongs to it.
    pub(crate) fn begin_load(&self) -> u64 {
        self.begin(self.lock(), Phase::Loading, false)
    }

    /// Starts a turn. Questions that nobody has taken go with it: somebody has to answer them.
    pub(crate) fn begin_turn(&self) -> u64 {
        self.begin(self.lock(), Phase::Running, false)
    }

    /// Starts a turn unless one runs or its end was not read yet. All events that were not read go before it.
    pub(crate) fn try_begin_turn(&self) -> Option<u64> {
        let inner = self.lock();
        let free = inner.phase == Phase::Idle && inner.end.is_none();
        free.then(|| self.begin(inner, Phase::Running, true))
    }

    /// Whether a turn runs, or its end was not read yet.
    pub(crate) fn in_turn(&self) -> bool {
        let inner = self.lock();
        inner.phase == Phase::Running || inner.end.is_some()
    }

    fn begin(&self, mut inner: MutexGuard<'_, Inner>, phase: Phase, take_all: bool) -> u64 {
        let mut moved = 0;
        inner.phase = phase;
        inner.turn += 1;
        inner.call = None;
        inner.cancelled_at = None;
        inner.end = None;
        for (event, bytes) in std::mem::take(&mut inner.outside) {
            if take_all || event.is_ask() {
                inner.outside_bytes -= bytes;
                moved += bytes;
                inner.queue.push_back(event);
            } else {
                inner.outside.push_back((event, bytes));
            }
        }
        inner.queued += moved;
        self.backlog().add(moved);
        let (turn, waker) = (inner.turn, inner.outside_waker.take());
        drop(inner);
        // A reader of the whole session has to look at the turn from now on.
        if let Some(waker) = waker {
            waker.wake();
        }
        turn
    }

    /// The number of the turn that began last.
    pub(crate) fn latest_turn(&self) -> u64 {
        self.lock().turn
    }

    /// Remembers which request the turn is, so that it can be given up.
    pub(crate) fn set_call(&self, turn: u64, call: CallId) {
        let mut inner = self.lock();
        if inner.turn == turn && inner.phase != Phase::Idle {
            inner.call = Some(call);
        }
    }

    /// CANCEL-01: cancels the turn that runs, if one runs. A cancel that comes too late does nothing, so it can never
    /// touch the next turn.
    pub(crate) fn cancel(&self) {
        let mut inner = self.lock();
        if inner.phase != Phase::Running || inner.cancelled_at.is_some() {
            return;
        }
        inner.cancelled_at = Some(Instant::now());
        let asks = inner.take_asks();
        // The reader of the turn has a deadline to watch from now on.
        let waker = inner.turn_waker.take();
        drop(inner);
        self.send_cancel();
        // CANCEL-03: every open question is answered now.
        asks.iter().for_each(|slot| slot.cancel());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn send_cancel(&self) {
        self.peer.notify_now(CancelNotification::METHOD, &CancelNotification::new(self.id.clone()));
    }

    /// Nobody reads the turn any more: it is cancelled, and what it still says is dropped.
    pub(crate) fn abandon_turn(&self, turn: u64) {
        let mut inner = self.lock();
        if inner.turn != turn {
            return;
        }
        let queue = std::mem::take(&mut inner.queue);
        let queued = std::mem::take(&mut inner.queued) + std::mem::take(&mut inner.taken);
        inner.end = None;
        inner.turn_waker = None;
        let mut send = false;
        let mut asks = Vec::new();
        if inner.phase == Phase::Running {
            inner.phase = Phase::Draining;
            send = inner.cancelled_at.is_none();
            inner.cancelled_at.get_or_insert_with(Instant::now);
            asks = inner.take_asks();
        }
        drop(inner);
        self.backlog().sub(queued);
        if send {
            self.send_cancel();
        }
        asks.iter().for_each(|slot| slot.cancel());
        drop(queue);
    }

    /// The agent did not end the cancelled turn in time: it ends here, as what it is. The answer, if it ever comes, is
    /// dropped.
    pub(crate) fn expire(&self) {
        let mut inner = self.lock();
        match inner.phase {
            Phase::Idle | Phase::Loading => return,
            Phase::Running => inner.end = Some(Ok(Some(PromptResponse::new(StopReason::Cancelled)))),
            Phase::Draining => {}
        }
        inner.phase = Phase::Idle;
        let call = inner.call.take();
        drop(inner);
        if let Some(call) = call {
            self.peer.abandon(call);
        }
    }

    /// When the agent must have ended the cancelled turn.
    pub(crate) fn deadline(&self, after: Duration) -> Option<Instant> {
        let inner = self.lock();
        let ends = matches!(inner.phase, Phase::Running | Phase::Draining);
        inner.cancelled_at.filter(|_| ends).map(|at| at + after)
    }

    /// Whether the turn was cancelled on this side.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.lock().cancelled_at.is_some()
    }

    /// Takes all events that are there, or the end when there are none; called when those that were taken before are used.
    pub(crate) fn poll_turn(
        &self,
        cx: &mut Context<'_>,
        events: &mut VecDeque<Event>,
    ) -> Poll<Option<TurnEnd>> {
        let mut inner = self.lock();
        let used = std::mem::take(&mut inner.taken);
        if !inner.queue.is_empty() {
            std::mem::swap(&mut inner.queue, events);
            let bytes = std::mem::take(&mut inner.queued);
            // A few events are let go at once, so that the reader goes on meanwhile. Many count until they are used.
            let many = bytes > self.peer.limits().queued;
            inner.taken = if many { bytes } else { 0 };
            drop(inner);
            self.backlog().sub(used + if many { 0 } else { bytes });
            return Poll::Ready(None);
        }
        if used > 0 {
            drop(inner);
            self.backlog().sub(used);
            inner = self.lock();
        }
        if let Some(end) = inner.end.take() {
            return Poll::Ready(Some(end));
        }
        if let Some(closed) = &inner.closed {
            return Poll::Ready(Some(Err(Error::Closed(closed.clone()))));
        }
        set_waker(&mut inner.turn_waker, cx);
        Poll::Pending
    }

    /// Waits until an abandoned turn has ended.
    pub(crate) fn poll_idle(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut inner = self.lock();
        if let Some(closed) = &inner.closed {
            return Poll::Ready(Err(Error::Closed(closed.clone())));
        }
        if inner.phase != Phase::Draining {
            return Poll::Ready(Ok(()));
        }
        set_waker(&mut inner.turn_waker, cx);
        Poll::Pending
    }

    /// Takes the next event that happened outside of turns.
    pub(crate) fn poll_outside(&self, cx: &mut Context<'_>) -> Poll<Result<Event>> {
        let mut inner = self.lock();
        if let Some((event, bytes)) = inner.outside.pop_front() {
            inner.outside_bytes -= bytes;
            return Poll::Ready(Ok(event));
        }
        if let Some(closed) = &inner.closed {
            return Poll::Ready(Err(Error::Closed(closed.clone())));
        }
        set_waker(&mut inner.outside_waker, cx);
        Poll::Pending
    }

    pub(crate) fn backlog(&self) -> &Backlog {
        self.peer.backlog()
    }
}

/// How a turn ended.
pub(crate) type TurnEnd = Result<Option<PromptResponse>>;

impl Drop for Lane {
    fn drop(&mut self) {
        let inner = self.lock();
        let counted = inner.queued + inner.taken;
        drop(inner);
        self.backlog().sub(counted);
    }
}

impl Inner {
    /// Keeps an event that happened outside of turns. Questions are kept; of the rest, what has a state is in the
    /// state, and what is only shown may be forgotten when nobody looks.
    fn push_outside(&mut self, event: Event, bytes: usize) -> Vec<Event> {
        let mut forgotten = Vec::new();
        // These replace what they are about (CMD-02, CONF-16), so the newest is enough; and the state holds it anyway.
        let replaces = matches!(event, Event::Commands(_) | Event::ConfigOptions(_));
        let bytes = if replaces { EVENT_BYTES } else { bytes };
        let same = |old: &Event| std::mem::discriminant(old) == std::mem::discriminant(&event);
        if let Some(at) = self.outside.iter().position(|(old, _)| replaces && same(old)) {
            forgotten.extend(self.remove_outside(at));
        }
        self.outside.push_back((event, bytes));
        self.outside_bytes += bytes;
        while self.outside.len() > OUTSIDE_EVENTS || self.outside_bytes > OUTSIDE_BYTES {
            // The newest one stays, however big it is.
            let older = self.outside.len() - 1;
            let Some(at) = self.outside.iter().take(older).position(|(event, _)| !event.is_ask()) else {
                break;
            };
            forgotten.extend(self.remove_outside(at));
        }
        forgotten
    }

    fn remove_outside(&mut self, at: usize) -> Option<Event> {
        let (event, bytes) = self.outside.remove(at)?;
        self.outside_bytes -= bytes;
        Some(event)
    }

    fn take_asks(&mut self) -> Vec<Arc<PendingAnswer>> {
        std::mem::take(&mut self.asks).iter().filter_map(Weak::upgrade).collect()
    }

    /// SUBA-02: a subagent is announced before anything else that bears its id.
    fn note_subagent(&mut self, update: &SubagentUpdate) {
        let Some(child) = self.children.get_mut(&update.session_id) else { return };
        match &update.capabilities {
            Patch::Keep => {}
            Patch::Clear => child.cancel = false,
            Patch::Set(capabilities) => child.cancel = capabilities.cancel.is_some(),
        }
    }

    fn fold_child(&mut self, id: &str, update: SessionUpdate, bytes: usize) -> Option<Event> {
        self.children.get(id)?;
        let event = self.state.fold_child(id, update, bytes)?;
        Some(Event::FromSubagent(SessionId::from(id), Box::new(event)))
    }
}

fn set_waker(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *slot = Some(cx.waker().clone()),
    }
}
