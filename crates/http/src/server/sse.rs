//! The body of a stream of server-sent events.

use super::connection::Connection;
use super::streams::{ReaderId, Session};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// A comment, which keeps proxies from closing a silent stream.
// HTTP-32
const COMMENT: &[u8] = b":\n\n";

/// The events of one stream, until a later reader replaces this one or the connection ends.
#[derive(Debug)]
pub(super) struct Events {
    connection: Arc<Connection>,
    session: Session,
    id: ReaderId,
    period: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Events {
    pub(super) fn new(
        connection: Arc<Connection>,
        (session, id): (Session, ReaderId),
        period: Duration,
    ) -> Events {
        Events { connection, session, id, period, timer: Box::pin(sleep(period)) }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let taken = self.connection.poll_take(&self.session, self.id, cx);
        let silent = taken.is_pending();
        if silent && self.timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let next = Instant::now() + self.period;
        self.timer.as_mut().reset(next);
        match taken {
            Poll::Ready(bytes) => Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Poll::Pending => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT))))),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.detach(&self.session, self.id);
    }
}
