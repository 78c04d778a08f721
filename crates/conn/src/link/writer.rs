//! The sending half of a link: lines become bytes.

use futures_sink::Sink;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// A buffer up to this size is kept for the next batch; a larger one is freed at once.
const KEEP: usize = 4 << 20;
/// The largest buffer that an idle connection keeps.
const SMALL: usize = 512 << 10;

/// The sending half of a [`Link`](crate::Link).
///
/// Example: [`Link::split`](crate::Link::split).
pub struct FrameWriter {
    drain: Drain,
    /// Complete lines that are being written.
    batch: Vec<u8>,
    written: usize,
    /// Something was written since the last flush.
    dirty: bool,
}

pub(crate) enum Drain {
    Bytes(Box<dyn AsyncWrite + Send + Unpin>),
    Frames(Pin<Box<dyn Sink<Vec<u8>, Error = io::Error> + Send>>),
}

impl FrameWriter {
    pub(crate) fn new(drain: Drain) -> Self {
        FrameWriter { drain, batch: Vec::new(), written: 0, dirty: false }
    }

    /// A writer that discards everything, as a replacement for a dropped one.
    pub(crate) fn sink() -> Self {
        FrameWriter::new(Drain::Bytes(Box::new(tokio::io::sink())))
    }

    /// Writes one line (without its line feed) and flushes it.
    ///
    /// # Errors
    /// Errors of the transport.
    pub async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.feed(line);
        self.flush().await
    }

    /// Buffers a line; [`flush`](Self::flush) writes it together with others.
    pub fn feed(&mut self, line: &[u8]) {
        self.batch.extend_from_slice(line);
        self.batch.push(b'\n');
    }

    /// Writes the buffered lines. It can be cancelled and called again without loss.
    ///
    /// # Errors
    /// Errors of the transport.
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_drain(cx)).await?;
        self.recycle();
        Ok(())
    }

    /// Flushes and closes the sending half.
    ///
    /// # Errors
    /// Errors of the transport.
    pub async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|cx| self.poll_close(cx)).await
    }

    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.drain {
            Drain::Bytes(bytes) => Pin::new(bytes).poll_shutdown(cx),
            Drain::Frames(sink) => sink.as_mut().poll_close(cx),
        }
    }

    /// Whether the batch is written, though perhaps not flushed.
    pub(crate) fn is_drained(&self) -> bool {
        self.written == self.batch.len()
    }

    /// Swaps the written batch with `next`, which becomes an empty buffer.
    pub(crate) fn take_batch(&mut self, next: &mut Vec<u8>) {
        self.recycle();
        std::mem::swap(&mut self.batch, next);
    }

    /// The lines of the current batch.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.batch.strip_suffix(b"\n").unwrap_or(&self.batch).split(|&byte| byte == b'\n')
    }

    /// Writes once, as much as the transport accepts.
    pub(crate) fn poll_write_some(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let rest = self.batch.get(self.written..).unwrap_or_default();
        let count = match &mut self.drain {
            Drain::Bytes(bytes) => ready!(Pin::new(bytes).poll_write(cx, rest))?,
            Drain::Frames(sink) => {
                ready!(sink.as_mut().poll_ready(cx))?;
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                sink.as_mut().start_send(rest.get(..end).unwrap_or_default().to_vec())?;
                (end + 1).min(rest.len())
            }
        };
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += count;
        self.dirty = true;
        Poll::Ready(Ok(count))
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.dirty {
            match &mut self.drain {
                Drain::Bytes(bytes) => ready!(Pin::new(bytes).poll_flush(cx))?,
                Drain::Frames(sink) => ready!(sink.as_mut().poll_flush(cx))?,
            }
            self.dirty = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_drained() {
            ready!(self.poll_write_some(cx))?;
        }
        self.poll_flush(cx)
    }

    /// Clears the batch and frees a huge one, but keeps the buffer of a stream of large messages.
    fn recycle(&mut self) {
        self.batch.clear();
        self.written = 0;
        if self.batch.capacity() > KEEP {
            self.batch = Vec::new();
        }
    }

    /// Frees large buffers while there is nothing to write.
    pub(crate) fn release_memory(&mut self, next: &mut Vec<u8>) {
        self.recycle();
        for buffer in [&mut self.batch, next] {
            if buffer.capacity() > SMALL {
                *buffer = Vec::new();
            }
        }
    }
}

impl std::fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameWriter")
            .field("waiting", &(self.batch.len() - self.written))
            .finish_non_exhaustive()
    }
}
