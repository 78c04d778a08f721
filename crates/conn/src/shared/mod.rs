//! State that a [`Peer`](crate::Peer), its calls, its responders and the driver share.
//!
//! One lock holds the JSON-RPC machine and the write buffer. A message is encoded into the buffer
//! in the same step in which the machine registers it, so both have the same order. Code under the
//! lock never waits, calls no callback and drops no value of a user.

mod room;
mod slots;

pub(crate) use slots::Queue;

use crate::cancel::{TokenId, Tokens};
use crate::waiter::Waiter;
use crate::{Backlog, CallError, CallId, CancelToken, Closed, Limits, Reason, Side};
use attache_rpc::{ErrorObject, Event, Frame, Id, Machine, RequestError};
use room::Room;
use serde::Serialize;
use slots::Slots;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;
use tracing::trace;

/// A flag that forbids a message once it is set. It is read under the lock, in the same step in
/// which the message is encoded.
pub(crate) type Over<'a> = Option<&'a AtomicBool>;

pub(crate) fn is_over(over: Over<'_>) -> bool {
    over.is_some_and(|over| over.load(Ordering::SeqCst))
}

/// Messages that do not wait for room are refused while more bytes than this are unsent.
const OWN_UNSENT: usize = 64 << 20;

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
    /// Bytes that the writer has taken and not written.
    pub(crate) taken: usize,
    pub(crate) room: Room,
    pub(crate) slots: Slots,
    /// Bytes of the peer's open requests.
    open_bytes: usize,
    /// `out` holds a message that is written without waiting for more.
    pub(crate) urgent: bool,
    /// The driver has nothing to write, so a producer must wake it.
    pub(crate) writer_idle: bool,
    driver: Option<Waker>,
    /// A local close was requested: `out` is still written, and only responses are added.
    pub(crate) closing: bool,
    /// Set when no more responses can arrive.
    pub(crate) read_closed: Option<Closed>,
    /// Set when nothing can be sent any more.
    write_closed: Option<Closed>,
}

impl Shared {
    pub(crate) fn new(limits: Limits, side: Side) -> Self {
        let machine = Machine::new(
            attache_rpc::Limits::default()
                .depth(limits.depth)
                .open_requests(limits.open_requests)
                .answer_noise(side == Side::Agent),
        );
        let state = State {
            machine,
            tokens: Tokens::default(),
            out: Vec::new(),
            taken: 0,
            room: Room::default(),
            slots: Slots::default(),
            open_bytes: 0,
            urgent: false,
            writer_idle: false,
            driver: None,
            closing: false,
            read_closed: None,
            write_closed: None,
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
        // Only a user's `Serialize` can panic under the lock, and encoding undoes a partial line.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write`, which adds an urgent message, under the lock and wakes the driver if
    /// necessary.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = write(&mut state);
        state.urgent = true;
        let driver = state.writer_to_wake();
        drop(state);
        wake(driver);
        result
    }

    /// Sends a request. One that cannot be sent completes its waiter with the error.
    pub(crate) fn request<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        waiter: Waiter,
        over: Over<'_>,
    ) -> CallId {
        // Dropping the waiter may need the lock, so it stays outside, also when serializing panics.
        let mut waiter = Some(waiter);
        let sent = self.write(|state| {
            if let Some(closed) = self.send_refusal(state).or_else(|| state.read_closed.clone()) {
                return Err(CallError::Closed(closed));
            }
            if is_over(over) {
                return Err(CallError::Withdrawn);
            }
            if state.out.len() > OWN_UNSENT {
                // Without this, calls that are made and dropped in a loop would have no bound.
                return Err(CallError::Encode(RequestError::TooMany));
            }
            let before = state.out.len();
            let id = state.machine.send(method, params, &mut state.out).map_err(CallError::Encode)?;
            if let Some(waiter) = waiter.take() {
                state.machine.wait(id, waiter);
            }
            Ok((id, state.out.len() - before))
        });
        match (sent, waiter) {
            (Ok((id, bytes)), _) => {
                trace!(method, id, bytes, "request sent");
                CallId(Some(id))
            }
            (Err(error), Some(waiter)) => {
                waiter.complete(Err(error));
                CallId(None)
            }
            (Err(_), None) => CallId(None),
        }
    }

    /// Cancels a request of ours.
    // CANCEL-13: the peer is notified.
    pub(crate) fn abandon(&self, CallId(id): CallId) {
        let Some(id) = id else { return };
        let waiter = self.write(|state| match state.write_closed {
            Some(_) => None,
            None => state.machine.abandon(id, &mut state.out),
        });
        // Dropped only after the lock is free.
        drop(waiter);
    }

    /// Sends a notification without waiting for room. Returns whether it was sent.
    pub(crate) fn notify_now<P: Serialize + ?Sized>(&self, method: &str, params: &P, over: Over<'_>) -> bool {
        let sent = self.write(|state| {
            self.send_refusal(state).is_none()
                && !is_over(over)
                && state.out.len() <= OWN_UNSENT
                && state.machine.notify(method, params, &mut state.out).is_ok()
        });
        trace!(method, sent, "notification sent");
        sent
    }

    /// Processes a frame that no handler takes: responses, `$/` methods and malformed lines.
    pub(crate) fn accept<'a>(&self, frame: Frame<'a>, line: &'a [u8]) -> Event<'a, Waiter, TokenId> {
        let mut state = self.lock();
        let State { machine, tokens, out, .. } = &mut *state;
        machine.accept(frame, line, out, || tokens.reserve())
    }

    /// Opens a request of the peer, which counts `bytes` until its response. Returns the reason if
    /// it was refused, and the error response is written.
    pub(crate) fn open_request(&self, id: &Id, bytes: usize) -> Result<TokenId, &'static str> {
        let mut state = self.lock();
        let State { machine, tokens, out, open_bytes, .. } = &mut *state;
        if *open_bytes > 0 && *open_bytes + bytes > self.limits.open_request_bytes {
            const WHY: &str = "too many bytes of requests are open, wait for their answers";
            machine.refuse(id, &ErrorObject::internal(WHY), out);
            return Err(WHY);
        }
        let token = machine.open_request(id, out, || tokens.reserve())?;
        *open_bytes += bytes;
        Ok(token)
    }

    /// Responds to a request that was opened with `bytes`.
    pub(crate) fn respond<T: Serialize + ?Sized>(
        &self,
        id: &Id,
        token: TokenId,
        bytes: usize,
        outcome: Result<&T, &ErrorObject>,
    ) {
        let ok = outcome.is_ok();
        let sent = self.write(|state| {
            state.tokens.forget(token);
            state.open_bytes -= bytes;
            let before = state.out.len();
            if state.write_closed.is_none() {
                state.machine.respond(id, outcome, &mut state.out);
            }
            state.out.len() - before
        });
        trace!(%id, ok, bytes = sent, "response sent");
    }

    /// The cancel tokens of all open requests of the peer.
    pub(crate) fn open_tokens(&self) -> Vec<CancelToken> {
        let mut state = self.lock();
        let State { machine, tokens, .. } = &mut *state;
        machine.open_tokens().map(|id| tokens.get(*id)).collect()
    }

    /// Fails all open and future requests of ours: no more responses can arrive.
    pub(crate) fn close_read(&self, closed: &Closed) {
        let waiters: Vec<Waiter> = {
            let mut state = self.lock();
            state.read_closed.get_or_insert_with(|| closed.clone());
            state.machine.close().collect()
        };
        for waiter in waiters {
            waiter.complete(Err(CallError::Closed(closed.clone())));
        }
    }

    /// Ends the connection in both directions.
    pub(crate) fn end(&self, closed: &Closed) {
        self.close_read(closed);
        let parked = {
            let mut state = self.lock();
            state.write_closed.get_or_insert_with(|| closed.clone());
            state.out = Vec::new();
            [state.room.clear(), state.slots.close()].concat()
        };
        parked.into_iter().for_each(Waker::wake);
        // Only the first end counts; the driver may call this again when it is dropped.
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
            (state.room.clear(), state.wake_writer())
        };
        parked.into_iter().for_each(Waker::wake);
        wake(driver);
    }

    pub(crate) fn closed(&self, reason: Reason) -> Closed {
        Closed::new(self.side, reason)
    }

    /// The reason why nothing new may be sent, if there is one.
    pub(crate) fn send_refusal(&self, state: &State) -> Option<Closed> {
        match &state.write_closed {
            Some(closed) => Some(closed.clone()),
            None if state.closing => Some(self.closed(Reason::LocalClose)),
            None => None,
        }
    }
}

impl State {
    /// Registers the waker of the driver, which is running and needs no wake.
    pub(crate) fn driver_runs(&mut self, waker: &Waker) {
        self.writer_idle = false;
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    /// Bytes that are not written yet.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() + self.taken
    }

    /// The waker of an idle driver that has something to write; to be woken after the lock is free.
    pub(crate) fn writer_to_wake(&mut self) -> Option<Waker> {
        if self.writer_idle && !self.out.is_empty() { self.wake_writer() } else { None }
    }

    fn wake_writer(&mut self) -> Option<Waker> {
        self.writer_idle = false;
        self.driver.clone()
    }
}

pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
