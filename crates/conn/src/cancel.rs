//! Cancellation of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A flag that is set once and can be awaited. Clones share the flag.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let token = attache_conn::CancelToken::new();
/// let waiting = tokio::spawn({
///     let token = token.clone();
///     async move { token.cancelled().await }
/// });
/// token.cancel();
/// waiting.await.unwrap();
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    notify: Notify,
    callbacks: Mutex<Vec<Callback>>,
}

type Callback = Box<dyn FnOnce() + Send>;

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and wakes all tasks that wait for it. A second call has no effect.
    pub fn cancel(&self) {
        if !self.0.cancelled.swap(true, Ordering::SeqCst) {
            self.0.notify.notify_waiters();
            let callbacks = std::mem::take(&mut *self.callbacks());
            callbacks.into_iter().for_each(|callback| callback());
        }
    }

    /// Calls `callback` when the flag is set, or at once if it is set already. It runs where
    /// [`cancel`](Self::cancel) is called, often in the reader of a connection, and must not block.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        let mut callbacks = self.callbacks();
        if !self.is_cancelled() {
            return callbacks.push(Box::new(callback));
        }
        drop(callbacks);
        callback();
    }

    fn callbacks(&self) -> MutexGuard<'_, Vec<Callback>> {
        self.0.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
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

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
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
