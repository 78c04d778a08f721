//! The one future of a connection: reader and writer in one place, so that a round trip on a quiet runtime costs a read, a
//! write and the wait between them.

use crate::link::{Flow, Found, FrameReader, FrameWriter, Tap};
use crate::shared::{Shared, wake};
use crate::ticket::{Fate, Ticket};
use crate::{CallError, Closed, Link, Reason, Responder};
use attache_rpc::{Event, Frame, Unread};
use serde_json::value::RawValue;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// Receives what the peer says.
///
/// These are plain functions: dispatch routes and spawns, it never waits, so no handler can block the reader and the
/// order in which they are called is the order of the wire.
pub trait Dispatch: Send + 'static {
    /// The peer wants an answer.
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder);

    /// The peer tells something.
    fn notification(&mut self, method: &str, params: Option<&RawValue>);

    /// The peer tells something, perhaps: nobody has looked at `params` yet, and it may not even be JSON. `true` if it was
    /// read to its end as one JSON value, with nothing behind it, and is dealt with. `false` if nothing was done
    /// about it: then the line is read as any other.
    ///
    /// For what comes so often that looking at its text twice would be felt.
    fn unread(&mut self, method: &str, params: &str) -> bool {
        let _ = (method, params);
        false
    }

    /// The same for what may be a request. Once its params are read, and not before, its ticket may be [taken](Ticket::take); a
    /// ticket that is dropped means that nothing was done.
    fn unread_request(&mut self, method: &str, params: &str, ticket: Ticket<'_>) {
        let _ = (method, params, ticket);
    }

    /// The peer sent something that is not a message: a log line, broken JSON, a line that is too long (then `line` is
    /// only its beginning). If an answer was due it is given already.
    fn noise(&mut self, line: &[u8], why: &str) {
        let _ = (line, why);
    }

    /// Nothing more will come from the peer. Called once, unless the driver is dropped before the end.
    fn closed(&mut self, why: &Closed) {
        let _ = why;
    }
}

/// The future that moves a connection; it resolves when the connection is over. Dropping it ends the connection at once.
#[must_use = "a connection moves only while its driver is polled"]
pub struct Driver {
    shared: Arc<Shared>,
    run: Pin<Box<dyn Future<Output = Closed> + Send>>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, link: Link, dispatch: Box<dyn Dispatch>) -> Self {
        let run = Box::pin(run(Arc::clone(&shared), link, dispatch));
        Driver { shared, run }
    }
}

impl Future for Driver {
    type Output = Closed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closed> {
        self.run.as_mut().poll(cx)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.shared.ended().is_none() {
            self.shared.end(&self.shared.closed(Reason::Dropped));
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// How many bytes are read, and how many are written, before other tasks get a turn.
const TURN: usize = 512 << 10;
/// What a request counts among the bytes that are read: 64 of them are a turn. Dispatch may do all that one asks for, so after
/// a while others get their turn, and the answers are written.
const REQUEST: usize = 8 << 10;
/// How long a child whose output has ended may take to exit before its end is reported without an exit status.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// How much of a half-written line is reported.
const HALF_LINE_SHOWN: usize = 200;

async fn run(shared: Arc<Shared>, mut link: Link, dispatch: Box<dyn Dispatch>) -> Closed {
    let tap = link.take_tap();
    let (reader, writer) = link.split();
    let reader = reader.with_limit(shared.limits.frame);
    let mut engine = Engine { shared, reader, writer, dispatch, tap, deadline: None };
    let cause = poll_fn(|cx| engine.poll_run(cx)).await;
    engine.finish(cause).await
}

struct Engine {
    shared: Arc<Shared>,
    reader: FrameReader,
    writer: FrameWriter,
    dispatch: Box<dyn Dispatch>,
    tap: Option<Tap>,
    /// When a local close stops waiting for the peer to take what is left.
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// Why the engine stopped.
enum Cause {
    Eof,
    Half(String),
    Read(io::Error),
    Write(io::Error),
    Local,
}

/// How far a direction came within one turn.
enum Turn {
    /// There may be more; others first.
    More,
    /// Nothing to do until somebody wakes the driver.
    Idle,
}

impl Engine {
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        let closing = {
            let mut state = self.shared.lock();
            state.driver_runs(cx.waker());
            state.closing
        };
        let mut again = false;
        match self.poll_lines(cx) {
            Poll::Ready(Err(cause)) => return Poll::Ready(cause),
            Poll::Ready(Ok(Turn::More)) => again = true,
            Poll::Ready(Ok(Turn::Idle)) | Poll::Pending => {}
        }
        match self.poll_batches(cx) {
            Poll::Ready(Err(error)) => return Poll::Ready(Cause::Write(error)),
            Poll::Ready(Ok(Turn::More)) => again = true,
            Poll::Ready(Ok(Turn::Idle)) if closing => return Poll::Ready(Cause::Local),
            Poll::Ready(Ok(Turn::Idle)) | Poll::Pending => {}
        }
        if closing {
            let linger = self.shared.limits.linger;
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(linger)));
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Cause::Local);
        }
        if again {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads and dispatches. `Err` is the end of the input.
    fn poll_lines(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, Cause>> {
        let mut taken = 0;
        while taken < TURN {
            if self.shared.backlog.rest(cx) || self.is_choked() {
                self.reader.rest();
                return Poll::Ready(Ok(Turn::Idle));
            }
            match ready!(self.reader.poll_found(cx)) {
                Ok(Found::Line(range)) => {
                    taken += range.len() + 1 + self.line(&range);
                }
                Ok(Found::Oversize(size)) => self.oversize(size),
                Ok(Found::Half(range)) => {
                    let line = self.reader.bytes(&range);
                    let shown = line.get(..HALF_LINE_SHOWN).unwrap_or(line);
                    return Poll::Ready(Err(Cause::Half(String::from_utf8_lossy(shown).into_owned())));
                }
                Ok(Found::End) => return Poll::Ready(Err(Cause::Eof)),
                Err(error) => return Poll::Ready(Err(Cause::Read(error))),
            }
        }
        Poll::Ready(Ok(Turn::More))
    }

    /// A peer that asks and never reads the answers would fill the memory with small ones; past the hard limit it has to
    /// take some before it may ask again. The writer's wake ends this.
    fn is_choked(&self) -> bool {
        !self.writer.is_drained() && self.shared.lock().unsent() > self.shared.limits.unsent_hard
    }

    /// Gives what it counts beside its bytes.
    fn line(&mut self, range: &Range<usize>) -> usize {
        let line = self.reader.bytes(range);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(tap) = &mut self.tap {
            tap(Flow::In, line);
        }
        let depth = self.shared.limits.depth;
        let frame = match Unread::of(line, depth) {
            None => Frame::parse(line, depth),
            Some(Unread { id: None, method, params }) => {
                if self.dispatch.unread(method, params) {
                    return 0;
                }
                Unread { id: None, method, params }.into_frame(line, depth)
            }
            Some(Unread { id: Some(id), method, params }) => {
                let mut fate = Fate::Open(id);
                self.dispatch.unread_request(method, params, Ticket::new(&self.shared, line, &mut fate));
                match fate {
                    Fate::Open(id) => Unread { id: Some(id), method, params }.into_frame(line, depth),
                    Fate::Taken => return REQUEST,
                    Fate::Refused(reason) => {
                        self.dispatch.noise(line, &reason);
                        return 0;
                    }
                }
            }
        };
        if let Frame::Notification { method, params } = &frame
            && !method.starts_with('$')
        {
            // The most frequent case needs nothing from the machine.
            self.dispatch.notification(method, *params);
            return 0;
        }
        match self.shared.accept(frame, line) {
            Event::Request { id, method, params, token } => {
                let responder = Responder::new(&self.shared, id, token, line.len());
                self.dispatch.request(&method, params, responder);
                return REQUEST;
            }
            Event::Notification { method, params } => self.dispatch.notification(&method, params),
            Event::Answer { waiter, outcome, .. } => waiter.settle(outcome.map_err(CallError::Refused)),
            Event::CancelRequest { token } => {
                let token = self.shared.lock().tokens.get(token);
                token.cancel();
            }
            Event::Noise { line, reason } => self.dispatch.noise(line, &reason),
            Event::Ignored { .. } => {}
        }
        0
    }

    /// A line that was too long is gone, but whoever it concerned is told.
    fn oversize(&mut self, size: usize) {
        let head = self.reader.head();
        let why = format!("a message of {size} bytes is larger than {} bytes", self.reader.limit());
        if let Event::Answer { waiter, outcome, .. } = self.shared.accept(Frame::parse_head(head, &why), head)
        {
            waiter.settle(outcome.map_err(CallError::Refused));
        }
        self.dispatch.noise(head, &why);
    }

    /// Writes what has gathered.
    fn poll_batches(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Turn>> {
        let mut written = 0;
        while written < TURN {
            if self.writer.is_drained() {
                ready!(self.writer.poll_flush(cx))?;
                let mut state = self.shared.lock();
                state.taken = 0;
                if state.out.is_empty() {
                    self.writer.rest(&mut state.out);
                    state.asleep = true;
                    let slots = state.grant_slots(&self.shared.limits);
                    drop(state);
                    slots.into_iter().for_each(Waker::wake);
                    return Poll::Ready(Ok(Turn::Idle));
                }
                state.taken = state.out.len();
                self.writer.take_batch(&mut state.out);
                let first = state.room.first();
                let slots = state.grant_slots(&self.shared.limits);
                drop(state);
                wake(first);
                slots.into_iter().for_each(Waker::wake);
                if let Some(tap) = &mut self.tap {
                    self.writer.lines().for_each(|line| tap(Flow::Out, line));
                }
            }
            written += ready!(self.writer.poll_write_some(cx))?;
        }
        Poll::Ready(Ok(Turn::More))
    }

    async fn finish(mut self, cause: Cause) -> Closed {
        let cause = match cause {
            Cause::Write(error) => self.read_out(error).await,
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
        closed
    }

    /// A peer that died may have answered before; what it wrote is still in the pipe. If its end is there too, that is
    /// the better reason than a broken pipe.
    async fn read_out(&mut self, error: io::Error) -> Cause {
        let end = poll_fn(|cx| {
            loop {
                match self.poll_lines(cx) {
                    Poll::Ready(Ok(Turn::More)) => {}
                    Poll::Ready(Err(cause)) => return Poll::Ready(Some(cause)),
                    Poll::Ready(Ok(Turn::Idle)) | Poll::Pending => return Poll::Ready(None),
                }
            }
        });
        end.await.unwrap_or(Cause::Write(error))
    }

    async fn finish_link(mut self, closed: Closed, local: bool) -> Closed {
        self.silence(&closed);
        let linger = self.shared.limits.linger;
        if !local {
            // The peer only closed its sending half, perhaps: requests that are open are still answered.
            let rest = poll_fn(|cx| {
                self.shared.lock().driver_runs(cx.waker());
                match self.poll_batches(cx) {
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(Turn::More)) => cx.waker().wake_by_ref(),
                    Poll::Ready(Ok(Turn::Idle)) if self.shared.lock().machine.open() == 0 => {
                        return Poll::Ready(());
                    }
                    Poll::Ready(Ok(Turn::Idle)) | Poll::Pending => {}
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
        // STDIO-10: the end of its input asks the child to leave.
        drop(self.writer);
        self.writer = FrameWriter::nowhere();
        let mut closed = closed;
        if !local {
            let exit = within(EXIT_WAIT, guard.wait()).await;
            closed = closed.with_child(exit, guard.stderr_tail());
        }
        self.silence(&closed);
        // A child that still prints must not be held up by a full pipe on its way out.
        let exit = {
            let mut shutdown = pin!(guard.shutdown());
            let mut open = true;
            poll_fn(|cx| {
                while open {
                    match self.reader.poll_found(cx) {
                        Poll::Ready(Ok(Found::End) | Err(_)) => open = false,
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

    /// Nothing more is heard: whoever waits for an answer learns it, and open requests are told to come to an end.
    fn silence(&mut self, closed: &Closed) {
        self.shared.deafen(closed);
        for token in self.shared.open_tokens() {
            token.cancel();
        }
        self.dispatch.closed(closed);
    }
}

/// `future`, or `None` after `limit`. No timer is made for what is ready at once.
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
