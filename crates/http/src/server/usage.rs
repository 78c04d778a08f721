//! Counters that several connections share: those of the server, and those of a token.

use super::options::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    pub(super) fn new(usage: &Usage) -> Self {
        HeldBytes { own: 0, token: usage.token_held.clone(), total: usage.held.clone() }
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

/// The shared counters of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// Bytes held for all clients.
    pub(super) held: Counter,
    /// Bytes held for all clients with the same token.
    pub(super) token_held: Counter,
    /// Sessions of all clients with the same token.
    pub(super) sessions: Counter,
    /// Open requests of all clients with the same token.
    pub(super) requests: Counter,
    /// Those over WebSocket.
    pub(super) socket_sessions: Counter,
    pub(super) socket_requests: Counter,
}
