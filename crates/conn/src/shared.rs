//! What a [`Peer`](crate::Peer), its calls, its responders and the driver have in common.
//!
//! One lock holds the JSON-RPC machine and the write buffer, because what they say must agree: a message is encoded into the
//! buffer in the same moment in which the machine learns of it, so the order of the machine is the order of the wire.
//! Under the lock nobody waits, no callback runs, and nothing of a user is dropped.

use crate::call::Waiter;
use crate::cancel::{TokenId, Tokens};
use crate::slot::Slots;
use crate::{Backlog, CallError, CancelToken, Closed, Limits, Reason, Side};
use attache_rpc::{ErrorObject, Event, Frame, Machine};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) limits: Limits,
    pub(crate) side: Side,
    pub(crate) backlog: Backlog,
    ended: OnceLock<Closed>,
    ended_notify: Notify,
}

pub(crate) struct State {
    pub(crate) machine: Machine<Waiter, TokenId>,
    pub(crate) tokens: Tokens,
    /// Whole lines that the writer has not taken yet.
    pub(crate) out: Vec<u8>,
    /// The bytes that the writer has taken and not written.
    pub(crate) taken: usize,
    pub(crate) room: Room,
    pub(crate) slots: Slots,
    /// The bytes of the peer's requests that are open.
    pub(crate) open_bytes: usize,
    /// The driver has nothing to write, so whoever writes wakes it.
    pub(crate) asleep: bool,
    driver: Option<Waker>,
    /// Somebody asked for the end: what is in `out` is still written, nothing is added but answers.
    pub(crate) closing: bool,
    /// Answers can no longer come.
    pub(crate) deaf: Option<Closed>,
    /// Nothing can be sent any more.
    mute: Option<Closed>,
}

impl Shared {
    pub(crate) fn new(limits: Limits, side: Side) -> Self {
        let machine = Machine::new(attache_rpc::Limits {
            depth: limits.depth,
            open_requests: limits.open_requests,
            answer_noise: side == Side::Agent,
        });
        let state = State {
            machine,
            tokens: Tokens::default(),
            out: Vec::new(),
            taken: 0,
            room: Room::default(),
            slots: Slots::default(),
            open_bytes: 0,
            asleep: false,
            driver: None,
            closing: false,
            deaf: None,
            mute: None,
        };
        Shared {
            state: Mutex::new(state),
            backlog: Backlog::new(limits.queued, limits.queued_hard),
            limits,
            side,
            ended: OnceLock::new(),
            ended_notify: Notify::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock can only come from a `Serialize` of the user, and encoding undoes what it began.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `write` add to the buffer and wakes the driver if it sleeps.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = write(&mut state);
        let driver = state.rouse_if_asleep();
        drop(state);
        wake(driver);
        result
    }

    /// What a line means. A request counts with its bytes until it is answered.
    pub(crate) fn accept<'a>(&self, frame: Frame<'a>, line: &'a [u8]) -> Event<'a, Waiter, TokenId> {
        let mut state = self.lock();
        let State { machine, tokens, out, open_bytes, .. } = &mut *state;
        if let Frame::Request { id, .. } = &frame
            && *open_bytes > 0
            && *open_bytes + line.len() > self.limits.open_request_bytes
        {
            const WHY: &str = "too many bytes of requests are open, wait for their answers";
            machine.refuse(id, &ErrorObject::internal(WHY), out);
            return Event::Noise { line, reason: Cow::Borrowed(WHY) };
        }
        let event = machine.accept(frame, line, out, || tokens.reserve());
        if let Event::Request { .. } = &event {
            *open_bytes += line.len();
        }
        event
    }

    /// The tokens of all requests of the peer that are not answered.
    pub(crate) fn open_tokens(&self) -> Vec<CancelToken> {
        let mut state = self.lock();
        let State { machine, tokens, .. } = &mut *state;
        machine.open_tokens().map(|id| tokens.get(*id)).collect()
    }

    /// Whoever still waits for an answer gets `closed` instead, and so does everybody who asks from now on.
    pub(crate) fn deafen(&self, closed: &Closed) {
        let waiters: Vec<Waiter> = {
            let mut state = self.lock();
            state.deaf.get_or_insert_with(|| closed.clone());
            state.machine.close().collect()
        };
        for waiter in waiters {
            waiter.settle(Err(CallError::Closed(closed.clone())));
        }
    }

    /// The connection is over in both directions.
    pub(crate) fn end(&self, closed: &Closed) {
        self.deafen(closed);
        let parked = {
            let mut state = self.lock();
            state.mute.get_or_insert_with(|| closed.clone());
            state.out = Vec::new();
            [state.room.clear(), state.slots.close()].concat()
        };
        parked.into_iter().for_each(Waker::wake);
        // Only the first end counts; the driver's own and that of its drop may both come here.
        let _ = self.ended.set(closed.clone());
        self.ended_notify.notify_waiters();
    }

    pub(crate) fn ended(&self) -> Option<&Closed> {
        self.ended.get()
    }

    pub(crate) async fn wait_for_end(&self) -> Closed {
        loop {
            let notified = self.ended_notify.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            if let Some(closed) = self.ended.get() {
                return closed.clone();
            }
            notified.await;
        }
    }

    pub(crate) fn close(&self) {
        let (parked, driver) = {
            let mut state = self.lock();
            state.closing = true;
            (state.room.clear(), state.rouse())
        };
        parked.into_iter().for_each(Waker::wake);
        wake(driver);
    }

    pub(crate) fn closed(&self, reason: Reason) -> Closed {
        Closed::new(self.side, reason)
    }

    /// Why nothing new may be sent, if so.
    pub(crate) fn refusal(&self, state: &State) -> Option<Closed> {
        match &state.mute {
            Some(closed) => Some(closed.clone()),
            None if state.closing => Some(self.closed(Reason::LocalClose)),
            None => None,
        }
    }
}

impl State {
    /// The driver runs: nobody needs to wake it.
    pub(crate) fn driver_runs(&mut self, waker: &Waker) {
        self.asleep = false;
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    pub(crate) fn is_mute(&self) -> bool {
        self.mute.is_some()
    }

    /// The bytes that wait to be written.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() + self.taken
    }

    /// Whom to wake, after the lock is free, because something was written.
    pub(crate) fn rouse_if_asleep(&mut self) -> Option<Waker> {
        if self.asleep && !self.out.is_empty() { self.rouse() } else { None }
    }

    fn rouse(&mut self) -> Option<Waker> {
        self.asleep = false;
        self.driver.clone()
    }
}

pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Waiter {
    /// Gives the waiter what it waited for.
    pub(crate) fn settle(self, outcome: Result<&RawValue, CallError>) {
        match self {
            // Nobody there any more: then the answer is not wanted.
            Waiter::Call(call) => drop(call.send(outcome.map(RawValue::to_owned))),
            Waiter::Callback(callback) => callback(outcome),
        }
    }
}

/// Producers that wait for room in the write buffer, first come, first served: a fast producer cannot starve a slow one.
#[derive(Default)]
pub(crate) struct Room {
    parked: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl Room {
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Whether it is this ticket's turn. A ticket that is not here any more was let go by [`clear`](Self::clear).
    pub(crate) fn is_first(&self, ticket: u64) -> bool {
        self.parked.front().is_none_or(|(first, _)| *first >= ticket)
    }

    pub(crate) fn park(&mut self, ticket: Option<u64>, waker: &Waker) -> u64 {
        if let Some(ticket) = ticket
            && let Some((_, known)) = self.parked.iter_mut().find(|(parked, _)| *parked == ticket)
        {
            known.clone_from(waker);
            return ticket;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.parked.push_back((ticket, waker.clone()));
        ticket
    }

    pub(crate) fn leave(&mut self, ticket: u64) {
        if let Some(at) = self.parked.iter().position(|(parked, _)| *parked == ticket) {
            self.parked.remove(at);
        }
    }

    /// Who is to be woken when there is room.
    pub(crate) fn first(&self) -> Option<Waker> {
        self.parked.front().map(|(_, waker)| waker.clone())
    }

    fn clear(&mut self) -> Vec<Waker> {
        self.parked.drain(..).map(|(_, waker)| waker).collect()
    }
}
