//! A client over Streamable HTTP: its requests are the input of a link, the output of the link goes
//! to its streams.

use super::access::Identity;
use super::options::Limits;
use super::registry::Admission;
use super::scope::{self, Scope};
use super::streams::{ReaderId, Session, Streams, TooManySessions};
use super::usage::{HeldBytes, Slot};
use crate::message::make_one_line;
use attache_conn::rpc::Id;
use attache_conn::{KeepAlive, Link};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, oneshot};

/// Received bytes that wait for the link; more wait in their requests.
const INPUT: usize = 1 << 20;
/// Bytes that a client may leave unread even if the server holds too many for all.
const SHARE: usize = 64 << 10;

pub(super) struct Connection {
    pub(super) id: String,
    /// The name below the endpoint's path.
    pub(super) name: Option<String>,
    // HTTP-36: an id alone is no credential.
    pub(super) identity: Option<Identity>,
    limits: Limits,
    state: Mutex<State>,
    room: Notify,
    this: Weak<Connection>,
    admission: Admission,
}

struct State {
    input: BytesMut,
    /// Counts the input, and what the link has of it.
    received: HeldBytes,
    /// Bytes that the link was given and has not taken, and those of them that are not a whole
    /// message.
    delivered: usize,
    partial: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
    streams: Streams,
    /// The routes of open requests, each with its place among those of the token.
    routes: HashMap<Id, (Route, Slot)>,
    over: bool,
    /// The last request, or the last progress of a stream.
    active: Instant,
    taken: u64,
}

impl State {
    /// Counts no longer what the link has taken: all whole messages that it was given, since it
    /// reads on.
    fn release_taken(&mut self) {
        let taken = self.delivered - self.partial;
        self.received.subtract(taken);
        self.delivered = self.partial;
    }
}

/// Where the response to a request of the client goes.
#[derive(Debug)]
pub(super) enum Route {
    /// Into the body of the POST itself.
    Body(oneshot::Sender<Vec<u8>>),
    /// To the connection's stream. Its result names a session.
    Opening,
    /// To the connection's stream.
    Connection,
    /// To the stream of the session.
    Session(Arc<str>),
    /// To the stream of the session if it is read, else to that of the connection.
    SessionIfRead(Arc<str>),
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    Over,
    TooManyRequests,
    TooManySessions,
}

impl Connection {
    pub(super) fn new(
        id: String,
        name: Option<String>,
        identity: Option<Identity>,
        limits: &Limits,
        ascii: bool,
        admission: Admission,
    ) -> Arc<Connection> {
        let state = State {
            input: BytesMut::new(),
            received: HeldBytes::received(&admission.usage),
            delivered: 0,
            partial: 0,
            reader: None,
            writer: None,
            streams: Streams::new(limits, ascii, admission.usage.clone()),
            routes: HashMap::new(),
            over: false,
            active: Instant::now(),
            taken: 0,
        };
        Arc::new_cyclic(|this| Connection {
            id,
            name,
            identity,
            limits: limits.clone(),
            state: Mutex::new(state),
            room: Notify::new(),
            this: this.clone(),
            admission,
        })
    }

    /// The link of this connection, to be called once.
    pub(super) fn link(self: &Arc<Self>) -> Link {
        let (reader, writer) = (Input(Arc::clone(self)), Output(Arc::clone(self)));
        // Such a link keeps no read buffer while it is idle; 64 KiB for each client would be most
        // of its memory.
        Link::from_keep_alive(reader, writer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a message on to the agent, with the count of its bytes. Waits while much is unread.
    pub(super) async fn receive(
        &self,
        line: &[u8],
        mut received: HeldBytes,
        session: Option<&str>,
        mut route: Option<(Id, Route)>,
    ) -> Result<(), NotTaken> {
        loop {
            let room = self.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.lock();
                if state.over {
                    return Err(NotTaken::Over);
                }
                state.active = Instant::now();
                if state.input.is_empty() || state.input.len() + line.len() <= INPUT {
                    let slot = match &route {
                        Some(_) => Some(self.take_request(&state).ok_or(NotTaken::TooManyRequests)?),
                        None => None,
                    };
                    if let Some(session) = session {
                        state.streams.name(session).map_err(|TooManySessions| NotTaken::TooManySessions)?;
                    }
                    if let Some(((id, route), slot)) = route.take().zip(slot) {
                        // A second request with an open id is refused by the agent; the first keeps
                        // its route.
                        state.routes.entry(id).or_insert((route, slot));
                    }
                    let start = state.input.len();
                    state.input.reserve(line.len() + 1);
                    state.input.extend_from_slice(line);
                    make_one_line(state.input.get_mut(start..).unwrap_or_default());
                    state.input.extend_from_slice(b"\n");
                    state.received.take_from(&mut received);
                    state.received.add(1);
                    wake(&mut state.reader);
                    return Ok(());
                }
            }
            room.await;
        }
    }

    /// Takes a place for an open request.
    fn take_request(&self, state: &State) -> Option<Slot> {
        let has_room = state.routes.len() < self.limits.open_requests;
        let requests = &self.admission.usage.requests;
        has_room.then(|| requests.take(self.limits.open_requests_per_identity)).flatten()
    }

    pub(super) fn attach(&self, session: Option<&str>) -> Result<(Session, ReaderId), NotTaken> {
        let mut state = self.lock();
        if state.over {
            return Err(NotTaken::Over);
        }
        state.active = Instant::now();
        state.streams.attach(session).map_err(|TooManySessions| NotTaken::TooManySessions)
    }

    pub(super) fn detach(&self, session: &Session, id: ReaderId) {
        let mut state = self.lock();
        state.active = Instant::now();
        state.streams.detach(session, id);
    }

    pub(super) fn poll_take(&self, session: &Session, id: ReaderId, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.lock();
        let taken = state.streams.poll_take(session, id, cx);
        if taken.is_ready() {
            wake(&mut state.writer);
        }
        taken
    }

    /// Whether the connection is over, or nothing has moved for long: no request, and no stream
    /// that is read or could be.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let taken = state.streams.taken();
        if taken != state.taken || (state.streams.has_reader() && state.streams.held() == 0) {
            state.taken = taken;
            state.active = now;
        }
        let is_done = state.over && state.streams.held() == 0;
        is_done || now.saturating_duration_since(state.active) >= self.limits.idle
    }

    /// Ends the connection. Its streams deliver the rest unless `at_once`.
    pub(super) fn end(&self, at_once: bool) {
        let mut state = self.lock();
        state.over = true;
        state.routes.clear();
        state.streams.end(at_once);
        wake(&mut state.reader);
        wake(&mut state.writer);
        drop(state);
        self.room.notify_waiters();
    }

    /// Puts a message of the agent into its stream.
    fn route(&self, state: &mut State, line: &[u8]) {
        let waiting: Option<Arc<str>> = match scope::of(line) {
            Scope::Connection => {
                state.streams.add(line);
                None
            }
            Scope::Session(session) => {
                state.streams.add_to_session(&session, line).then(|| Arc::from(&*session))
            }
            Scope::Response(id, opened) => match state.routes.remove(&id).map(|(route, _)| route) {
                Some(Route::Body(body)) => {
                    // The client may have given up.
                    let _ = body.send(line.to_vec());
                    None
                }
                Some(Route::Opening) => {
                    if let Some(session) = opened {
                        let _ = state.streams.name(&session);
                    }
                    state.streams.add(line);
                    None
                }
                Some(Route::Session(session)) => {
                    state.streams.add_to_session(&session, line).then_some(session)
                }
                Some(Route::SessionIfRead(session)) => {
                    // `session/fork` names another session than the one of its request.
                    if let Some(opened) = opened {
                        let _ = state.streams.name(&opened);
                    }
                    state.streams.add_response(&session, line).then_some(session)
                }
                Some(Route::Connection) | None => {
                    state.streams.add(line);
                    None
                }
            },
        };
        if let Some(session) = waiting {
            self.fall_back_later(session);
        }
    }

    /// Gives the client some time to open the stream of a session, then uses the connection's
    /// stream.
    fn fall_back_later(&self, session: Arc<str>) {
        let (connection, patience) = (self.this.clone(), self.limits.patience);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(patience).await;
                let Some(connection) = connection.upgrade() else { return };
                if !connection.lock().streams.fall_back(&session) {
                    return;
                }
            }
        });
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The receiving half of the link.
struct Input(Arc<Connection>);

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.release_taken();
        if state.input.is_empty() {
            if state.over {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = state.input.len().min(buf.remaining());
        let bytes = state.input.get(..count).unwrap_or_default();
        let end = memchr::memrchr(b'\n', bytes);
        buf.put_slice(bytes);
        state.delivered += count;
        state.partial = end.map_or(state.partial + count, |end| count - end - 1);
        state.input.advance(count);
        if state.input.is_empty() {
            state.input = BytesMut::new();
        }
        drop(state);
        self.0.room.notify_waiters();
        Poll::Ready(Ok(()))
    }
}

impl KeepAlive for Input {
    fn poll_keep_alive(self: Pin<&mut Self>, _: &mut Context<'_>) -> io::Result<()> {
        // A paused link is found out by its requests and streams.
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let State { input, received, .. } = &mut *state;
        *input = BytesMut::new();
        received.subtract(received.get());
        (state.delivered, state.partial) = (0, 0);
        drop(state);
        self.0.end(false);
    }
}

/// The sending half of the link.
struct Output(Arc<Connection>);

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if state.over {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client has left")));
            }
            // The share keeps clients that read independent of those that do not.
            let limits = &self.0.limits;
            let is_over = state.streams.is_over(limits);
            if state.streams.held() >= if is_over { limits.held.min(SHARE) } else { limits.held } {
                break;
            }
            let (line, next) = rest.split_at(end);
            self.0.route(&mut state, line);
            rest = next.get(1..).unwrap_or_default();
        }
        let count = bytes.len() - rest.len();
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if memchr::memchr(b'\n', bytes).is_none() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a message has no line end",
            )));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.end(false);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.0.end(false);
    }
}
