//! A request of ours as a future.

use crate::shared::{Over, Shared};
use crate::waiter::Waiter;
use crate::{CallError, CallId, Reason, Waiting};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// A sent request; resolves to the undecoded result. Dropping it earlier sends `$/cancel_request`.
#[must_use = "dropping a call cancels it"]
pub struct Call {
    shared: Arc<Shared>,
    id: CallId,
    response: oneshot::Receiver<Result<Box<RawValue>, CallError>>,
    /// The reader must not pause while a caller waits for a response.
    waiting: Option<Waiting>,
}

impl Call {
    pub(crate) fn send<P: Serialize + ?Sized>(
        shared: &Arc<Shared>,
        method: &str,
        params: &P,
        over: Over<'_>,
    ) -> Call {
        let (sender, response) = oneshot::channel();
        let waiting = Some(shared.backlog.waiting());
        let id = shared.request(method, params, Waiter::Call(sender), over);
        Call { shared: Arc::clone(shared), id, response, waiting }
    }

    /// Returns the id, for logs.
    pub fn id(&self) -> CallId {
        self.id
    }
}

impl Future for Call {
    type Output = Result<Box<RawValue>, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = std::task::ready!(Pin::new(&mut self.response).poll(cx));
        self.waiting = None;
        self.id = CallId(None);
        // The machine keeps the sender until it is completed, so it is never dropped silently.
        let lost = |_| Err(CallError::Closed(self.shared.closed(Reason::Dropped)));
        Poll::Ready(response.unwrap_or_else(lost))
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
