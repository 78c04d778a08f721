//! Backpressure for large responses.
//!
//! A response has to exist before it can be written, and a peer may request many and read none. So
//! handlers of large responses wait before they start: few of them run at once, none starts while
//! too many bytes are unsent, and a handler that knows the size of its response reserves it. A
//! waiting request costs no more than its own bytes.
//!
//! No deadlock: entering and reserving have separate queues, a handler that has entered never waits
//! for one that has not, and the unsent bytes shrink as the peer reads.

use crate::shared::{Queue, Shared};
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A place among the handlers of large responses. It holds nothing before [`enter`](Self::enter),
/// and dropping it releases everything.
pub struct ResponseSlot {
    shared: Arc<Shared>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    entered: bool,
    reserved: usize,
}

impl ResponseSlot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        ResponseSlot { shared: Arc::clone(shared), state: Mutex::default() }
    }

    /// Waits until the handler may start. Returns at once if it has entered already.
    pub async fn enter(&self) {
        if self.state().entered {
            return;
        }
        self.wait(Queue::Entering, 0).await;
        self.state().entered = true;
    }

    /// Waits until there is room for a response of `bytes`. Call it after [`enter`](Self::enter)
    /// and before the response is produced.
    pub async fn reserve(&self, bytes: usize) {
        if bytes > 0 {
            self.wait(Queue::Reserving, bytes).await;
            self.state().reserved += bytes;
        }
    }

    /// Gives the place up while `future` runs, for example while it waits for a person, and enters
    /// again.
    pub async fn pause<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        // A future that is ready at once keeps its place.
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = first {
            return done;
        }
        self.leave();
        let done = future.await;
        self.enter().await;
        done
    }

    /// Releases everything.
    pub fn leave(&self) {
        let held = std::mem::take(&mut *self.state());
        if !held.entered && held.reserved == 0 {
            return;
        }
        let woken = {
            let mut state = self.shared.lock();
            state.release_slot(held.entered, held.reserved);
            state.slots_to_wake(&self.shared.limits)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&self, queue: Queue, bytes: usize) {
        let mut wait = SlotWait { shared: &self.shared, queue, bytes, ticket: None };
        poll_fn(|cx| wait.poll(cx)).await;
    }
}

impl Drop for ResponseSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for ResponseSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.state();
        f.debug_struct("ResponseSlot")
            .field("entered", &held.entered)
            .field("reserved", &held.reserved)
            .finish()
    }
}

/// A wait in one of the queues.
struct SlotWait<'a> {
    shared: &'a Shared,
    queue: Queue,
    bytes: usize,
    ticket: Option<u64>,
}

impl SlotWait<'_> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        let limits = &self.shared.limits;
        std::task::ready!(state.poll_slot((self.queue, self.bytes), &mut self.ticket, limits, cx.waker()));
        let woken = state.slots_to_wake(limits);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Poll::Ready(())
    }
}

impl Drop for SlotWait<'_> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            return;
        }
        // A wake that was meant for this one goes to the next.
        let woken = {
            let mut state = self.shared.lock();
            state.leave_slot_queue(self.queue, &mut self.ticket);
            state.slots_to_wake(&self.shared.limits)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}
