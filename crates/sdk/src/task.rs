//! Tasks that end with their waiter, locks, and panics of user code.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::task::JoinHandle;

use crate::{Error, Result};

/// Locks a mutex even if a panic poisoned it: no locked data is ever left half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a task; the task is aborted if this is dropped first.
pub(crate) async fn join<T>(handle: JoinHandle<T>) -> Result<T> {
    let mut task = AbortOnDrop(handle);
    (&mut task.0).await.map_err(Error::internal)
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a synchronous handler. A panic in it is reported by the panic hook and ends here, not the
/// connection.
pub(crate) fn catch_handler_panic(handler: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(handler));
}

/// Runs a handler's future and turns a panic into an error, so that the request is still answered.
/// The future is not polled again, so its broken state is never seen.
pub(crate) async fn catch<F: Future>(future: F) -> Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Error::internal("a handler panicked"))),
    })
    .await
}
