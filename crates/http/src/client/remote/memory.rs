//! Two links in memory: the one that a user holds, and the one whose lines a task carries over the
//! network.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use attache_conn::Link;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes in memory in each direction.
const BUFFER: usize = 64 << 10;

/// Returns the link of the user and that of the task. When the task has ended, the user reads the
/// error that `reason` gives, or the end of the link if there is none.
pub(super) fn links(reason: impl Fn() -> Option<io::Error> + Send + Unpin + 'static) -> (Link, Link) {
    let (near, far) = tokio::io::duplex(BUFFER);
    let (near_reader, near_writer) = tokio::io::split(near);
    let (far_reader, far_writer) = tokio::io::split(far);
    let reader = ReaderWithReason { reader: near_reader, reason };
    (Link::from_io(reader, near_writer), Link::from_io(far_reader, far_writer))
}

/// The reading half of the user's link. At its end it returns the reason as an error.
struct ReaderWithReason<R, F> {
    reader: R,
    reason: F,
}

impl<R: AsyncRead + Unpin, F: Fn() -> Option<io::Error> + Unpin> AsyncRead for ReaderWithReason<R, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = std::task::ready!(Pin::new(&mut self.reader).poll_read(cx, buffer));
        let is_end = result.is_ok() && buffer.filled().len() == before && buffer.remaining() > 0;
        match if is_end { (self.reason)() } else { None } {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(result),
        }
    }
}
