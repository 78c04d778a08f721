//! The queues of [`ResponseSlot`](crate::ResponseSlot).

use super::State;
use crate::Limits;
use std::collections::VecDeque;
use std::task::{Poll, Waker};

/// All response slots of a connection.
#[derive(Default)]
pub(crate) struct Slots {
    entered: usize,
    reserved: usize,
    /// Handlers that wait to start.
    entering: VecDeque<Waiting>,
    /// Handlers that have started and wait for room.
    reserving: VecDeque<Waiting>,
    next_ticket: u64,
    /// The connection is over, so every wait ends.
    closed: bool,
}

struct Waiting {
    ticket: u64,
    bytes: usize,
    waker: Waker,
}

#[derive(Clone, Copy)]
pub(crate) enum Queue {
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

    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.entering.drain(..).chain(self.reserving.drain(..)).map(|waiting| waiting.waker).collect()
    }

    fn may_enter(&self, unsent: usize, limits: &Limits) -> bool {
        self.closed || (self.entered < limits.large_responses && unsent < limits.response_bytes)
    }

    /// A response that exceeds the budget by itself is admitted when there is no other.
    fn may_reserve(&self, bytes: usize, unsent: usize, limits: &Limits) -> bool {
        let held = self.reserved + unsent;
        self.closed
            || held.saturating_add(bytes) <= limits.response_bytes
            || (self.reserved == 0 && unsent <= limits.write_buffer)
    }
}

impl State {
    /// The first of both queues, if they may proceed; to be woken after the lock is free.
    #[inline]
    pub(crate) fn slots_to_wake(&self, limits: &Limits) -> Vec<Waker> {
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

    /// Enters or reserves `bytes` if it is the turn of `ticket`; otherwise parks `waker` and sets
    /// `ticket`.
    pub(crate) fn poll_slot(
        &mut self,
        (queue, bytes): (Queue, usize),
        ticket: &mut Option<u64>,
        limits: &Limits,
        waker: &Waker,
    ) -> Poll<()> {
        let unsent = self.unsent();
        let slots = &mut self.slots;
        let may = match queue {
            Queue::Entering => slots.may_enter(unsent, limits),
            Queue::Reserving => slots.may_reserve(bytes, unsent, limits),
        };
        let closed = slots.closed;
        let parked = slots.queue(queue);
        let is_first = match *ticket {
            None => parked.is_empty(),
            Some(ticket) => parked.front().is_none_or(|first| first.ticket == ticket),
        };
        if may && (is_first || closed) {
            self.leave_slot_queue(queue, ticket);
            match queue {
                Queue::Entering => self.slots.entered += 1,
                Queue::Reserving => self.slots.reserved += bytes,
            }
            return Poll::Ready(());
        }
        match ticket.and_then(|ticket| parked.iter_mut().find(|waiting| waiting.ticket == ticket)) {
            Some(waiting) => waiting.waker.clone_from(waker),
            None => {
                let next = slots.next_ticket;
                slots.next_ticket += 1;
                slots.queue(queue).push_back(Waiting { ticket: next, bytes, waker: waker.clone() });
                *ticket = Some(next);
            }
        }
        Poll::Pending
    }

    pub(crate) fn leave_slot_queue(&mut self, queue: Queue, ticket: &mut Option<u64>) {
        let Some(ticket) = ticket.take() else { return };
        let queue = self.slots.queue(queue);
        if let Some(at) = queue.iter().position(|waiting| waiting.ticket == ticket) {
            queue.remove(at);
        }
    }

    pub(crate) fn release_slot(&mut self, entered: bool, reserved: usize) {
        self.slots.entered -= usize::from(entered);
        self.slots.reserved -= reserved;
    }
}
