//! What an agent tells beside its sessions.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use attache_conn::{Backlog, Waiting};
use attache_wire::Json;
use attache_wire::v1::{AuthStatusUpdateNotification, ElicitationId, SessionId, SessionUpdate};

use futures_core::Stream;

use super::ElicitationAsk;

/// How many bytes are kept when nobody reads them; the oldest go first.
const KEPT: usize = 256 << 10;
/// What an event costs beside its text.
const EVENT_BYTES: usize = 128;

/// Something that belongs to the connection and to no session.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionEvent {
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

pub(crate) struct ConnectionEventQueue {
    inner: Mutex<Inner>,
    backlog: Backlog,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<(ConnectionEvent, usize)>,
    bytes: usize,
    waker: Option<Waker>,
    /// Whether somebody reads. A question is not kept for a reader that may never come.
    read: bool,
    closed: bool,
}

impl ConnectionEventQueue {
    pub(crate) fn new(backlog: Backlog) -> Self {
        ConnectionEventQueue { inner: Mutex::default(), backlog }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened that was so many bytes long on the wire.
    pub(crate) fn push(&self, event: ConnectionEvent, bytes: usize) {
        let mut inner = self.lock();
        if !inner.read && matches!(event, ConnectionEvent::Elicitation(_)) {
            drop(inner);
            return drop(event);
        }
        inner.queue.push_back((event, bytes + EVENT_BYTES));
        inner.bytes += bytes + EVENT_BYTES;
        let mut forgotten = Vec::new();
        // The newest one stays, however big it is.
        while inner.bytes > KEPT && inner.queue.len() > 1 {
            forgotten.extend(inner.pop());
        }
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

    fn poll(&self, cx: &Context<'_>) -> Poll<Option<ConnectionEvent>> {
        let mut inner = self.lock();
        if let Some(event) = inner.pop() {
            return Poll::Ready(Some(event));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The right to read, which only one has at a time.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<ConnectionEvents> {
        let mut inner = self.lock();
        let free = !inner.read;
        inner.read = true;
        drop(inner);
        free.then(|| ConnectionEvents { queue: self.clone(), waiting: None })
    }
}

impl Inner {
    fn pop(&mut self) -> Option<ConnectionEvent> {
        let (event, bytes) = self.queue.pop_front()?;
        self.bytes -= bytes;
        Some(event)
    }
}

/// The stream of what an agent tells beside its sessions; see [`AgentHandle::events`](super::AgentHandle::events).
pub struct ConnectionEvents {
    queue: Arc<ConnectionEventQueue>,
    /// Held while a task polls the stream, so that the reader does not rest.
    waiting: Option<Waiting>,
}

impl ConnectionEvents {
    /// The next event; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        let mut waiting = None;
        poll_fn(|cx| {
            let polled = self.queue.poll(cx);
            if polled.is_pending() {
                waiting.get_or_insert_with(|| self.queue.backlog.waiting());
            }
            polled
        })
        .await
    }
}

impl Stream for ConnectionEvents {
    type Item = ConnectionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ConnectionEvent>> {
        let polled = self.queue.poll(cx);
        self.waiting = match (polled.is_pending(), self.waiting.take()) {
            (true, None) => Some(self.queue.backlog.waiting()),
            (pending, waiting) => waiting.filter(|_| pending),
        };
        polled
    }
}

impl Drop for ConnectionEvents {
    fn drop(&mut self) {
        let mut inner = self.queue.lock();
        inner.read = false;
        let left = std::mem::take(&mut inner.queue);
        inner.bytes = 0;
        drop(inner);
        drop(left);
    }
}

impl std::fmt::Debug for ConnectionEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectionEvents")
    }
}
