//! The budget of answers: who may produce an answer that may be large, and when.
//!
//! An answer has to exist before it can be written, and a peer may ask for many and read none of them. So those who
//! produce large ones wait before they begin: few of them run at once, none begins while too much waits to be written,
//! and those who know how large an answer will be reserve its bytes. A request that waits costs no more than itself.
//!
//! No deadlock: entering and reserving have a queue each, whoever has entered never waits for somebody who has not, and
//! what waits to be written gets less when the peer reads.

use crate::Limits;
use crate::shared::{Shared, State};
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A place among those who answer the peer with something that may be large. Nothing is held before [`enter`](Self::enter);
/// dropping it gives everything back.
pub struct AnswerSlot {
    shared: Arc<Shared>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    entered: bool,
    reserved: usize,
}

/// All slots of a connection.
#[derive(Default)]
pub(crate) struct Slots {
    entered: usize,
    reserved: usize,
    /// Those who want to enter.
    entering: VecDeque<Waiting>,
    /// Those who have entered and want to reserve.
    reserving: VecDeque<Waiting>,
    next_ticket: u64,
    /// The connection is over: nobody waits any more.
    closed: bool,
}

struct Waiting {
    ticket: u64,
    bytes: usize,
    waker: Waker,
}

#[derive(Clone, Copy)]
enum Queue {
    Entering,
    Reserving,
}

impl Slots {
    fn queue(&mut self, queue: Queue) -> &mut VecDeque<Waiting> {
        match queue {
            Queue::Entering => &mut self.entering,
            Queue::Reserving => &mut self.reserving,
        }
    }

    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.entering.drain(..).chain(self.reserving.drain(..)).map(|waiting| waiting.waker).collect()
    }

    fn may_enter(&self, unsent: usize, limits: &Limits) -> bool {
        self.closed || (self.entered < limits.serving && unsent < limits.answers)
    }

    /// An answer that is larger than the budget by itself is made when there is no other.
    fn may_reserve(&self, bytes: usize, unsent: usize, limits: &Limits) -> bool {
        let held = self.reserved + unsent;
        self.closed
            || held.saturating_add(bytes) <= limits.answers
            || (self.reserved == 0 && unsent <= limits.outgoing)
    }
}

impl State {
    /// The first in both queues, if it is their turn; to be woken after the lock is free.
    #[inline]
    pub(crate) fn grant_slots(&self, limits: &Limits) -> Vec<Waker> {
        let slots = &self.slots;
        if slots.entering.is_empty() && slots.reserving.is_empty() {
            return Vec::new();
        }
        let unsent = self.unsent();
        let entering = slots.entering.front().filter(|_| slots.may_enter(unsent, limits));
        let reserving =
            slots.reserving.front().filter(|first| slots.may_reserve(first.bytes, unsent, limits));
        entering.into_iter().chain(reserving).map(|waiting| waiting.waker.clone()).collect()
    }
}

impl AnswerSlot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        AnswerSlot { shared: Arc::clone(shared), held: Mutex::default() }
    }

    /// Waits for the turn of this slot. Returns at once if it has entered already.
    pub async fn enter(&self) {
        if self.held().entered {
            return;
        }
        self.wait(Queue::Entering, 0).await;
        self.held().entered = true;
    }

    /// Waits until there is room for so many bytes more; to be called after [`enter`](Self::enter) and before
    /// the answer is made.
    pub async fn reserve(&self, bytes: usize) {
        if bytes > 0 {
            self.wait(Queue::Reserving, bytes).await;
            self.held().reserved += bytes;
        }
    }

    /// Gives the place up while `future` runs, for work that waits for something else, such as a person; then enters again.
    pub async fn pause<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        // What is ready at once need not give its place to others.
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = first {
            return done;
        }
        self.leave();
        let done = future.await;
        self.enter().await;
        done
    }

    /// Gives everything back.
    pub fn leave(&self) {
        let held = std::mem::take(&mut *self.held());
        if !held.entered && held.reserved == 0 {
            return;
        }
        let woken = {
            let mut state = self.shared.lock();
            state.slots.entered -= usize::from(held.entered);
            state.slots.reserved -= held.reserved;
            state.grant_slots(&self.shared.limits)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&self, queue: Queue, bytes: usize) {
        let mut turn = Turn { shared: &self.shared, queue, bytes, ticket: None };
        poll_fn(|cx| turn.poll(cx)).await;
    }
}

impl Drop for AnswerSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for AnswerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held();
        f.debug_struct("AnswerSlot")
            .field("entered", &held.entered)
            .field("reserved", &held.reserved)
            .finish()
    }
}

/// A wait in one of the queues, first come, first served.
struct Turn<'a> {
    shared: &'a Shared,
    queue: Queue,
    bytes: usize,
    ticket: Option<u64>,
}

impl Turn<'_> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        let unsent = state.unsent();
        let slots = &mut state.slots;
        let may = match self.queue {
            Queue::Entering => slots.may_enter(unsent, &self.shared.limits),
            Queue::Reserving => slots.may_reserve(self.bytes, unsent, &self.shared.limits),
        };
        let (ticket, closed) = (self.ticket, slots.closed);
        let queue = slots.queue(self.queue);
        let is_first = match ticket {
            None => queue.is_empty(),
            Some(ticket) => queue.front().is_none_or(|first| first.ticket == ticket),
        };
        if may && (is_first || closed) {
            self.remove(&mut state);
            match self.queue {
                Queue::Entering => state.slots.entered += 1,
                Queue::Reserving => state.slots.reserved += self.bytes,
            }
            let woken = state.grant_slots(&self.shared.limits);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            return Poll::Ready(());
        }
        match ticket.and_then(|ticket| queue.iter_mut().find(|waiting| waiting.ticket == ticket)) {
            Some(waiting) => waiting.waker.clone_from(cx.waker()),
            None => {
                let ticket = slots.next_ticket;
                slots.next_ticket += 1;
                let waiting = Waiting { ticket, bytes: self.bytes, waker: cx.waker().clone() };
                slots.queue(self.queue).push_back(waiting);
                self.ticket = Some(ticket);
            }
        }
        Poll::Pending
    }

    fn remove(&mut self, state: &mut State) {
        let Some(ticket) = self.ticket.take() else { return };
        let queue = state.slots.queue(self.queue);
        if let Some(at) = queue.iter().position(|waiting| waiting.ticket == ticket) {
            queue.remove(at);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            return;
        }
        // The wake that was meant for this one goes to the next.
        let woken = {
            let mut state = self.shared.lock();
            self.remove(&mut state);
            state.grant_slots(&self.shared.limits)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}
