//! The streams of a client over Streamable HTTP, and which of them a message takes. Pure state: no
//! I/O, no clock.

use super::options::Limits;
use super::usage::{Counter, HeldBytes, Slot, Usage};
use bytes::{Bytes, BytesMut};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Sessions that a client may read before anything else has named them.
// HTTP-20: clients open the stream of a session ahead of `session/load`.
const UNNAMED: usize = 64;
/// The largest piece that is handed to a reader at once.
const PIECE: usize = 256 << 10;

/// A session; `None` is the connection itself.
pub(super) type Session = Option<Arc<str>>;

/// A reader of a stream. A later reader of the same stream replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderId(u64);

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    connection: Stream,
    sessions: HashMap<Arc<str>, Stream>,
    /// Bytes in all buffers.
    held: HeldBytes,
    /// Sessions with shared bytes, each once.
    shared: VecDeque<Arc<str>>,
    /// A session with an event at the front of the connection's buffer, and how many bytes of it
    /// are left there.
    begun: Option<(Arc<str>, usize)>,
    /// Bytes that readers have taken.
    taken: u64,
    unnamed: usize,
    max_sessions: usize,
    /// Sessions of all connections with the same token.
    token_sessions: Counter,
    max_token_sessions: usize,
    readers: u64,
    /// Characters beyond ASCII are escaped.
    ascii: bool,
    /// Nothing is added any more; streams end when they are empty.
    over: bool,
}

#[derive(Debug, Default)]
struct Stream {
    /// Whole events.
    buffer: BytesMut,
    reader: Option<ReaderId>,
    waker: Option<Waker>,
    route: Route,
    /// Bytes of whole events at the front that the connection's reader may take too.
    // They stay here until they are taken: a connection without a reader must not keep them from
    // the session's reader.
    shared: usize,
    /// A message or a request named the session.
    named: bool,
    /// Counts a session for its token.
    _slot: Option<Slot>,
}

/// Where the messages of a session go that has no reader.
// The Python SDK opens the stream of a session only when it sees a message that names the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Route {
    /// They wait for a reader.
    #[default]
    Own,
    /// The connection's stream has the first one; the others wait.
    Probed,
    /// The connection's stream has them all.
    Connection,
}

/// Why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManySessions;

impl Streams {
    pub(super) fn new(limits: &Limits, ascii: bool, usage: Usage) -> Self {
        Streams {
            connection: Stream::default(),
            sessions: HashMap::new(),
            held: HeldBytes::unread(&usage),
            shared: VecDeque::new(),
            begun: None,
            taken: 0,
            unnamed: 0,
            max_sessions: limits.sessions,
            token_sessions: usage.sessions,
            max_token_sessions: limits.sessions_per_identity,
            readers: 0,
            ascii,
            over: false,
        }
    }

    /// Bytes in all buffers.
    pub(super) fn held(&self) -> usize {
        self.held.get()
    }

    /// Whether the connections of the token or of the server hold too many bytes together.
    pub(super) fn is_over(&self, limits: &Limits) -> bool {
        self.held.is_over(limits)
    }

    /// Bytes that readers have taken, ever: a measure of progress.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn has_reader(&self) -> bool {
        self.connection.reader.is_some() || self.sessions.values().any(|stream| stream.reader.is_some())
    }

    /// Notes that a request or a response named a session.
    pub(super) fn name(&mut self, session: &str) -> Result<(), TooManySessions> {
        if !self.sessions.contains_key(session) {
            let stream = self.new_session()?;
            self.sessions.insert(Arc::from(session), stream);
        }
        let Some(stream) = self.sessions.get_mut(session) else { return Ok(()) };
        if !stream.named {
            stream.named = true;
            if stream.reader.is_some() {
                self.unnamed = self.unnamed.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Adds a message of the connection.
    // HTTP-11
    pub(super) fn add(&mut self, line: &[u8]) {
        let size = self.connection.add(line, self.ascii);
        self.held.add(size);
        self.connection.wake();
    }

    /// Adds a message of a session. Returns whether it waits for a reader, so that
    /// [`fall_back`](Self::fall_back) is due.
    // HTTP-12, HTTP-31: messages of a session wait for the reader of its stream.
    pub(super) fn add_to_session(&mut self, session: &str, line: &[u8]) -> bool {
        // An agent with more sessions than a client may have is served, without streams of their
        // own.
        if self.name(session).is_err() {
            self.add(line);
            return false;
        }
        let Some(stream) = self.sessions.get_mut(session) else { return false };
        let was_empty = stream.buffer.is_empty();
        self.held.add(stream.add(line, self.ascii));
        stream.wake();
        if stream.reader.is_some() {
            return false;
        }
        let (count, route) = (stream.buffer.len(), stream.route);
        if route == Route::Connection {
            self.share(session, count);
        }
        was_empty && route == Route::Own
    }

    /// Adds the response to a request that opened or closed a session: behind the messages of the
    /// session if there are some or they have a reader, else on the connection's stream.
    // HTTP-13: so history arrives before the response of `session/load`.
    pub(super) fn add_response(&mut self, session: &str, line: &[u8]) -> bool {
        match self.sessions.get(session) {
            Some(stream) if stream.reader.is_some() || !stream.buffer.is_empty() => {
                self.add_to_session(session, line)
            }
            _ => {
                self.add(line);
                false
            }
        }
    }

    /// Uses the connection's stream for a session whose messages have waited: first for one
    /// message, then for all. Returns whether the rest still waits.
    pub(super) fn fall_back(&mut self, session: &str) -> bool {
        let Some(stream) = self.sessions.get_mut(session) else { return false };
        if stream.reader.is_some() || stream.buffer.is_empty() {
            return false;
        }
        let count = match stream.route {
            Route::Own => {
                stream.route = Route::Probed;
                whole_events(&stream.buffer, 0)
            }
            Route::Probed | Route::Connection => {
                stream.route = Route::Connection;
                stream.buffer.len()
            }
        };
        let is_probed = stream.route == Route::Probed;
        self.share(session, count);
        is_probed
    }

    /// Lets the connection's reader take the first `count` bytes of a session.
    fn share(&mut self, session: &str, count: usize) {
        let Some(stream) = self.sessions.get_mut(session) else { return };
        let was_shared = stream.shared > 0;
        stream.shared = count;
        if !was_shared {
            self.shared.push_back(Arc::from(session));
        }
        self.connection.wake();
    }

    /// Moves shared events into the connection's stream if it is empty.
    fn take_shared(&mut self) {
        if !self.connection.buffer.is_empty() {
            return;
        }
        let Some(session) = self.shared.pop_front() else { return };
        let Some(stream) = self.sessions.get_mut(&session) else { return };
        let events = stream.buffer.get(..stream.shared).unwrap_or_default();
        let count = whole_events(events, PIECE);
        self.connection.buffer = stream.buffer.split_to(count);
        stream.shared -= count;
        if stream.shared > 0 {
            self.shared.push_back(Arc::clone(&session));
        }
        if count > PIECE {
            self.begun = Some((session, count));
        }
    }

    /// Lets a session be read again whose event the connection's reader has taken, or will never
    /// take.
    fn end_begun(&mut self) {
        if let Some((session, _)) = self.begun.take()
            && let Some(stream) = self.sessions.get_mut(&session)
        {
            stream.wake();
        }
    }

    /// Begins to read a stream. A reader that is there already ends: it may be the dead socket of
    /// the same client.
    // HTTP-10, HTTP-21
    pub(super) fn attach(&mut self, session: Option<&str>) -> Result<(Session, ReaderId), TooManySessions> {
        self.readers += 1;
        let id = ReaderId(self.readers);
        let Some(session) = session else {
            self.connection.attach(id);
            return Ok((None, id));
        };
        let is_unnamed =
            self.sessions.get(session).is_none_or(|stream| !stream.named && stream.reader.is_none());
        if is_unnamed && self.unnamed >= UNNAMED {
            return Err(TooManySessions);
        }
        if !self.sessions.contains_key(session) {
            let stream = self.new_session()?;
            self.sessions.insert(Arc::from(session), stream);
        }
        self.unnamed += usize::from(is_unnamed);
        let session = Arc::from(session);
        let stream = self.sessions.entry(Arc::clone(&session)).or_default();
        stream.attach(id);
        stream.route = Route::Own;
        stream.shared = 0;
        self.shared.retain(|other| *other != session);
        Ok((Some(session), id))
    }

    /// Ends a reader.
    pub(super) fn detach(&mut self, session: &Session, id: ReaderId) {
        let Some(stream) = self.stream(session) else { return };
        if stream.reader != Some(id) {
            return;
        }
        stream.reader = None;
        stream.waker = None;
        if session.is_none() {
            return self.end_begun();
        }
        let is_forgotten = !stream.named && stream.buffer.is_empty();
        if let Some(session) = session
            && is_forgotten
        {
            self.sessions.remove(session);
            self.unnamed = self.unnamed.saturating_sub(1);
        }
    }

    /// Takes events for a reader. `None` is the end of its stream.
    pub(super) fn poll_take(
        &mut self,
        session: &Session,
        id: ReaderId,
        cx: &Context<'_>,
    ) -> Poll<Option<Bytes>> {
        if session.is_none() && self.connection.reader == Some(id) {
            self.take_shared();
        }
        let over = self.over;
        // Its next message must not overtake one that the connection's stream has sent in part.
        let is_begun = session.is_some() && self.begun.as_ref().map(|(begun, _)| begun) == session.as_ref();
        let Some(stream) = self.stream(session) else { return Poll::Ready(None) };
        if stream.reader != Some(id) {
            return Poll::Ready(None);
        }
        if !stream.buffer.is_empty() && !is_begun {
            let count = stream.buffer.len().min(PIECE);
            let bytes = stream.buffer.split_to(count).freeze();
            self.held.subtract(count);
            self.taken += count as u64;
            if session.is_none()
                && let Some((_, left)) = &mut self.begun
            {
                *left = left.saturating_sub(count);
                if *left == 0 {
                    self.end_begun();
                }
            }
            return Poll::Ready(Some(bytes));
        }
        if over && !is_begun {
            return Poll::Ready(None);
        }
        stream.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends all streams, at once or when they are empty.
    // HTTP-35: a session's stream ends only with the connection.
    pub(super) fn end(&mut self, at_once: bool) {
        self.over = true;
        for stream in self.sessions.values_mut().chain([&mut self.connection]) {
            if at_once {
                self.held.subtract(stream.buffer.len());
                stream.buffer = BytesMut::new();
                stream.shared = 0;
            }
            stream.wake();
        }
        if at_once {
            self.shared.clear();
            self.begun = None;
        }
    }

    /// Makes the stream of another session. If there are too many, it forgets one without reader
    /// and messages: that session may be closed long since, and is made again if it is not.
    fn new_session(&mut self) -> Result<Stream, TooManySessions> {
        let slot = |streams: &Self| streams.token_sessions.take(streams.max_token_sessions);
        if self.sessions.len() < self.max_sessions
            && let Some(slot) = slot(self)
        {
            return Ok(Stream { _slot: Some(slot), ..Stream::default() });
        }
        let unused =
            self.sessions.iter().find(|(_, stream)| stream.reader.is_none() && stream.buffer.is_empty());
        let unused = unused.map(|(session, _)| Arc::clone(session)).ok_or(TooManySessions)?;
        self.sessions.remove(&unused);
        Ok(Stream { _slot: Some(slot(self).ok_or(TooManySessions)?), ..Stream::default() })
    }

    fn stream(&mut self, session: &Session) -> Option<&mut Stream> {
        match session {
            None => Some(&mut self.connection),
            Some(session) => self.sessions.get_mut(session),
        }
    }
}

impl Stream {
    /// Adds an event. Returns its size.
    fn add(&mut self, line: &[u8], ascii: bool) -> usize {
        let before = self.buffer.len();
        self.buffer.extend_from_slice(b"data: ");
        match std::str::from_utf8(line) {
            Ok(text) if ascii && !line.is_ascii() => escape(text, &mut self.buffer),
            _ => self.buffer.extend_from_slice(line),
        }
        self.buffer.extend_from_slice(b"\n\n");
        self.buffer.len() - before
    }

    fn attach(&mut self, id: ReaderId) {
        self.reader = Some(id);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Returns the length of the first events: as many as fit into `limit`, at least one.
fn whole_events(events: &[u8], limit: usize) -> usize {
    let fitting = events.get(..limit).unwrap_or(events);
    let end = memchr::memmem::rfind(fitting, b"\n\n").or_else(|| memchr::memmem::find(events, b"\n\n"));
    end.map_or(events.len(), |end| end + 2)
}

/// Escapes characters beyond ASCII, which JSON has only within strings.
// The Python SDK decodes each chunk of the network by itself and fails on a character that is cut.
fn escape(text: &str, out: &mut BytesMut) {
    let mut units = [0; 2];
    for c in text.chars() {
        match c.is_ascii() {
            true => out.extend_from_slice(&[c as u8]),
            false => {
                for unit in c.encode_utf16(&mut units) {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
