//! Bytes become lines.

use crate::process::ChildGuard;
use futures_core::Stream;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much one read asks for: what a pipe holds.
const READ: usize = 64 << 10;
/// A buffer up to this size is kept for the next big line; a bigger one is given back at once.
const KEEP: usize = 2 << 20;
/// After this many small fills a big buffer is given back.
const SMALL_FILLS: u32 = 64;
/// What is kept of a line that is too long, to report it.
const HEAD: usize = 512;

/// The receiving half of a [`Link`](crate::Link): whole lines, in order, none longer than the limit.
pub struct FrameReader {
    source: Source,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the next line begins in `buffer`.
    start: usize,
    /// Up to where `buffer` was searched for a line feed.
    searched: usize,
    /// How many bytes of a line that is too long have been thrown away, its head is in `head`.
    skipped: usize,
    head: Vec<u8>,
    ended: bool,
    small_fills: u32,
    pub(crate) guard: Option<ChildGuard>,
}

pub(crate) enum Source {
    Bytes(Box<dyn AsyncRead + Send + Unpin>),
    Frames(Pin<Box<dyn Stream<Item = io::Result<Vec<u8>>> + Send>>),
}

/// What the reader found, as ranges of [`FrameReader::bytes`] or [`FrameReader::head`].
pub(crate) enum Found {
    Line(Range<usize>),
    /// A line of this many bytes was skipped.
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
            small_fills: 0,
            guard,
        }
    }

    /// The same reader with another limit on the length of a line.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The process behind the link, if the link started one. It is asked to end when the reader is dropped.
    pub fn child(&self) -> Option<&ChildGuard> {
        self.guard.as_ref()
    }

    /// The next line without its line end; `None` at the end of the input. Blank lines are passed over.
    ///
    /// # Errors
    /// Whatever the transport says; `InvalidData` for a line that was longer than the limit, which was skipped: the next
    /// call goes on with the line after it; `UnexpectedEof` if the input ended within a line.
    pub async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let range = loop {
            match poll_fn(|cx| self.poll_found(cx)).await? {
                Found::Line(range) if self.bytes(&range).trim_ascii().is_empty() => {}
                Found::Line(range) => break range,
                Found::End => return Ok(None),
                Found::Half(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the input ended within a line",
                    ));
                }
                Found::Oversize(size) => {
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

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes of a line that was found last.
    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.buffer.get(range.clone()).unwrap_or_default()
    }

    /// How the line begins that was longer than the limit and was skipped last, for those who want to tell its sender.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Finds the next line among what was read, or reads.
    pub(crate) fn poll_found(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Found>> {
        loop {
            if let Some(found) = self.take_line() {
                return Poll::Ready(Ok(found));
            }
            if self.ended {
                return Poll::Ready(Ok(self.take_end()));
            }
            match &mut self.source {
                Source::Bytes(_) => ready!(self.poll_fill(cx))?,
                Source::Frames(stream) => match ready!(stream.as_mut().poll_next(cx)) {
                    Some(frame) => return Poll::Ready(Ok(self.whole_frame(frame?))),
                    None => self.ended = true,
                },
            }
        }
    }

    /// STDIO-04, STDIO-16: a line ends at 0x0A and nowhere else.
    fn take_line(&mut self) -> Option<Found> {
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
        if self.skipped > 0 || end - start > self.limit {
            self.keep_head(start..end);
            return Some(Found::Oversize(std::mem::take(&mut self.skipped) + end - start));
        }
        Some(Found::Line(start..end))
    }

    /// The line is too long and goes on: nothing of it is kept but its head.
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

    fn take_end(&mut self) -> Found {
        let rest = self.start..self.buffer.len();
        self.start = self.buffer.len();
        self.searched = self.start;
        match (rest.is_empty(), self.skipped) {
            (true, 0) => Found::End,
            (_, 0) if self.bytes(&rest).trim_ascii().is_empty() => Found::End,
            (_, 0) => Found::Half(rest),
            (_, skipped) => {
                self.skipped = 0;
                Found::Oversize(skipped + rest.len())
            }
        }
    }

    fn whole_frame(&mut self, frame: Vec<u8>) -> Found {
        self.buffer = frame;
        let whole = 0..self.buffer.len();
        self.start = whole.end;
        self.searched = whole.end;
        if whole.len() <= self.limit {
            return Found::Line(whole);
        }
        self.keep_head(whole.clone());
        self.buffer = Vec::new();
        self.start = 0;
        self.searched = 0;
        Found::Oversize(whole.len())
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.make_room();
        let Source::Bytes(source) = &mut self.source else {
            return Poll::Ready(Ok(()));
        };
        let read = pin!(source.read_buf(&mut self.buffer));
        match ready!(read.poll(cx)) {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(()))
    }

    /// Only a part of one line is left in the buffer when this is called; it moves to the front.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.give_back();
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < READ / 2 {
            self.buffer.reserve(READ);
        }
    }

    /// Nothing is read for now: a big buffer whose lines have all been taken is given back.
    pub(crate) fn rest(&mut self) {
        if self.start == self.buffer.len() && self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
            self.start = 0;
            self.searched = 0;
        }
    }

    /// One huge line must not cost its memory for the rest of the connection, and a stream of big ones must not cost an
    /// allocation each.
    fn give_back(&mut self) {
        let capacity = self.buffer.capacity();
        if capacity <= 4 * READ || self.buffer.len() > capacity / 4 {
            self.small_fills = 0;
            return;
        }
        self.small_fills += 1;
        if capacity > KEEP || self.small_fills > SMALL_FILLS {
            self.buffer.shrink_to(READ);
            self.small_fills = 0;
        }
    }
}

impl std::fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameReader").field("limit", &self.limit).finish_non_exhaustive()
    }
}
