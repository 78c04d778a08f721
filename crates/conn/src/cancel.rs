//! Cancellation of requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// A flag that is set once and can be awaited. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and wakes all tasks that wait for it. A second call has no effect.
    pub fn cancel(&self) {
        if !self.0.cancelled.swap(true, Ordering::SeqCst) {
            self.0.notify.notify_waiters();
        }
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            let notified = self.0.notify.notified();
            let mut notified = std::pin::pin!(notified);
            // Registered before the second check, so that a cancel between the two is not missed.
            notified.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }
}

/// Tokens of open requests. They are created on demand, because most requests are answered before.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    next: u64,
    created: BTreeMap<u64, CancelToken>,
}

/// The key of an open request in [`Tokens`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenId(u64);

impl Tokens {
    pub(crate) fn reserve(&mut self) -> TokenId {
        self.next += 1;
        TokenId(self.next)
    }

    /// Returns the token, creating it on the first call.
    pub(crate) fn get(&mut self, TokenId(id): TokenId) -> CancelToken {
        self.created.entry(id).or_default().clone()
    }

    /// Removes the token of an answered request.
    pub(crate) fn forget(&mut self, TokenId(id): TokenId) {
        if !self.created.is_empty() {
            self.created.remove(&id);
        }
    }
}
