//! Counters that several connections share: those of the server, and those of a token.

use super::options::Limits;
use crate::ws::Budget;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room beyond a message, for its line end and for what a WebSocket reads ahead.
const SPARE: usize = 128 << 10;

/// A shared counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes one place of `max`, until it is dropped.
    pub(super) fn take(&self, max: usize) -> Option<Slot> {
        let more = |count: usize| (count < max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Slot(self.clone()))
    }
}

/// A place that counts until it is dropped.
#[derive(Debug)]
pub(super) struct Slot(Counter);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bytes of one connection, which also count for its token and for the whole server.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    own: usize,
    token: Counter,
    total: Counter,
}

impl HeldBytes {
    /// Bytes for a client that does not read.
    pub(super) fn unread(usage: &Usage) -> Self {
        HeldBytes { own: 0, token: usage.token_held.clone(), total: usage.held.clone() }
    }

    /// Bytes of messages from a client that its agent has not taken.
    pub(super) fn received(usage: &Usage) -> Self {
        HeldBytes { own: 0, token: usage.token_received.clone(), total: usage.received.clone() }
    }

    pub(super) fn get(&self) -> usize {
        self.own
    }

    /// Whether a shared limit is reached.
    pub(super) fn is_over(&self, limits: &Limits) -> bool {
        self.total.get() >= limits.held_total || self.token.get() >= limits.held_per_identity
    }

    pub(super) fn add(&mut self, count: usize) {
        self.own += count;
        for counter in [&self.token, &self.total] {
            counter.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds received bytes if their limits allow it.
    pub(super) fn try_add(&mut self, count: usize, limits: &Limits) -> Result<(), Full> {
        // One message always has room where nothing else is held.
        let least = limits.message.saturating_add(SPARE);
        let take = |counter: &Counter, max: usize| {
            let more = |held: usize| held.checked_add(count).filter(|held| *held <= max.max(least));
            counter.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        };
        if !take(&self.token, limits.received_per_identity) {
            return Err(Full::Identity);
        }
        if !take(&self.total, limits.received) {
            self.token.0.fetch_sub(count, Ordering::Relaxed);
            return Err(Full::Server);
        }
        self.own += count;
        Ok(())
    }

    /// Takes over the bytes of another holder.
    pub(super) fn take_from(&mut self, other: &mut HeldBytes) {
        let count = other.own;
        other.subtract(count);
        self.add(count);
    }

    pub(super) fn subtract(&mut self, count: usize) {
        self.own -= count;
        for counter in [&self.token, &self.total] {
            counter.0.fetch_sub(count, Ordering::Relaxed);
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.subtract(self.own);
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// That of the server.
    Server,
    /// That of the owner of the token.
    Identity,
}

/// The received bytes of a WebSocket.
pub(super) struct SocketBytes {
    held: HeldBytes,
    limits: Limits,
}

impl SocketBytes {
    pub(super) fn new(usage: &Usage, limits: &Limits) -> Self {
        SocketBytes { held: HeldBytes::received(usage), limits: limits.clone() }
    }
}

impl Budget for SocketBytes {
    fn set(&mut self, bytes: usize) -> bool {
        match bytes.checked_sub(self.held.get()) {
            Some(more) => self.held.try_add(more, &self.limits).is_ok(),
            None => {
                self.held.subtract(self.held.get() - bytes);
                true
            }
        }
    }
}

/// The shared counters of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// Bytes held for all clients.
    pub(super) held: Counter,
    /// Bytes held for all clients with the same token.
    pub(super) token_held: Counter,
    /// Bytes received from all clients.
    pub(super) received: Counter,
    /// Bytes received from all clients with the same token.
    pub(super) token_received: Counter,
    /// Sessions of all clients with the same token.
    pub(super) sessions: Counter,
    /// Open requests of all clients with the same token.
    pub(super) requests: Counter,
    /// Those over WebSocket.
    pub(super) socket_sessions: Counter,
    pub(super) socket_requests: Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_bytes_count_for_the_token_and_for_all() {
        let limits =
            Limits { message: 0, received: 3 * SPARE, received_per_identity: 2 * SPARE, ..Limits::default() };
        let usage = Usage::default();
        let other = Usage { received: usage.received.clone(), ..Usage::default() };
        let mut first = HeldBytes::received(&usage);
        let mut second = HeldBytes::received(&usage);
        let mut third = HeldBytes::received(&other);
        assert_eq!(first.try_add(2 * SPARE, &limits), Ok(()));
        assert_eq!(second.try_add(1, &limits), Err(Full::Identity));
        assert_eq!(third.try_add(SPARE + 1, &limits), Err(Full::Server));
        assert_eq!(third.try_add(SPARE, &limits), Ok(()));
        // A refusal counts nothing.
        first.subtract(SPARE);
        assert_eq!(second.try_add(SPARE, &limits), Ok(()));
        second.take_from(&mut first);
        assert_eq!((first.get(), second.get()), (0, 2 * SPARE));
        drop((first, second, third));
        assert_eq!((usage.received.get(), usage.token_received.get(), other.token_received.get()), (0, 0, 0));
    }
}
