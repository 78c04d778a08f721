//! The receiving half of a link: bytes become lines.

use crate::process::ChildGuard;
use futures_core::Stream;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of one read: the capacity of a pipe.
const READ: usize = 64 << 10;
/// A buffer over this size is freed while the reader pauses.
const KEEP: usize = 2 << 20;
/// A buffer over this size is freed after the first small line.
const MAX_KEEP: usize = 16 << 20;
/// After this many small lines in a row a large buffer is freed.
const SMALL_LINES: u32 = 64;
/// Bytes of a line over the limit that are kept for the report.
const HEAD: usize = 512;

/// The receiving half of a [`Link`](crate::Link): complete lines, in order, none longer than the
/// limit.
///
/// Example: [`Link::split`](crate::Link::split).
pub struct FrameReader {
    source: Source,
    limit: usize,
    buffer: Vec<u8>,
    /// The start of the next line in `buffer`.
    start: usize,
    /// The end of the part of `buffer` that was searched for a line feed.
    searched: usize,
    /// Discarded bytes of a line over the limit, whose beginning is in `head`.
    skipped: usize,
    head: Vec<u8>,
    ended: bool,
    small_lines: u32,
    pub(crate) guard: Option<ChildGuard>,
}

pub(crate) enum Source {
    Bytes(Box<dyn AsyncRead + Send + Unpin>),
    KeepAlive(Box<dyn KeepAlive>),
    Frames(Pin<Box<dyn Stream<Item = io::Result<Vec<u8>>> + Send>>),
}

/// A source of bytes that must not be left alone while the connection pauses, such as a WebSocket
/// whose pings want an answer.
///
/// Its connection also keeps no read buffer while it is idle, because a server holds many of them.
///
/// Example: [`Link::from_keep_alive`](crate::Link::from_keep_alive).
pub trait KeepAlive: AsyncRead + Send + Unpin {
    /// Called instead of `poll_read` while the connection pauses. It may read ahead, within a bound
    /// of its own.
    ///
    /// # Errors
    /// The connection is over.
    fn poll_keep_alive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> io::Result<()>;
}

/// An item of the input. Ranges are for [`FrameReader::bytes`].
pub(crate) enum Received {
    Line(Range<usize>),
    /// A line of this many bytes was skipped; [`FrameReader::head`] is its beginning.
    Oversize(usize),
    /// The input ended within a line.
    Half(Range<usize>),
    End,
}

impl FrameReader {
    pub(crate) fn new(source: Source, limit: usize, guard: Option<ChildGuard>) -> Self {
        FrameReader {
            source,
            limit,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skipped: 0,
            head: Vec::new(),
            ended: false,
            small_lines: 0,
            guard,
        }
    }

    /// Sets the limit on the length of a line.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the child process, if the link started one. Dropping the reader ends it.
    pub fn child(&self) -> Option<&ChildGuard> {
        self.guard.as_ref()
    }

    /// Takes the child process, which then lives longer than the reader.
    pub fn take_child(&mut self) -> Option<ChildGuard> {
        self.guard.take()
    }

    /// Returns the next line without its line end, or `None` at the end of the input. Skips blank
    /// lines.
    ///
    /// # Errors
    /// `InvalidData` for a line over the limit, and only for that: the next call returns the
    /// following line. `UnexpectedEof` if the input ended within a line. Errors of the transport,
    /// which end the input.
    pub async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let range = loop {
            match poll_fn(|cx| self.poll_received(cx)).await? {
                Received::Line(range) if self.bytes(&range).trim_ascii().is_empty() => {}
                Received::Line(range) => break range,
                Received::End => return Ok(None),
                Received::Half(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the input ended within a line",
                    ));
                }
                Received::Oversize(size) => {
                    let limit = self.limit;
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("a line of {size} bytes was skipped, the limit is {limit}"),
                    ));
                }
            }
        };
        Ok(Some(self.bytes(&range)))
    }

    /// Keeps the peer satisfied while no line is read, for example by answers to pings. Ends only
    /// with an error; see [`KeepAlive`].
    pub async fn keep_alive(&mut self) -> io::Error {
        poll_fn(|cx| match self.poll_paused(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        })
        .await
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes of the line that was received last.
    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.buffer.get(range.clone()).unwrap_or_default()
    }

    /// Returns the beginning of the last line over the limit, for an error response to its sender.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the next line, reading if necessary.
    pub(crate) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Received>> {
        loop {
            if let Some(found) = self.take_line() {
                return Poll::Ready(Ok(found));
            }
            if self.ended {
                return Poll::Ready(Ok(self.take_end()));
            }
            match &mut self.source {
                Source::Bytes(_) => ready!(self.poll_fill(cx))?,
                Source::KeepAlive(_) => {
                    let Poll::Ready(filled) = self.poll_fill(cx) else {
                        if self.buffer.is_empty() {
                            self.buffer = Vec::new();
                        }
                        return Poll::Pending;
                    };
                    filled?;
                }
                Source::Frames(stream) => match ready!(stream.as_mut().poll_next(cx)) {
                    Some(Ok(frame)) => return Poll::Ready(Ok(self.take_frame(frame))),
                    Some(Err(error)) => return Poll::Ready(Err(self.fail(error))),
                    None => self.ended = true,
                },
            }
        }
    }

    // STDIO-04, STDIO-16: a line ends at 0x0A and nowhere else.
    fn take_line(&mut self) -> Option<Received> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            if self.buffer.len() - self.start > self.limit || self.skipped > 0 {
                self.skip_rest();
            }
            return None;
        };
        let (start, end) = (self.start, self.searched + at);
        self.start = end + 1;
        self.searched = end + 1;
        let is_small = end - start < self.buffer.capacity() / 4;
        self.small_lines = if is_small { self.small_lines.saturating_add(1) } else { 0 };
        if self.skipped > 0 || end - start > self.limit {
            self.keep_head(start..end);
            return Some(Received::Oversize(std::mem::take(&mut self.skipped) + end - start));
        }
        Some(Received::Line(start..end))
    }

    /// Discards the part of a line over the limit that has arrived, except its head.
    fn skip_rest(&mut self) {
        let rest = self.start..self.buffer.len();
        self.keep_head(rest.clone());
        self.skipped += rest.len();
        self.buffer.clear();
        self.start = 0;
        self.searched = 0;
    }

    fn keep_head(&mut self, rest: Range<usize>) {
        if self.skipped == 0 {
            let rest = self.buffer.get(rest).unwrap_or_default();
            self.head = rest.get(..HEAD).unwrap_or(rest).to_vec();
        }
    }

    fn take_end(&mut self) -> Received {
        let rest = self.start..self.buffer.len();
        self.start = self.buffer.len();
        self.searched = self.start;
        match (rest.is_empty(), self.skipped) {
            (true, 0) => Received::End,
            (_, 0) if self.bytes(&rest).trim_ascii().is_empty() => Received::End,
            (_, 0) => Received::Half(rest),
            (_, skipped) => {
                self.skipped = 0;
                Received::Oversize(skipped + rest.len())
            }
        }
    }

    fn take_frame(&mut self, frame: Vec<u8>) -> Received {
        self.buffer = frame;
        let whole = 0..self.buffer.len();
        self.start = whole.end;
        self.searched = whole.end;
        if whole.len() <= self.limit {
            return Received::Line(whole);
        }
        self.keep_head(whole.clone());
        self.buffer = Vec::new();
        self.start = 0;
        self.searched = 0;
        Received::Oversize(whole.len())
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.make_room();
        let read = match &mut self.source {
            Source::Bytes(source) => pin!(source.read_buf(&mut self.buffer)).poll(cx),
            Source::KeepAlive(source) => pin!(source.read_buf(&mut self.buffer)).poll(cx),
            Source::Frames(_) => return Poll::Ready(Ok(())),
        };
        match ready!(read) {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(self.fail(error))),
        }
        Poll::Ready(Ok(()))
    }

    /// The input ends with an error of the transport. A reader who goes on after a line over the
    /// limit must not go on after that.
    fn fail(&mut self, error: io::Error) -> io::Error {
        self.ended = true;
        if error.kind() != io::ErrorKind::InvalidData {
            return error;
        }
        io::Error::other(error.into_inner().unwrap_or_else(|| "invalid data".into()))
    }

    /// Moves the incomplete line to the front of the buffer and makes room for a read.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.shrink();
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < READ / 2 {
            self.buffer.reserve(READ);
        }
    }

    /// Keeps the source alive while the reader pauses.
    pub(crate) fn poll_paused(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.release_memory();
        match &mut self.source {
            Source::KeepAlive(source) => {
                let kept = Pin::new(&mut **source).poll_keep_alive(cx);
                kept.map_err(|error| self.fail(error))
            }
            Source::Bytes(_) | Source::Frames(_) => Ok(()),
        }
    }

    /// Frees a large empty buffer while the reader pauses.
    fn release_memory(&mut self) {
        if self.start == self.buffer.len() && self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
            self.start = 0;
            self.searched = 0;
        }
    }

    /// Shrinks the buffer after a huge line, but not between the large lines of a stream.
    fn shrink(&mut self) {
        let capacity = self.buffer.capacity();
        if capacity <= 4 * READ || self.buffer.len() > capacity / 4 {
            return;
        }
        if self.small_lines > if capacity > MAX_KEEP { 0 } else { SMALL_LINES } {
            self.buffer.shrink_to(READ);
            self.small_lines = 0;
        }
    }
}

impl std::fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameReader").field("limit", &self.limit).finish_non_exhaustive()
    }
}
