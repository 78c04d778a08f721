//! Lines become bytes.

use futures_sink::Sink;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// A buffer up to this size is kept for the next batch; a bigger one is given back at once.
const KEEP: usize = 4 << 20;
/// What a batch of small messages needs, and all that an idle connection keeps.
const SMALL: usize = 512 << 10;

/// The sending half of a [`Link`](crate::Link).
pub struct FrameWriter {
    drain: Drain,
    /// Whole lines on their way out.
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

    /// A writer that writes nowhere, to stand where a real one was dropped.
    pub(crate) fn nowhere() -> Self {
        FrameWriter::new(Drain::Bytes(Box::new(tokio::io::sink())))
    }

    /// Writes one line (given without its line feed) and flushes it.
    ///
    /// # Errors
    /// Whatever the transport says.
    pub async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.feed(line);
        self.flush().await
    }

    /// Takes a line without waiting; [`flush`](Self::flush) writes it together with others.
    pub fn feed(&mut self, line: &[u8]) {
        self.batch.extend_from_slice(line);
        self.batch.push(b'\n');
    }

    /// Writes what was fed. Cancelling and calling it again loses nothing.
    ///
    /// # Errors
    /// Whatever the transport says.
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_drain(cx)).await?;
        self.recycle();
        Ok(())
    }

    /// Flushes and tells the peer that nothing more comes.
    ///
    /// # Errors
    /// Whatever the transport says.
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

    /// Whether everything that was taken is written (and not necessarily flushed).
    pub(crate) fn is_drained(&self) -> bool {
        self.written == self.batch.len()
    }

    /// Exchanges the empty batch for `next`, which becomes the empty buffer to gather in.
    pub(crate) fn take_batch(&mut self, next: &mut Vec<u8>) {
        self.recycle();
        std::mem::swap(&mut self.batch, next);
    }

    /// The lines of the batch that was taken last.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.batch.strip_suffix(b"\n").unwrap_or(&self.batch).split(|&byte| byte == b'\n')
    }

    /// Writes once: at most what the transport takes in one go.
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

    /// One huge message must not cost its memory for the rest of the connection, and a stream of big ones must not cost
    /// an allocation each.
    fn recycle(&mut self) {
        self.batch.clear();
        self.written = 0;
        if self.batch.capacity() > KEEP {
            self.batch = Vec::new();
        }
    }

    /// Nothing is to be written for now: neither the batch nor the buffer that gathers the next one keeps much memory.
    pub(crate) fn rest(&mut self, next: &mut Vec<u8>) {
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
