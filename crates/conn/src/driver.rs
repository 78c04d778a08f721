//! The driver: reader and writer of a connection in one future, so that a round trip on an idle
//! runtime costs one read, one write and the wait between them.

use crate::batch::Batch;
use crate::incoming::{self, Disposition, IncomingNotification, IncomingRequest, Params};
use crate::link::{Flow, FrameReader, FrameWriter, Received, Tap};
use crate::shared::{Shared, wake};
use crate::{CallError, Closed, Link, Reason, Responder};
use attache_rpc::{Event, Frame, Id, Scan};
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tracing::{Span, debug, trace};

/// Handler of the peer's messages.
///
/// These are plain functions: they route and spawn but cannot wait, so no handler can block the
/// reader. They are called in the order of the wire.
pub trait Dispatch: Send + 'static {
    /// Handles a request.
    fn request(&mut self, request: IncomingRequest<'_>);

    /// Handles a notification.
    fn notification(&mut self, notification: IncomingNotification<'_>);

    /// Handles a line that is not a message: a log line, broken JSON, or a line that is too long
    /// (then `line` is its beginning). A due error response is already sent.
    fn noise(&mut self, line: &[u8], reason: &str) {
        let _ = (line, reason);
    }

    /// Handles the end of the input. Called once, unless the driver is dropped earlier.
    fn closed(&mut self, closed: &Closed) {
        let _ = closed;
    }
}

/// The future in which a connection runs; resolves when the connection is over. Dropping it ends
/// the connection at once.
#[must_use = "a connection makes progress only while its driver is polled"]
pub struct Driver {
    shared: Arc<Shared>,
    span: Span,
    run: Pin<Box<dyn Future<Output = Closed> + Send>>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, link: Link, dispatch: Box<dyn Dispatch>) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        let id = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let span = tracing::info_span!("connection", id, peer = shared.side.peer());
        span.in_scope(|| debug!(?link, "connection opened"));
        let run = Box::pin(run(Arc::clone(&shared), link, dispatch));
        Driver { shared, span, run }
    }
}

impl Future for Driver {
    type Output = Closed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closed> {
        let Driver { span, run, .. } = &mut *self;
        let _entered = span.enter();
        run.as_mut().poll(cx)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.shared.ended().is_none() {
            self.span.in_scope(|| debug!("driver dropped"));
            self.shared.end(&self.shared.closed(Reason::Dropped));
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// Bytes that are read, and bytes that are written, before other tasks run.
const YIELD_BYTES: usize = 512 << 10;
/// Bytes that a request counts towards [`YIELD_BYTES`]. Dispatch may do all the work of a request,
/// so the driver yields and writes responses after 64 of them.
const REQUEST_COST: usize = 8 << 10;
/// How long a child whose output has ended may take to exit before its end is reported without a
/// status.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// Bytes of an incomplete last line that are reported.
const HALF_LINE_SHOWN: usize = 200;

async fn run(shared: Arc<Shared>, mut link: Link, dispatch: Box<dyn Dispatch>) -> Closed {
    let tap = link.take_tap();
    let (reader, writer) = link.split();
    let reader = reader.with_limit(shared.limits.frame);
    let mut connection = Connection { shared, reader, writer, dispatch, tap, deadline: None, batch: None };
    let cause = poll_fn(|cx| connection.poll_run(cx)).await;
    connection.finish(cause).await
}

struct Connection {
    shared: Arc<Shared>,
    reader: FrameReader,
    writer: FrameWriter,
    dispatch: Box<dyn Dispatch>,
    tap: Option<Tap>,
    /// When a local close stops waiting for the peer to read the rest.
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
    /// The batch that waits for more bytes.
    batch: Option<Batch>,
}

/// Why the connection stopped.
enum Cause {
    Eof,
    Half(String),
    Read(io::Error),
    Write(io::Error),
    Local,
}

/// Progress of one direction in one poll.
enum Progress {
    /// There may be more to do after other tasks have run.
    More,
    /// Nothing to do until the driver is woken.
    Idle,
}

impl Connection {
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        let (closing, unsent) = {
            let mut state = self.shared.lock();
            state.driver_runs(cx.waker());
            (state.closing, if state.urgent { 0 } else { state.out.len() })
        };
        self.batch = match self.writer.is_drained() && !closing {
            true => Batch::next(self.batch, unsent, Instant::now),
            false => None,
        };
        let batching = self.batch.is_some();
        let mut again = false;
        match self.poll_lines(cx) {
            Poll::Ready(Err(cause)) => return Poll::Ready(cause),
            Poll::Ready(Ok(Progress::More)) => again = true,
            Poll::Ready(Ok(Progress::Idle)) | Poll::Pending => {}
        }
        if batching {
            // The driver runs again after all tasks that have yielded.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
        }
        match if batching { Poll::Pending } else { self.poll_batches(cx) } {
            Poll::Ready(Err(error)) => return Poll::Ready(Cause::Write(error)),
            Poll::Ready(Ok(Progress::More)) => again = true,
            Poll::Ready(Ok(Progress::Idle)) if closing => return Poll::Ready(Cause::Local),
            Poll::Ready(Ok(Progress::Idle)) | Poll::Pending => {}
        }
        if again {
            cx.waker().wake_by_ref();
        }
        if closing {
            let linger = self.shared.limits.linger;
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(linger)));
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Cause::Local);
        }
        Poll::Pending
    }

    /// Reads and dispatches. `Err` is the end of the connection.
    fn poll_lines(&mut self, cx: &mut Context<'_>) -> Poll<Result<Progress, Cause>> {
        let mut taken = 0;
        while taken < YIELD_BYTES {
            if self.shared.backlog.pause(cx) || self.has_too_much_unsent() {
                let paused = self.reader.poll_paused(cx).map_err(Cause::Read);
                return Poll::Ready(paused.map(|()| Progress::Idle));
            }
            match ready!(self.reader.poll_received(cx)) {
                Ok(Received::Line(range)) => {
                    taken += range.len() + 1 + self.line(&range);
                }
                Ok(Received::Oversize(size)) => self.oversize(size),
                Ok(Received::Half(range)) => {
                    let line = self.reader.bytes(&range);
                    let shown = line.get(..HALF_LINE_SHOWN).unwrap_or(line);
                    return Poll::Ready(Err(Cause::Half(String::from_utf8_lossy(shown).into_owned())));
                }
                Ok(Received::End) => return Poll::Ready(Err(Cause::Eof)),
                Err(error) => return Poll::Ready(Err(Cause::Read(error))),
            }
        }
        Poll::Ready(Ok(Progress::More))
    }

    /// A peer that sends requests and never reads the responses would fill the memory. Above the
    /// hard limit the reader pauses until the writer has made progress.
    fn has_too_much_unsent(&self) -> bool {
        !self.writer.is_drained() && self.shared.lock().unsent() > self.shared.limits.unsent_hard
    }

    /// Dispatches a line. Returns its cost beside its bytes.
    fn line(&mut self, range: &Range<usize>) -> usize {
        let line = self.reader.bytes(range);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(tap) = &mut self.tap {
            tap(Flow::In, line);
        }
        trace!(bytes = line.len(), "line received");
        let mut inbound = Inbound { shared: &self.shared, dispatch: &mut *self.dispatch, line };
        match Scan::line(line, self.shared.limits.depth) {
            Scan::Call(call) => {
                let (id, method, params) = incoming::unvalidated(call);
                inbound.call(id, method, params)
            }
            Scan::Frame(frame) => inbound.frame(frame),
        }
    }

    /// Handles a line that was too long: the request or response that it was fails.
    fn oversize(&mut self, size: usize) {
        let head = self.reader.head();
        let why = format!("a message of {size} bytes is larger than {} bytes", self.reader.limit());
        if let Event::Response { waiter, outcome, .. } =
            self.shared.accept(Frame::parse_head(head, &why), head)
        {
            waiter.complete(outcome.map_err(CallError::Refused));
        }
        debug!(bytes = size, "line too long");
        self.dispatch.noise(head, &why);
    }

    /// Writes the buffered lines.
    fn poll_batches(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Progress>> {
        let mut written = 0;
        while written < YIELD_BYTES {
            if self.writer.is_drained() {
                ready!(self.writer.poll_flush(cx))?;
                let mut state = self.shared.lock();
                state.taken = 0;
                if state.out.is_empty() {
                    state.urgent = false;
                    self.writer.release_memory(&mut state.out);
                    state.writer_idle = true;
                    let slots = state.slots_to_wake(&self.shared.limits);
                    drop(state);
                    slots.into_iter().for_each(Waker::wake);
                    return Poll::Ready(Ok(Progress::Idle));
                }
                state.taken = state.out.len();
                state.urgent = false;
                self.writer.take_batch(&mut state.out);
                let first = state.room.first();
                let slots = state.slots_to_wake(&self.shared.limits);
                drop(state);
                wake(first);
                slots.into_iter().for_each(Waker::wake);
                if let Some(tap) = &mut self.tap {
                    self.writer.lines().for_each(|line| tap(Flow::Out, line));
                }
            }
            written += ready!(self.writer.poll_write_some(cx))?;
        }
        Poll::Ready(Ok(Progress::More))
    }

    async fn finish(mut self, cause: Cause) -> Closed {
        let cause = match cause {
            Cause::Write(error) => self.drain_input(error).await,
            other => other,
        };
        let local = matches!(cause, Cause::Local);
        let closed = self.shared.closed(match cause {
            Cause::Eof => Reason::Eof,
            Cause::Half(line) => Reason::HalfLine(line),
            Cause::Read(error) | Cause::Write(error) => Reason::Io(error.to_string()),
            Cause::Local => Reason::LocalClose,
        });
        let shared = Arc::clone(&self.shared);
        let closed = match self.reader.guard.is_some() {
            true => self.finish_child(closed, local).await,
            false => self.finish_link(closed, local).await,
        };
        shared.end(&closed);
        debug!(reason = ?closed.reason, exit = ?closed.exit, "connection closed");
        closed
    }

    /// Reads the messages of a peer before writing to it failed. Its end of input, if it is there,
    /// is a better reason than a broken pipe.
    async fn drain_input(&mut self, error: io::Error) -> Cause {
        let end = poll_fn(|cx| {
            loop {
                match self.poll_lines(cx) {
                    Poll::Ready(Ok(Progress::More)) => {}
                    Poll::Ready(Err(cause)) => return Poll::Ready(Some(cause)),
                    Poll::Ready(Ok(Progress::Idle)) | Poll::Pending => return Poll::Ready(None),
                }
            }
        });
        end.await.unwrap_or(Cause::Write(error))
    }

    async fn finish_link(mut self, closed: Closed, local: bool) -> Closed {
        self.close_read(&closed);
        let linger = self.shared.limits.linger;
        if !local {
            // The peer may be half-closed: open requests still get a response.
            let rest = poll_fn(|cx| {
                self.shared.lock().driver_runs(cx.waker());
                match self.poll_batches(cx) {
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(Progress::More)) => cx.waker().wake_by_ref(),
                    Poll::Ready(Ok(Progress::Idle)) if self.shared.lock().machine.open() == 0 => {
                        return Poll::Ready(());
                    }
                    Poll::Ready(Ok(Progress::Idle)) | Poll::Pending => {}
                }
                Poll::Pending
            });
            within(linger, rest).await;
        }
        within(linger, self.writer.close()).await;
        closed
    }

    async fn finish_child(mut self, closed: Closed, local: bool) -> Closed {
        let Some(guard) = self.reader.guard.take() else {
            return closed;
        };
        // STDIO-10: the end of its input asks the child to exit.
        drop(self.writer);
        self.writer = FrameWriter::sink();
        let mut closed = closed;
        if !local {
            let exit = within(EXIT_WAIT, guard.wait()).await;
            closed = closed.with_child(exit, guard.stderr_tail());
        }
        self.close_read(&closed);
        // A child that still prints must not be blocked by a full pipe while it exits.
        let exit = {
            let mut shutdown = pin!(guard.shutdown());
            let mut open = true;
            poll_fn(|cx| {
                while open {
                    match self.reader.poll_received(cx) {
                        Poll::Ready(Ok(Received::End) | Err(_)) => open = false,
                        Poll::Ready(Ok(_)) => {}
                        Poll::Pending => break,
                    }
                }
                shutdown.as_mut().poll(cx)
            })
            .await
        };
        closed.with_child(Some(exit), guard.stderr_tail())
    }

    /// Fails open calls, cancels open requests of the peer and notifies the dispatch.
    fn close_read(&mut self, closed: &Closed) {
        self.shared.close_read(closed);
        for token in self.shared.open_tokens() {
            token.cancel();
        }
        self.dispatch.closed(closed);
    }
}

/// One line on its way to the dispatch.
struct Inbound<'a> {
    shared: &'a Arc<Shared>,
    dispatch: &'a mut dyn Dispatch,
    line: &'a [u8],
}

impl<'a> Inbound<'a> {
    fn frame(&mut self, frame: Frame<'a>) -> usize {
        match frame {
            Frame::Request { id, method, params } if !method.starts_with('$') => {
                self.call(Some(id), method, Params::Valid(params))
            }
            Frame::Notification { method, params } if !method.starts_with('$') => {
                self.call(None, method, Params::Valid(params))
            }
            frame => self.event(frame),
        }
    }

    /// Dispatches a request or a notification.
    fn call(&mut self, id: Option<Id>, method: Cow<'a, str>, params: Params<'a>) -> usize {
        trace!(%method, id = id.as_ref().map(tracing::field::display), "message received");
        let mut disposition = Disposition::default();
        let is_request = id.is_some();
        match id {
            Some(id) => {
                let call = (id, method, params);
                self.dispatch.request(IncomingRequest::new(self.shared, self.line, call, &mut disposition));
            }
            None => {
                let call =
                    IncomingNotification::new(self.shared, self.line, (method, params), &mut disposition);
                self.dispatch.notification(call);
            }
        }
        match disposition {
            Disposition::Consumed if is_request => return REQUEST_COST,
            Disposition::Consumed => {}
            Disposition::Refused(reason) => self.noise(self.line, reason),
            Disposition::Dropped if params.is_valid() => self.dropped(is_request),
            Disposition::Dropped | Disposition::Invalid => return self.frame(self.parse()),
        }
        0
    }

    fn parse(&self) -> Frame<'a> {
        Frame::parse(self.line, self.shared.limits.depth)
    }

    // RPC-24: a request that its handler dropped, perhaps by a panic, gets an error response.
    fn dropped(&mut self, is_request: bool) {
        if is_request && let Frame::Request { id, .. } = self.parse() {
            match self.shared.open_request(&id, self.line.len()) {
                Ok(token) => drop(Responder::new(self.shared, id, token, self.line.len())),
                Err(reason) => self.noise(self.line, reason),
            }
        }
    }

    fn noise(&mut self, line: &[u8], reason: &str) {
        debug!(bytes = line.len(), reason, "message refused");
        self.dispatch.noise(line, reason);
    }

    /// Handles a frame that is not for the dispatch.
    fn event(&mut self, frame: Frame<'a>) -> usize {
        match self.shared.accept(frame, self.line) {
            Event::Response { waiter, id, outcome } => {
                trace!(id, ok = outcome.is_ok(), "response received");
                waiter.complete(outcome.map_err(CallError::Refused));
            }
            Event::CancelRequest { token } => {
                let token = self.shared.lock().tokens.get(token);
                token.cancel();
            }
            Event::Noise { line, reason } => self.noise(line, &reason),
            Event::Ignored { reason } => trace!(reason, "message ignored"),
            Event::Request { .. } | Event::Notification { .. } => {}
        }
        0
    }
}

/// Awaits `future`, or returns `None` after `limit`. A future that is ready at once needs no timer.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut sleep: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit))).as_mut().poll(cx).map(|()| None)
    })
    .await
}
