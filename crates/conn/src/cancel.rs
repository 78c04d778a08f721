//! A flag that is raised once and can be waited for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Says that somebody no longer wants an answer. Clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag and wakes everybody who waits for it. Doing so twice is the same as once.
    pub fn cancel(&self) {
        if !self.0.cancelled.swap(true, Ordering::SeqCst) {
            self.0.notify.notify_waiters();
        }
    }

    /// Whether the flag is up.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits for the flag.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            let notified = self.0.notify.notified();
            let mut notified = std::pin::pin!(notified);
            // Registered before the second look, so that a cancel between the two is not missed.
            notified.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }
}

/// The tokens of open requests. They are made when somebody asks for them: most requests are answered before.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    next: u64,
    made: BTreeMap<u64, CancelToken>,
}

/// An open request, and the token that it has or will have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenId(u64);

impl Tokens {
    pub(crate) fn reserve(&mut self) -> TokenId {
        self.next += 1;
        TokenId(self.next)
    }

    /// The token; the same one whoever asks, until it is [forgotten](Self::forget).
    pub(crate) fn get(&mut self, TokenId(id): TokenId) -> CancelToken {
        self.made.entry(id).or_default().clone()
    }

    /// The request is answered.
    pub(crate) fn forget(&mut self, TokenId(id): TokenId) {
        if !self.made.is_empty() {
            self.made.remove(&id);
        }
    }
}
