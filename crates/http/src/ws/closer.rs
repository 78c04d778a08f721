//! Closing a WebSocket from outside of its link.

use super::frame::Close;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Closes a WebSocket whose link belongs to another task. Cheap to clone.
///
/// ```
/// use attache_http::ws::{Closer, Role, Settings, link_with_closer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (socket, _peer) = tokio::io::duplex(1024);
/// let (link, closer) = link_with_closer(socket, Role::Server, Settings::default(), Vec::new());
/// closer.set_end(1011, "the agent has ended");
/// closer.close(1012, "the server restarts");
/// assert!(link.split().0.next().await.is_err());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Closer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Option<Close>,
    end: Option<Close>,
    waker: Option<Waker>,
}

impl Closer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the WebSocket with a status and a reason for the peer. Its link ends with an error.
    pub fn close(&self, code: u16, reason: &str) {
        let mut state = self.lock();
        state.now.get_or_insert_with(|| Close { code, reason: reason.to_owned() });
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sets the status that the peer gets if our side closes the link; 1000 without.
    pub fn set_end(&self, code: u16, reason: &str) {
        self.lock().end = Some(Close { code, reason: reason.to_owned() });
    }

    /// Takes the request to close, or registers the task for it.
    pub(super) fn take(&self, cx: &Context<'_>) -> Option<Close> {
        let mut state = self.lock();
        let close = state.now.clone();
        if close.is_none() && !state.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        close
    }

    pub(super) fn end(&self) -> Option<Close> {
        self.lock().end.clone()
    }
}
