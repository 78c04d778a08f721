//! A lane: the events of one session in wire order.
//!
//! The reader pushes and the owner of the session takes. An event that arrives during a turn or a
//! replay goes to the queue of the turn, others to the queue outside of turns. The reader puts the
//! end of a turn into the same lane, so that no update of the turn follows it or gets lost.
//!
//! Invariants: nothing waits or sends under the lock; every queue is bounded (the turn's by the
//! backlog of the connection, the other one by dropping the oldest); a question is in the list of
//! open questions until it is answered.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use attache_conn::{Backlog, CallId, Closed, Peer};
use attache_wire::v1::{
    CancelNotification, MessageId, PromptResponse, ProtocolVersion, SessionId, SessionUpdate, StopReason,
    ToolCallUpdate,
};
use attache_wire::{Notification, v2};
use tokio::time::Instant;

use super::ask::PendingAnswer;
use super::calls::Calls;
use super::event::{Event, SessionState, Speaker};
use super::serve::TerminalTable;
use super::state::State;
use super::v2::{HeldMessage, Item, Prompts, Reason, Updates, convert};
use crate::{Error, Result};

/// Events outside of turns that are kept.
const OUTSIDE_EVENTS: usize = 256;
/// Bytes of them.
const OUTSIDE_BYTES: usize = 64 << 10;
/// Bytes of an event beside its text.
const EVENT_BYTES: usize = size_of::<Event>();

/// One session.
pub(crate) struct Lane {
    pub(crate) id: SessionId,
    // ROOT-07: the working directory first, then the additional ones.
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) terminals: TerminalTable,
    pub(crate) peer: Peer,
    pub(crate) version: ProtocolVersion,
    this: Weak<Lane>,
    inner: Mutex<Inner>,
    /// The tool calls and terminals as far as they were read.
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Inner {
    phase: Phase,
    /// The number of the latest turn. Responses of other turns are late and ignored.
    turn: u64,
    call: Option<CallId>,
    cancelled_at: Option<Instant>,
    queue: VecDeque<Event>,
    /// The bytes of `queue`.
    queued: usize,
    /// Bytes of events that were taken and still count in the backlog.
    taken: usize,
    end: Option<TurnEnd>,
    turn_waker: Option<Waker>,
    outside: VecDeque<(Event, usize)>,
    outside_bytes: usize,
    outside_waker: Option<Waker>,
    asks: Vec<Weak<PendingAnswer>>,
    state: State,
    updates: Updates,
    prompts: Prompts,
    #[cfg(feature = "unstable")]
    children: super::unstable::Children,
    closed: Option<Closed>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No turn runs.
    #[default]
    Idle,
    /// A history is being replayed.
    Loading,
    /// A turn runs and is read.
    Running,
    /// A cancelled turn runs and is no longer read.
    Draining,
}

impl Lane {
    pub(crate) fn new(
        id: SessionId,
        roots: Arc<[PathBuf]>,
        peer: Peer,
        version: ProtocolVersion,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Lane {
            id,
            roots,
            terminals: TerminalTable::default(),
            peer,
            version,
            this: this.clone(),
            inner: Mutex::new(Inner::default()),
            calls: Mutex::new(Calls::default()),
        })
    }

    fn is_v2(&self) -> bool {
        self.version == ProtocolVersion::V2
    }

    /// The working directory.
    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the state.
    pub(crate) fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.lock().state)
    }

    // Called by the reader.

    /// Adds an update of the session or of a subagent.
    pub(crate) fn update(&self, child: Option<&str>, update: SessionUpdate, bytes: usize) {
        let mut inner = self.lock();
        #[cfg(feature = "unstable")]
        if let SessionUpdate::SubagentUpdate(update) = &update {
            inner.children.note(update);
        }
        let event = match child {
            None => inner.state.fold(update, bytes),
            Some(id) => {
                let event = inner.state.fold_child(id, update, bytes);
                event.map(|event| event.of_child(Some(SessionId::from(id))))
            }
        };
        if let Some(event) = event {
            self.push(inner, event, bytes + EVENT_BYTES);
        }
    }

    /// Adds an update of version 2. Returns why it cannot be used.
    pub(crate) fn update_v2(
        &self,
        child: Option<&str>,
        update: v2::SessionUpdate,
        bytes: usize,
    ) -> Result<(), Reason> {
        let mut inner = self.lock();
        if child.is_none() {
            inner.prompts.note(&update);
        }
        let update = match update {
            update @ (v2::SessionUpdate::UserMessage(_) | v2::SessionUpdate::UserMessageChunk(_))
                if child.is_none() =>
            {
                match inner.prompts.take(update, bytes) {
                    Some(update) => update,
                    None => return Ok(()),
                }
            }
            v2::SessionUpdate::AgentMessageChunk(chunk) => {
                return self.add_chunk(inner, child, Speaker::Agent, chunk, bytes);
            }
            v2::SessionUpdate::AgentThoughtChunk(chunk) => {
                return self.add_chunk(inner, child, Speaker::Thought, chunk, bytes);
            }
            v2::SessionUpdate::StateUpdate(state) if child.is_none() => {
                drop(self.change_state(inner, *state));
                return Ok(());
            }
            update => update,
        };
        let items = inner.updates.items(child.unwrap_or_default(), update)?;
        self.add_items(inner, child, items, bytes);
        Ok(())
    }

    /// Keeps the text of an update with a message of the user if that is, or may be, the echo of a
    /// prompt.
    pub(crate) fn hold_echo(&self, message_id: &str, update: &str, bytes: usize) -> bool {
        self.lock().prompts.take_text(message_id, update, bytes)
    }

    /// Adds a piece of a message, which most updates are.
    fn add_chunk(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        child: Option<&str>,
        speaker: Speaker,
        chunk: v2::ContentChunk,
        bytes: usize,
    ) -> Result<(), Reason> {
        let Some(update) = inner.updates.chunk(child.unwrap_or_default(), speaker, chunk) else {
            return Ok(());
        };
        let event = match child {
            None => inner.state.fold(update, bytes),
            Some(id) => inner.state.fold_child(id, update, bytes),
        };
        if let Some(event) = event {
            self.push(inner, event.of_child(child.map(SessionId::from)), bytes + EVENT_BYTES);
        }
        Ok(())
    }

    fn add_items<'l>(
        &'l self,
        mut inner: MutexGuard<'l, Inner>,
        child: Option<&str>,
        items: Vec<Item>,
        bytes: usize,
    ) {
        for item in items {
            let event = match item {
                Item::Update(update) => {
                    #[cfg(feature = "unstable")]
                    if let SessionUpdate::SubagentUpdate(update) = &update {
                        inner.children.note(update);
                    }
                    match child {
                        None => inner.state.fold(update, bytes),
                        Some(id) => inner.state.fold_child(id, update, bytes),
                    }
                }
                Item::Tool(update, extra) => {
                    Some(Event::ToolCall(inner.state.change_v2(child.unwrap_or_default(), *update, extra)))
                }
                Item::State(state) if child.is_none() => {
                    inner = self.change_state(inner, *state);
                    continue;
                }
                Item::State(state) => Some(Event::State(SessionState::reported_by(&state))),
                Item::Event(event) => {
                    if let Event::Terminal(change) = &event {
                        inner.state.note_terminal(change);
                    }
                    Some(event)
                }
            };
            let Some(event) = event else { continue };
            // The modes of version 2 are an option.
            let mode = match (&event, child) {
                (Event::ConfigOptions(_), None) => inner.state.derive_modes(),
                _ => None,
            };
            let event = event.of_child(child.map(SessionId::from));
            self.push(inner, event, bytes + EVENT_BYTES);
            if let Some(mode) = mode {
                self.push(self.lock(), Event::Mode(mode), EVENT_BYTES);
            }
            inner = self.lock();
        }
    }

    /// Notes a state of the session, which may be the end of the turn.
    fn change_state<'l>(
        &'l self,
        mut inner: MutexGuard<'l, Inner>,
        state: v2::StateUpdate,
    ) -> MutexGuard<'l, Inner> {
        let background = inner.state.change_background(state.background());
        let now = SessionState::reported_by(&state);
        inner.state.now = Some(now.clone());
        // A replay ends with the state of the session; that it is idle says nothing new.
        let is_shown = inner.phase != Phase::Loading || !matches!(now, SessionState::Idle(_));
        let end = match state {
            v2::StateUpdate::Idle(idle) => {
                // After a cancel an idle state is the end, even if the agent never reported that it
                // works.
                if inner.cancelled_at.is_some() {
                    inner.prompts.busy();
                }
                inner.prompts.idle(idle)
            }
            _ => {
                inner.prompts.busy();
                None
            }
        };
        if let Some(background) = background {
            self.push(inner, Event::Background(background), EVENT_BYTES);
            inner = self.lock();
        }
        if is_shown {
            self.push(inner, Event::State(now), EVENT_BYTES);
            inner = self.lock();
        }
        if let Some(end) = end {
            self.finish(inner, end);
            inner = self.lock();
        }
        inner
    }

    /// The answer to the prompt of a turn: its message is part of the conversation, or never will
    /// be.
    // V2-08, V2-09
    pub(crate) fn prompt_answered(&self, turn: u64, answer: Result<MessageId>) {
        let mut inner = self.lock();
        if inner.turn != turn || !matches!(inner.phase, Phase::Running | Phase::Draining) {
            return;
        }
        let (others, end) = match answer {
            Ok(id) => {
                let answer = inner.prompts.answered(id);
                (answer.others, answer.end)
            }
            Err(error) => (inner.prompts.forget(), Some(Err(error))),
        };
        self.give_out(inner, others);
        if let Some(end) = end {
            let inner = self.lock();
            if inner.turn == turn {
                self.finish(inner, end);
            }
        }
    }

    /// Gives out messages that were held back.
    fn give_out(&self, inner: MutexGuard<'_, Inner>, held: Vec<HeldMessage>) {
        let mut inner = inner;
        for message in held {
            let bytes = message.bytes();
            let Some(update) = message.into_update() else { continue };
            if let Ok(items) = inner.updates.items("", update) {
                self.add_items(inner, None, items, bytes);
                inner = self.lock();
            }
        }
    }

    /// Completes an event that is about to be given out with the state of its tool call or
    /// terminal.
    pub(crate) fn complete(&self, event: &mut Event) {
        if event.has_state() {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).complete(event);
        }
    }

    /// Adds a question for the owner of the session.
    pub(crate) fn ask(&self, child: Option<SessionId>, slot: &Arc<PendingAnswer>, ask: Event, bytes: usize) {
        let call = match &ask {
            Event::Permission(ask) if child.is_none() => Some(ask.tool_call()),
            _ => None,
        };
        if let Some(mut inner) = self.register_ask(slot, call) {
            if !self.is_v2() && inner.phase == Phase::Running && child.is_none() {
                inner = self.wait_for_user(inner, slot);
            }
            self.push(inner, ask.of_child(child), bytes + EVENT_BYTES);
        }
    }

    /// Reports that the agent waits for an answer, and, after it, that it works again. Version 1
    /// has no states.
    fn wait_for_user<'l>(
        &'l self,
        mut inner: MutexGuard<'l, Inner>,
        slot: &PendingAnswer,
    ) -> MutexGuard<'l, Inner> {
        let turn = inner.turn;
        if inner.state.now != Some(SessionState::RequiresAction) {
            inner.state.now = Some(SessionState::RequiresAction);
            self.push(inner, Event::State(SessionState::RequiresAction), EVENT_BYTES);
            inner = self.lock();
        }
        let lane = self.this.clone();
        // A question that is answered by now calls at once.
        drop(inner);
        slot.on_done(move || {
            if let Some(lane) = lane.upgrade() {
                lane.question_done(turn);
            }
        });
        self.lock()
    }

    fn question_done(&self, turn: u64) {
        let mut inner = self.lock();
        let is_open = |slot: &Weak<PendingAnswer>| slot.upgrade().is_some_and(|slot| slot.is_open());
        if inner.turn != turn || inner.phase != Phase::Running || inner.asks.iter().any(is_open) {
            return;
        }
        inner.state.now = Some(SessionState::Running);
        self.push(inner, Event::State(SessionState::Running), EVENT_BYTES);
    }

    /// Adds a question that a handler answers.
    pub(crate) fn note_ask(&self, slot: &Arc<PendingAnswer>, call: Option<&ToolCallUpdate>) {
        drop(self.register_ask(slot, call));
    }

    /// Registers a question, so that it is cancelled with the turn, and announces its tool call.
    // CANCEL-03, PERM-08: in a cancelled turn it is answered at once.
    fn register_ask(
        &self,
        slot: &Arc<PendingAnswer>,
        call: Option<&ToolCallUpdate>,
    ) -> Option<MutexGuard<'_, Inner>> {
        let mut inner = self.lock();
        if inner.cancelled_at.is_some() && inner.phase == Phase::Running {
            drop(inner);
            slot.cancel();
            return None;
        }
        inner.asks.retain(|slot| slot.upgrade().is_some_and(|slot| slot.is_open()));
        inner.asks.push(Arc::downgrade(slot));
        match call.and_then(|call| inner.state.announce(call)) {
            Some(change) => {
                self.push(inner, Event::ToolCall(change), EVENT_BYTES);
                Some(self.lock())
            }
            None => Some(inner),
        }
    }

    /// Changes a tool call unless it is unknown.
    pub(crate) fn change_known(&self, update: ToolCallUpdate) {
        let change = self.lock().state.change_known(update);
        change.into_iter().for_each(|change| self.push_event(Event::ToolCall(change)));
    }

    /// Adds an event that is no update.
    pub(crate) fn push_event(&self, event: Event) {
        self.push(self.lock(), event, EVENT_BYTES);
    }

    fn push(&self, mut inner: MutexGuard<'_, Inner>, event: Event, bytes: usize) {
        match inner.phase {
            Phase::Running | Phase::Loading => {
                inner.queue.push_back(event);
                inner.queued += bytes;
                // Counted under the lock, so that a reader never subtracts more than was added.
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

    /// Ends a turn or a replay with the response.
    pub(crate) fn end(&self, turn: u64, result: TurnEnd) {
        let mut inner = self.lock();
        if inner.turn != turn {
            return;
        }
        if !self.is_v2() && inner.phase == Phase::Running {
            let idle = SessionState::Idle(convert::stop_reason(&result));
            inner.state.now = Some(idle.clone());
            self.push(inner, Event::State(idle), EVENT_BYTES);
            inner = self.lock();
        }
        self.finish(inner, result);
    }

    fn finish(&self, mut inner: MutexGuard<'_, Inner>, result: TurnEnd) {
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

    /// Closes the lane with the connection or the session.
    // TERM-20: releases its terminals.
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

    /// Reads or changes the subagents.
    #[cfg(feature = "unstable")]
    pub(super) fn children<T>(&self, look: impl FnOnce(&mut super::unstable::Children) -> T) -> T {
        look(&mut self.lock().children)
    }

    // Called by the owner.

    /// Starts a replay, which gets all events until [`end`](Self::end).
    pub(crate) fn begin_load(&self) -> u64 {
        self.begin(self.lock(), Phase::Loading, false)
    }

    /// Starts a turn, which gets the unread questions.
    pub(crate) fn begin_turn(&self) -> u64 {
        self.begin(self.lock(), Phase::Running, false)
    }

    /// Starts a turn unless one runs or its end was not read yet. All events that were not read go
    /// before it.
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
        if phase == Phase::Running {
            match self.is_v2() {
                true => inner.prompts.sent(),
                false => {
                    inner.state.now = Some(SessionState::Running);
                    inner.queue.push_back(Event::State(SessionState::Running));
                    moved += EVENT_BYTES;
                }
            }
        }
        inner.queued += moved;
        self.backlog().add(moved);
        let (turn, waker) = (inner.turn, inner.outside_waker.take());
        drop(inner);
        // A reader of the whole session reads the turn from now on.
        if let Some(waker) = waker {
            waker.wake();
        }
        turn
    }

    /// The number of the turn that began last.
    pub(crate) fn latest_turn(&self) -> u64 {
        self.lock().turn
    }

    /// Remembers the request of the turn, so that it can be cancelled.
    pub(crate) fn set_call(&self, turn: u64, call: CallId) {
        let mut inner = self.lock();
        if inner.turn == turn && inner.phase != Phase::Idle {
            inner.call = Some(call);
        }
    }

    // CANCEL-01: cancels the running turn. A late cancel does nothing and never affects the next
    // turn.
    pub(crate) fn cancel(&self) {
        let mut inner = self.lock();
        if inner.phase != Phase::Running || inner.cancelled_at.is_some() {
            return;
        }
        inner.cancelled_at = Some(Instant::now());
        let asks = inner.take_asks();
        // The task that reads the turn has a deadline from now on.
        let waker = inner.turn_waker.take();
        drop(inner);
        self.send_cancel();
        // CANCEL-03: all open questions are answered.
        asks.iter().for_each(|slot| slot.cancel());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn send_cancel(&self) {
        self.peer.notify_now(CancelNotification::METHOD, &CancelNotification::new(self.id.clone()));
    }

    /// Cancels a turn that is no longer read and drops its events.
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

    /// Ends a cancelled turn that the agent did not end in time. A late response is dropped.
    pub(crate) fn expire(&self) {
        let mut inner = self.lock();
        match inner.phase {
            Phase::Idle | Phase::Loading => return,
            Phase::Running => inner.end = Some(Ok(Some(PromptResponse::new(StopReason::Cancelled)))),
            Phase::Draining => {}
        }
        inner.phase = Phase::Idle;
        let call = inner.call.take();
        let others = inner.prompts.forget();
        self.give_out(inner, others);
        if let Some(call) = call {
            self.peer.abandon(call);
        }
    }

    /// The deadline of a cancelled turn.
    pub(crate) fn deadline(&self, after: Duration) -> Option<Instant> {
        let inner = self.lock();
        let ends = matches!(inner.phase, Phase::Running | Phase::Draining);
        inner.cancelled_at.filter(|_| ends).map(|at| at + after)
    }

    /// Whether the turn was cancelled on this side.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.lock().cancelled_at.is_some()
    }

    /// Takes all events, or the end if there are none. Called when the events that were taken
    /// before are used.
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
            // A few events stop counting at once, so that the reader continues. Many count until
            // they are used.
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

    /// Takes the next event outside of turns.
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

/// The end of a turn.
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
    /// Keeps an event outside of turns. Questions are always kept; other old events are dropped,
    /// because their state is kept.
    fn push_outside(&mut self, event: Event, bytes: usize) -> Vec<Event> {
        let mut forgotten = Vec::new();
        // CMD-02, CONF-16: these replace each other, so the newest is enough.
        let replaces = matches!(
            event,
            Event::Commands(_) | Event::ConfigOptions(_) | Event::State(_) | Event::Background(_)
        );
        let bytes = if replaces { EVENT_BYTES } else { bytes };
        let same = |old: &Event| std::mem::discriminant(old) == std::mem::discriminant(&event);
        if let Some(at) = self.outside.iter().position(|(old, _)| replaces && same(old)) {
            forgotten.extend(self.remove_outside(at));
        }
        self.outside.push_back((event, bytes));
        self.outside_bytes += bytes;
        while self.outside.len() > OUTSIDE_EVENTS || self.outside_bytes > OUTSIDE_BYTES {
            // The newest event is kept whatever its size.
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
}

fn set_waker(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *slot = Some(cx.waker().clone()),
    }
}
