//! Producers that wait for room in the write buffer.

use std::collections::VecDeque;
use std::task::Waker;

/// A first-in, first-out queue, so that a fast producer cannot starve a slow one.
#[derive(Default)]
pub(crate) struct Room {
    parked: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl Room {
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Whether `ticket` is first in the queue. A ticket removed by [`clear`](Self::clear) counts as
    /// first.
    pub(crate) fn is_first(&self, ticket: u64) -> bool {
        self.parked.front().is_none_or(|(first, _)| *first >= ticket)
    }

    /// Adds a producer or updates its waker. Returns its ticket.
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

    /// The producer to wake when there is room.
    pub(crate) fn first(&self) -> Option<Waker> {
        self.parked.front().map(|(_, waker)| waker.clone())
    }

    pub(super) fn clear(&mut self) -> Vec<Waker> {
        self.parked.drain(..).map(|(_, waker)| waker).collect()
    }
}
