//! A socket on which the opening handshake is done: its state, and its reading half.

mod write;

#[cfg(feature = "server")]
use super::budget::Budget;
use super::budget::ReceivedBytes;
use super::closer::Closer;
use super::frame::{self, Close, Header, MAX_CONTROL, MAX_HEADER, Opcode, Violation};
use super::lines::LineFeeds;
use super::mask::MaskKeys;
use super::wakers::Writers;
use attache_conn::{KeepAlive, Link};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes of one read.
const READ: usize = 32 << 10;
/// A payload with at least this many missing bytes is read straight into the buffer of the link.
const DIRECT: u64 = 8 << 10;
/// Encoded bytes that are collected for one write.
const BATCH: usize = 64 << 10;
/// Bytes that are read ahead while the connection pauses.
const AHEAD: usize = 1 << 20;

/// Which end of the WebSocket we are. A client masks its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We asked for the upgrade.
    Client,
    /// We accepted it.
    Server,
}

/// The status of a peer that is over the budget.
const OVERLOADED: u16 = 1013;

/// Settings of a WebSocket.
///
/// ```
/// use attache_http::ws::Settings;
/// use std::time::Duration;
///
/// let settings = Settings { ping: Duration::from_secs(5), ..Settings::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time between two pings.
    pub ping: Duration,
    /// A peer of which no byte arrives for this long is given up.
    pub silence: Duration,
    /// The largest payload of an outgoing frame; longer messages are fragmented.
    pub frame: usize,
    /// The longest incoming message; a longer one closes the WebSocket with status 1009.
    pub message: u64,
}

impl Default for Settings {
    /// A ping every 15 seconds, 30 seconds of silence, frames of 1 MiB, messages of any length,
    /// which the link limits.
    // Proxies and tunnels close idle connections after 60 s; the Rust SDK takes frames of up to 16
    // MiB.
    fn default() -> Self {
        Settings {
            ping: Duration::from_secs(15),
            silence: Duration::from_secs(30),
            frame: 1 << 20,
            message: u64::MAX,
        }
    }
}

/// Returns the link of a socket after the opening handshake. `received` are bytes that were read
/// with the handshake and belong to the first frames. Must be called within a tokio runtime.
// WS-04: a line is one text message.
pub fn link<S>(socket: S, role: Role, settings: Settings, received: Vec<u8>) -> Link
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    join(Socket::new(socket, role, settings, received, None))
}

/// Returns the link of a socket as [`link`] does, and a handle that closes it.
///
/// Example: [`Closer`].
pub fn link_with_closer<S>(socket: S, role: Role, settings: Settings, received: Vec<u8>) -> (Link, Closer)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let closer = Closer::default();
    (join(Socket::new(socket, role, settings, received, Some(closer.clone()))), closer)
}

/// Returns the link of an accepted socket whose received bytes are counted, and a handle that
/// closes it.
#[cfg(feature = "server")]
pub(crate) fn link_with_budget<S>(
    socket: S,
    settings: Settings,
    received: Vec<u8>,
    budget: Box<dyn Budget>,
) -> (Link, Closer)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let closer = Closer::default();
    let socket = Socket::new(socket, Role::Server, settings, received, Some(closer.clone()));
    (join(Socket { received: ReceivedBytes::new(budget), ..socket }), closer)
}

fn join<S>(socket: Socket<S>) -> Link
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let socket = Arc::new(Mutex::new(socket));
    Link::from_keep_alive(Reader(Arc::clone(&socket)), Writer(socket))
}

struct Reader<S>(Arc<Mutex<Socket<S>>>);

struct Writer<S>(Arc<Mutex<Socket<S>>>);

/// Locks the socket. Both halves are usually polled by one task, so the lock is free.
fn lock<S>(socket: &Mutex<Socket<S>>) -> MutexGuard<'_, Socket<S>> {
    socket.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Socket<S> {
    io: S,
    role: Role,
    settings: Settings,

    /// Received bytes; those before `start` are consumed.
    input: Vec<u8>,
    start: usize,
    /// Bytes from `start` on that are unmasked text of the current frame.
    ready: usize,
    frame: Option<Current>,
    message: Option<Kind>,
    /// Payload bytes of the current message, with the current frame.
    message_len: u64,
    line_feeds: LineFeeds,
    /// A line feed is due before anything else is delivered.
    owed: bool,
    /// The input is at its end.
    ended: bool,
    /// A violation that is reported after the messages before it.
    failed: Option<io::Error>,
    close: Option<Close>,
    closer: Option<Closer>,

    received: ReceivedBytes,
    /// Text of the current message that the link has.
    partial: usize,
    /// Text that the link has: that of the current message, and messages before it that it has not
    /// taken.
    delivered: usize,

    /// Whole frames; those before `written` are sent.
    output: Vec<u8>,
    written: usize,
    /// The message that is being written continues with the next frame.
    continues: bool,
    close_sent: bool,
    keys: MaskKeys,
    writers: Arc<Writers>,
    writers_waker: Waker,

    timer: Option<Pin<Box<Sleep>>>,
    heard: bool,
    /// Ticks of the timer since the last received byte.
    silent_ticks: u32,
}

/// The frame that is being read.
#[derive(Clone, Copy, Debug)]
struct Current {
    header: Header,
    /// Payload bytes that are not consumed.
    missing: u64,
    /// Payload bytes that are unmasked.
    unmasked: usize,
}

/// Kind of a message, which may have several frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Binary,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    fn new(io: S, role: Role, settings: Settings, received: Vec<u8>, closer: Option<Closer>) -> Self {
        let writers = Arc::new(Writers::default());
        Socket {
            io,
            role,
            settings,
            input: received,
            start: 0,
            ready: 0,
            frame: None,
            message: None,
            message_len: 0,
            line_feeds: LineFeeds::default(),
            owed: false,
            ended: false,
            failed: None,
            close: None,
            closer,
            received: ReceivedBytes::default(),
            partial: 0,
            delivered: 0,
            output: Vec::new(),
            written: 0,
            continues: false,
            close_sent: false,
            keys: MaskKeys::default(),
            writers_waker: Waker::from(Arc::clone(&writers)),
            writers,
            timer: None,
            heard: false,
            silent_ticks: 0,
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_closer(cx)?;
        // The link reads again when it has taken all messages that are whole.
        self.delivered = self.partial;
        let before = buf.filled().len();
        loop {
            if let Err(violation) = self.deliver(buf) {
                self.failed = Some(self.refuse(cx, violation.code(), &violation));
            }
            let delivered = self.delivered + buf.filled().len() - before;
            if !self.count(delivered) && self.failed.is_none() {
                let why = "too many bytes were received at once; try again later";
                self.failed = Some(self.refuse(cx, OVERLOADED, &why));
            }
            if buf.filled().len() > before || buf.remaining() == 0 {
                break;
            }
            // After all messages before it.
            if let Some(error) = self.failed.take() {
                self.ended = true;
                return Poll::Ready(Err(error));
            }
            if let Some(close) = &self.close {
                if !close.is_normal(self.role) {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, close.clone())));
                }
                break;
            }
            if self.ended {
                // A client that leaves need not say so; a server has to.
                if self.role == Role::Client && !self.close_sent {
                    let why = "the connection was cut without a closing frame";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
                }
                break;
            }
            if self.poll_fill(cx, buf)?.is_pending() {
                self.release_memory();
                self.poll_timer(cx)?;
                self.send_now(cx);
                return Poll::Pending;
            }
        }
        self.delivered += buf.filled().len() - before;
        self.send_now(cx);
        Poll::Ready(Ok(()))
    }

    /// Counts the bytes of this socket, `delivered` of them in the link. Returns whether that is
    /// within the budget.
    fn count(&mut self, delivered: usize) -> bool {
        self.received.set(delivered + self.input.len() - self.start)
    }

    /// Passes received text on, as far as there is some and `buf` has room.
    fn deliver(&mut self, buf: &mut ReadBuf<'_>) -> Result<(), Violation> {
        loop {
            if self.owed {
                if buf.remaining() == 0 {
                    return Ok(());
                }
                buf.put_slice(b"\n");
                self.owed = false;
            }
            let Some(current) = self.frame else {
                if self.failed.is_some() || self.close.is_some() || !self.next_frame()? {
                    return Ok(());
                }
                continue;
            };
            let available = self.input.len() - self.start;
            if current.header.opcode.is_control() {
                let len = current.header.len as usize;
                if available < len {
                    return Ok(());
                }
                self.control(current.header, self.start);
                self.start += len;
                self.frame = None;
            } else if current.missing == 0 {
                self.end_frame(&current);
            } else if available == 0 {
                return Ok(());
            } else if self.message == Some(Kind::Binary) {
                // WS-05: binary messages are ignored.
                let count = available.min(usize::try_from(current.missing).unwrap_or(usize::MAX));
                self.start += count;
                self.consumed(count);
            } else {
                if self.ready == 0 {
                    self.unmask_input(available);
                    continue;
                }
                if buf.remaining() == 0 {
                    return Ok(());
                }
                let count = self.ready.min(buf.remaining());
                buf.put_slice(self.input.get(self.start..self.start + count).unwrap_or_default());
                self.start += count;
                self.ready -= count;
                self.partial += count;
                self.consumed(count);
            }
        }
    }

    /// Reads the header of the next frame. Returns `false` if it has not arrived.
    fn next_frame(&mut self) -> Result<bool, Violation> {
        let Some((header, len)) = frame::read_header(self.input.get(self.start..).unwrap_or_default())?
        else {
            return Ok(false);
        };
        if header.mask.is_some() != (self.role == Role::Server) {
            // WS-09, WS-10, WS-20
            return Err(Violation::Mask);
        }
        match (header.opcode, self.message) {
            (Opcode::Text | Opcode::Binary, Some(_)) => return Err(Violation::Interleaved),
            // WS-11, WS-14
            (Opcode::Continuation, None) => return Err(Violation::Continuation),
            (Opcode::Text, None) => self.message = Some(Kind::Text),
            (Opcode::Binary, None) => self.message = Some(Kind::Binary),
            _ => {}
        }
        if !header.opcode.is_control() {
            self.message_len = self.message_len.saturating_add(header.len);
            if self.message_len > self.settings.message {
                return Err(Violation::TooBig(self.settings.message));
            }
        }
        self.start += len;
        self.frame = Some(Current { header, missing: header.len, unmasked: 0 });
        Ok(true)
    }

    fn end_frame(&mut self, current: &Current) {
        self.frame = None;
        if current.header.is_final {
            self.owed = self.message == Some(Kind::Text);
            self.message = None;
            self.message_len = 0;
            self.partial = 0;
            self.line_feeds.reset();
        }
    }

    /// Counts payload bytes of the current frame as consumed.
    fn consumed(&mut self, count: usize) {
        if let Some(current) = &mut self.frame {
            current.missing -= count as u64;
        }
    }

    /// Unmasks the payload of the current frame in the input.
    fn unmask_input(&mut self, available: usize) {
        let Some(current) = &mut self.frame else { return };
        let count = available.min(usize::try_from(current.missing).unwrap_or(usize::MAX));
        let bytes = self.input.get_mut(self.start..self.start + count).unwrap_or_default();
        self.owed = unmask(current, &mut self.line_feeds, bytes);
        self.ready = count;
    }

    /// Reads from the socket: large payloads straight into `buf`, everything else into the input.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> io::Result<Poll<()>> {
        let is_direct =
            self.start == self.input.len() && self.message == Some(Kind::Text) && buf.remaining() > 1;
        if let Some(current) = self
            .frame
            .as_mut()
            .filter(|current| is_direct && !current.header.opcode.is_control() && current.missing >= DIRECT)
        {
            let before = buf.filled().len();
            // One byte stays free for a separator.
            let room = (buf.remaining() - 1) as u64;
            let mut limited = (&mut self.io).take(room.min(current.missing));
            let Poll::Ready(read) = Pin::new(&mut limited).poll_read(cx, buf) else {
                return Ok(Poll::Pending);
            };
            read?;
            let bytes = buf.filled_mut().get_mut(before..).unwrap_or_default();
            let count = bytes.len();
            self.partial += count;
            self.ended = count == 0;
            let separator = unmask(current, &mut self.line_feeds, bytes);
            current.missing -= count as u64;
            self.heard |= count > 0;
            if separator {
                buf.put_slice(b"\n");
                buf.filled_mut().get_mut(before..).unwrap_or_default().rotate_right(1);
            }
            return Ok(Poll::Ready(()));
        }
        self.poll_input(cx)
    }

    /// Reads from the socket into the input.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.start > 0 {
            self.input.drain(..self.start);
            self.start = 0;
        }
        self.input.reserve(READ.max(MAX_HEADER + MAX_CONTROL));
        let read = pin!(self.io.read_buf(&mut self.input));
        match read.poll(cx) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Ok(0)) => self.ended = true,
            Poll::Ready(Ok(_)) => self.heard = true,
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Poll::Ready(Err(error)) => return Err(error),
        }
        Ok(Poll::Ready(()))
    }

    /// Frees the input of an idle connection.
    fn release_memory(&mut self) {
        if self.start == self.input.len() && self.input.capacity() > 0 {
            self.input = Vec::new();
            self.start = 0;
        }
    }

    /// Handles a control frame whose payload begins at `at`.
    // WS-08: pings are answered; they mean nothing in ACP.
    fn control(&mut self, header: Header, at: usize) {
        let mut payload = [0; MAX_CONTROL];
        let payload = payload.get_mut(..header.len as usize).unwrap_or_default();
        payload.copy_from_slice(self.input.get(at..at + payload.len()).unwrap_or_default());
        if let Some(mask) = header.mask {
            frame::apply_mask(payload, mask, 0);
        }
        match header.opcode {
            // A peer that sends pings and reads nothing must not fill the memory.
            Opcode::Ping if self.output.len() - self.written < BATCH => self.queue(Opcode::Pong, payload),
            // WS-12
            Opcode::Close => {
                let close = Close::read(payload);
                let code = if close.code == 1005 { 1000 } else { close.code };
                self.queue_close(code, "");
                self.close = Some(close);
            }
            _ => {}
        }
    }

    /// Closes the WebSocket if its [`Closer`] says so.
    fn poll_closer(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(close) = self.closer.as_ref().and_then(|closer| closer.take(cx)) else { return Ok(()) };
        if !self.close_sent {
            self.queue_close(close.code, &close.reason);
        }
        self.send_now(cx);
        self.ended = true;
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, close.reason))
    }

    /// Refuses what the peer sends, with a status.
    fn refuse(&mut self, cx: &mut Context<'_>, code: u16, why: &dyn fmt::Display) -> io::Error {
        self.queue_close(code, &why.to_string());
        self.send_now(cx);
        io::Error::new(io::ErrorKind::InvalidData, format!("WebSocket: {why}"))
    }

    /// Handles pings behind unread messages.
    fn scan_ahead(&mut self) -> Result<(), Violation> {
        let missing = |current: &Current| usize::try_from(current.missing).unwrap_or(usize::MAX);
        let mut at = self.start.saturating_add(self.frame.as_ref().map_or(0, missing));
        // Pings are cut out in one pass: bytes from `from` on belong to `kept`.
        let (mut kept, mut from) = (at, at);
        let result = loop {
            let (header, len) = match frame::read_header(self.input.get(at..).unwrap_or_default()) {
                Ok(Some(read)) => read,
                Ok(None) => break Ok(()),
                Err(violation) => break Err(violation),
            };
            let payload = usize::try_from(header.len).unwrap_or(usize::MAX);
            let end = at.saturating_add(len).saturating_add(payload);
            if matches!(header.opcode, Opcode::Ping | Opcode::Pong) {
                if end > self.input.len() {
                    break Ok(());
                }
                self.control(header, at + len);
                self.input.copy_within(from..at, kept);
                kept += at - from;
                from = end;
            }
            at = end;
        };
        if from > kept {
            self.input.drain(kept..from);
        }
        result
    }

    /// Reads ahead while the connection pauses, so that pings are answered.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.poll_closer(cx)?;
        let mut waits = false;
        while !waits && !self.ended && self.close.is_none() && self.input.len() - self.start < AHEAD {
            // Over the budget it reads no further, and the peer waits.
            if !self.count(self.delivered + READ) {
                break;
            }
            waits = self.poll_input(cx)?.is_pending();
            // A violation is reported when its frame is read.
            if !waits && self.scan_ahead().is_err() {
                break;
            }
        }
        // Only a peer that we wait for can be silent: what it sent may lie unread behind a full
        // window or a violation.
        self.heard |= !waits;
        self.poll_timer(cx)?;
        self.send_now(cx);
        Ok(())
    }

    /// Sends pings, and gives up a silent peer.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let period = self.settings.ping;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(period)));
        while timer.as_mut().poll(cx).is_ready() {
            let deadline = timer.deadline() + period;
            timer.as_mut().reset(deadline);
            if std::mem::take(&mut self.heard) {
                self.silent_ticks = 0;
            } else {
                self.silent_ticks += 1;
            }
            if period * self.silent_ticks >= self.settings.silence {
                let why = format!("nothing was received for {:?}", self.settings.silence);
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            if !self.close_sent {
                let header =
                    Header { is_final: true, opcode: Opcode::Ping, mask: self.keys.next(self.role), len: 0 };
                frame::write_header(&mut self.output, &header);
            }
        }
        Ok(())
    }
}

/// Unmasks the next bytes of a frame. Returns whether a separator belongs before them.
fn unmask(current: &mut Current, line_feeds: &mut LineFeeds, bytes: &mut [u8]) -> bool {
    if let Some(mask) = current.header.mask {
        frame::apply_mask(bytes, mask, current.unmasked);
        current.unmasked += bytes.len();
    }
    line_feeds.piece(bytes)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Reader<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> KeepAlive for Reader<S> {
    fn poll_keep_alive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> io::Result<()> {
        lock(&self.0).poll_ahead(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Writer<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_shutdown(cx)
    }
}
