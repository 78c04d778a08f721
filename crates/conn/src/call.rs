//! Requests of ours, from the caller's side.

use crate::shared::Shared;
use crate::{Closed, Waiting};
use attache_rpc::{ErrorObject, RequestError};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Why a call brought no result.
#[derive(Debug)]
pub enum CallError {
    /// The connection ended before the answer.
    Closed(Closed),
    /// The peer answered with an error.
    Refused(ErrorObject),
    /// It was not sent: its parameters cannot be serialized, or too many calls are open.
    Encode(RequestError),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Closed(closed) => closed.fmt(f),
            CallError::Refused(error) => error.fmt(f),
            CallError::Encode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallError::Closed(closed) => Some(closed),
            CallError::Refused(error) => Some(error),
            CallError::Encode(error) => Some(error),
        }
    }
}

/// How many bytes may wait to be written before nothing of our own is added that does not wait for room.
pub(crate) const OWN_UNSENT: usize = 64 << 20;

/// Names a call made with [`Peer::call_with`](crate::Peer::call_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub(crate) Option<i64>);

/// Who waits for the answer to a request.
pub(crate) enum Waiter {
    Call(oneshot::Sender<Result<Box<RawValue>, CallError>>),
    Callback(OnAnswer),
}

/// Runs in the reader, between two messages.
type OnAnswer = Box<dyn FnOnce(Result<&RawValue, CallError>) + Send>;

impl Shared {
    /// Sends a request; `waiter` is settled exactly once, at the latest when the connection ends.
    pub(crate) fn request<P: Serialize + ?Sized>(&self, method: &str, params: &P, waiter: Waiter) -> CallId {
        // The waiter is the caller's and outlives the lock, also when serializing panics: dropping it may need the lock.
        let mut waiter = Some(waiter);
        let sent = self.write(|state| {
            if let Some(closed) = self.refusal(state).or_else(|| state.deaf.clone()) {
                return Err(CallError::Closed(closed));
            }
            if state.out.len() > OWN_UNSENT {
                // Calls that are made and dropped, made and dropped, have no other bound.
                return Err(CallError::Encode(RequestError::TooMany));
            }
            let id = state.machine.send(method, params, &mut state.out).map_err(CallError::Encode)?;
            if let Some(waiter) = waiter.take() {
                state.machine.wait(id, waiter);
            }
            Ok(id)
        });
        match (sent, waiter) {
            (Ok(id), _) => CallId(Some(id)),
            (Err(error), Some(waiter)) => {
                waiter.settle(Err(error));
                CallId(None)
            }
            (Err(_), None) => CallId(None),
        }
    }

    /// CANCEL-13: the peer is told that nobody waits any more.
    pub(crate) fn abandon(&self, CallId(id): CallId) {
        let Some(id) = id else { return };
        // Dropped only after the lock is free.
        let waiter = self
            .write(|state| if state.is_mute() { None } else { state.machine.abandon(id, &mut state.out) });
        drop(waiter);
    }
}

/// A request on its way; resolves to the undecoded result. Dropping it before that sends `$/cancel_request`.
#[must_use = "dropping a call cancels it"]
pub struct Call {
    shared: Arc<Shared>,
    id: CallId,
    answer: oneshot::Receiver<Result<Box<RawValue>, CallError>>,
    /// While somebody waits here the reader must not rest.
    waiting: Option<Waiting>,
}

impl Call {
    pub(crate) fn send<P: Serialize + ?Sized>(shared: &Arc<Shared>, method: &str, params: &P) -> Call {
        let (sender, answer) = oneshot::channel();
        let waiting = Some(shared.backlog.waiting());
        let id = shared.request(method, params, Waiter::Call(sender));
        Call { shared: Arc::clone(shared), id, answer, waiting }
    }

    /// Its name, for logs.
    pub fn id(&self) -> CallId {
        self.id
    }
}

impl Future for Call {
    type Output = Result<Box<RawValue>, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(Pin::new(&mut self.answer).poll(cx));
        self.waiting = None;
        self.id = CallId(None);
        // The sender lives in the machine until it is settled, so it is never dropped silently.
        let lost = |_| Err(CallError::Closed(self.shared.closed(crate::Reason::Dropped)));
        Poll::Ready(answer.unwrap_or_else(lost))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.abandon(self.id);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.id).finish_non_exhaustive()
    }
}
