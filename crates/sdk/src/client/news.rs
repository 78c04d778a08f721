//! What an agent tells beside its sessions.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use attache_wire::Json;
use attache_wire::v1::{AuthStatusUpdateNotification, ElicitationId, SessionId, SessionUpdate};

use super::ElicitationAsk;

/// How many are kept when nobody reads them; the oldest go first.
const KEPT: usize = 256;

/// Something that belongs to the connection and to no session.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// Who is logged in changed.
    AuthStatus(Box<AuthStatusUpdateNotification>),
    /// The agent asks for input while it serves a request that belongs to no session, for example `authenticate`.
    Elicitation(ElicitationAsk),
    /// What such a question started outside of the protocol is done.
    ElicitationComplete(ElicitationId),
    /// An update for a session that is not open here.
    Stray {
        /// The session.
        session_id: SessionId,
        /// The update.
        update: Box<SessionUpdate>,
    },
    /// A notification that nobody handles (EXT-08).
    Notification {
        /// The method.
        method: String,
        /// Its params.
        params: Option<Json>,
    },
    /// Something that could not be read, with the reason: a log line on the wrong stream, a message off the schema.
    Noise {
        /// The line, or its beginning.
        line: String,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Default)]
pub(crate) struct News(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    queue: VecDeque<AgentEvent>,
    waker: Option<Waker>,
    /// Whether somebody reads. A question is not kept for a reader that may never come.
    read: bool,
    closed: bool,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: AgentEvent) {
        let mut inner = self.lock();
        if !inner.read && matches!(event, AgentEvent::Elicitation(_)) {
            drop(inner);
            return drop(event);
        }
        inner.queue.push_back(event);
        let forgotten = (inner.queue.len() > KEPT).then(|| inner.queue.pop_front());
        let waker = inner.waker.take();
        drop(inner);
        drop(forgotten);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut inner = self.lock();
        if let Some(event) = inner.queue.pop_front() {
            return Poll::Ready(Some(event));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The right to read, which only one has at a time.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<Events> {
        let mut inner = self.lock();
        let free = !inner.read;
        inner.read = true;
        drop(inner);
        free.then(|| Events(self.clone()))
    }
}

/// The stream of what an agent tells beside its sessions; see [`Agent::events`](super::Agent::events).
pub struct Events(Arc<News>);

impl Events {
    /// The next event; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        poll_fn(|cx| self.0.poll(cx)).await
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.read = false;
        let left = std::mem::take(&mut inner.queue);
        drop(inner);
        drop(left);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
