//! Connection-level events.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use attache_conn::{Backlog, Waiting};
use attache_wire::Json;
use attache_wire::v1::{ElicitationId, SessionId, SessionUpdate};

use futures_core::Stream;

use super::ElicitationAsk;

/// Bytes of unread events that are kept; the oldest are dropped first.
const KEPT: usize = 256 << 10;
/// Bytes of an event beside its text.
const EVENT_BYTES: usize = 128;

/// An event that belongs to no session.
///
/// Example: [`ConnectionEvents`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A login or logout.
    #[cfg(feature = "unstable")]
    AuthStatus(Box<attache_wire::v1::AuthStatusUpdateNotification>),
    /// A request for input that belongs to no session, for example during a login.
    Elicitation(ElicitationAsk),
    /// The user has finished at the page of that request.
    ElicitationComplete(ElicitationId),
    /// An update of a session that is not open on this connection.
    Stray {
        /// The session.
        session_id: SessionId,
        /// The update.
        update: Box<SessionUpdate>,
    },
    /// A notification without a handler.
    // EXT-08
    Notification {
        /// The method.
        method: String,
        /// Its params.
        params: Option<Json>,
    },
    /// A line that is not a valid message.
    Noise {
        /// The line, or its beginning.
        line: String,
        /// The reason.
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
    /// Whether there is a reader. Without one, questions are answered at once.
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

    /// Adds an event that was `bytes` long on the wire.
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

    /// Returns the stream, unless it is taken.
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

/// Connection-level events; also a [`Stream`]. Made by
/// [`AgentHandle::events`](super::AgentHandle::events).
///
/// ```
/// use attache::client::{AgentHandle, ConnectionEvent};
///
/// async fn watch(agent: AgentHandle) {
///     let Some(mut events) = agent.events() else { return };
///     while let Some(event) = events.next().await {
///         match event {
///             ConnectionEvent::Noise { line, why } => println!("not a message ({why}): {line}"),
///             ConnectionEvent::Elicitation(ask) => ask.decline(),
///             _ => {}
///         }
///     }
/// }
/// ```
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
