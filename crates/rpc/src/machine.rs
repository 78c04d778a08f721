//! The state between two frames: callers that wait for a response, and open requests of the peer.

use crate::frame::RESERVED;
use crate::open_requests::OpenRequests;
use crate::{ErrorObject, Fault, Frame, Id, Malformed, encode};
use serde::Serialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// Limits of a [`Machine`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Requests open at once, in each direction.
    pub open_requests: usize,
    /// Whether a line that does not begin like a message gets an error response.
    ///
    /// Agents send one. Clients do not: they read the standard output of a program, and an error
    /// sent to that program would not remove the log line from it.
    // RPC-09
    pub answer_noise: bool,
}

impl Limits {
    /// Sets [`depth`](#structfield.depth).
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`open_requests`](#structfield.open_requests).
    #[must_use]
    pub fn open_requests(mut self, open_requests: usize) -> Self {
        self.open_requests = open_requests;
        self
    }

    /// Sets [`answer_noise`](#structfield.answer_noise).
    #[must_use]
    pub fn answer_noise(mut self, answer_noise: bool) -> Self {
        self.answer_noise = answer_noise;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { depth: 1024, open_requests: 4096, answer_noise: true }
    }
}

/// Meaning of a received line.
#[derive(Debug)]
pub enum Event<'a, W, T> {
    /// A request to execute; it is open until [`Machine::respond`].
    Request {
        /// The id for the response.
        id: Id,
        /// The method name.
        method: Cow<'a, str>,
        /// The params.
        params: Option<&'a RawValue>,
        /// The token of the request; [`Event::CancelRequest`] returns the same one.
        token: T,
    },
    /// A notification.
    Notification {
        /// The method name.
        method: Cow<'a, str>,
        /// The params.
        params: Option<&'a RawValue>,
    },
    /// The response to a request of ours.
    Response {
        /// The waiter that was registered with the request.
        waiter: W,
        /// The id of the request.
        id: i64,
        /// The result or the error.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// The peer cancels an open request, which still gets a response.
    // CANCEL-16
    CancelRequest {
        /// The token of that request.
        token: T,
    },
    /// Not a message, or one that was refused. A due error response is already written.
    Noise {
        /// The line.
        line: &'a [u8],
        /// The reason.
        reason: Cow<'static, str>,
    },
    /// A line without effect, such as a response to an abandoned request.
    Ignored {
        /// The reason.
        reason: &'static str,
    },
}

/// Reason why a request was not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The params cannot be serialized.
    Encode(serde_json::Error),
    /// Too many requests of ours are open.
    TooMany,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Encode(error) => write!(f, "the parameters cannot be serialized: {error}"),
            RequestError::TooMany => f.write_str("too many requests wait for an answer"),
        }
    }
}

impl std::error::Error for RequestError {}

/// One end of a connection.
///
/// `W` waits for the response to a request of ours. `T` is the token of a request of the peer,
/// created when the request arrives and returned when the peer cancels it.
///
/// Methods append whole lines to `out`.
// RPC-20: responses are matched by id, and any number of requests may be open in both directions.
// RPC-08: the ids of the two directions are independent.
#[derive(Debug)]
pub struct Machine<W, T> {
    limits: Limits,
    next_id: i64,
    waiting: HashMap<i64, W, BuildHasherDefault<OwnIds>>,
    open: OpenRequests<T>,
}

impl<W, T> Machine<W, T> {
    /// Creates the machine of a new connection.
    pub fn new(limits: Limits) -> Self {
        Machine { limits, next_id: 0, waiting: HashMap::default(), open: OpenRequests::default() }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of requests of ours that wait for a response.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of open requests of the peer.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the tokens of the open requests of the peer, in no particular order.
    pub fn open_tokens(&self) -> impl Iterator<Item = &T> {
        self.open.tokens()
    }

    /// Writes a request and registers `waiter` for its response. Returns the id.
    ///
    /// # Errors
    /// Nothing was written, and `waiter` is dropped.
    pub fn request<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        waiter: W,
        out: &mut Vec<u8>,
    ) -> Result<i64, RequestError> {
        let id = self.send(method, params, out)?;
        self.wait(id, waiter);
        Ok(id)
    }

    /// Writes a request without a waiter, for callers that need the waiter back on failure. Call
    /// [`wait`](Self::wait) before the next line is received.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn send<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        out: &mut Vec<u8>,
    ) -> Result<i64, RequestError> {
        if self.waiting.len() >= self.limits.open_requests {
            return Err(RequestError::TooMany);
        }
        // RPC-07, RPC-08: ids count from 0 and are never reused within a connection.
        let id = self.next_id;
        encode::request(out, &Id::Int(id), method, params).map_err(RequestError::Encode)?;
        self.next_id = id.wrapping_add(1);
        Ok(id)
    }

    /// Registers the waiter of a request written by [`send`](Self::send).
    pub fn wait(&mut self, id: i64, waiter: W) {
        self.waiting.insert(id, waiter);
    }

    /// Writes a notification.
    pub fn notify<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        encode::notification(out, method, params)
    }

    /// Processes one line (without its line feed). `token` creates the token of a request to
    /// execute.
    pub fn receive<'a>(
        &mut self,
        line: &'a [u8],
        out: &mut Vec<u8>,
        token: impl FnOnce() -> T,
    ) -> Event<'a, W, T>
    where
        T: Clone,
    {
        self.accept(Frame::parse(line, self.limits.depth), line, out, token)
    }

    /// Processes a line that was parsed with the same depth limit, so that a driver can parse
    /// before it locks the machine.
    pub fn accept<'a>(
        &mut self,
        frame: Frame<'a>,
        line: &'a [u8],
        out: &mut Vec<u8>,
        token: impl FnOnce() -> T,
    ) -> Event<'a, W, T>
    where
        T: Clone,
    {
        match frame {
            Frame::Request { id, method, params } => self.on_request(id, method, params, line, out, token),
            Frame::Notification { method, params } => self.on_notification(method, params),
            Frame::Response { id, outcome } => self.on_response(id, outcome, line),
            Frame::Malformed(malformed) => self.on_malformed(malformed, out),
        }
    }

    /// Responds to an open request. A result that cannot be serialized becomes an internal error.
    ///
    /// Returns `false` and writes nothing if the request is not open.
    // RPC-24: exactly one response.
    pub fn respond<R: Serialize + ?Sized>(
        &mut self,
        id: &Id,
        outcome: Result<&R, &ErrorObject>,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.open.remove(id).is_none() {
            return false;
        }
        let written = match outcome {
            Ok(result) => encode::result(out, id, result),
            Err(error) => encode::error(out, id, error),
        };
        if written.is_err() {
            write_error(out, id, &ErrorObject::internal("the answer could not be serialized"));
        }
        true
    }

    /// Responds with an error to a request that was never opened.
    pub fn refuse(&self, id: &Id, error: &ErrorObject, out: &mut Vec<u8>) {
        write_error(out, id, error);
    }

    /// Cancels a request of ours. Its response, which still comes, is ignored. Returns the waiter,
    /// or `None` if the request was not open.
    // CANCEL-13: the peer is notified.
    pub fn abandon(&mut self, id: i64, out: &mut Vec<u8>) -> Option<W> {
        let waiter = self.waiting.remove(&id)?;
        let written = encode::notification(out, CANCEL_REQUEST, &CancelParams(id));
        debug_assert!(written.is_ok(), "an integer always serializes");
        Some(waiter)
    }

    /// Ends the connection and returns all waiters in the order of their requests.
    pub fn close(&mut self) -> impl Iterator<Item = W> + use<W, T> {
        let mut waiters: Vec<(i64, W)> = self.waiting.drain().collect();
        waiters.sort_unstable_by_key(|(id, _)| *id);
        waiters.into_iter().map(|(_, waiter)| waiter)
    }

    /// Opens a request. Returns the token, or the reason for a refusal, whose error response is
    /// written.
    pub fn open_request(
        &mut self,
        id: &Id,
        out: &mut Vec<u8>,
        token: impl FnOnce() -> T,
    ) -> Result<T, &'static str>
    where
        T: Clone,
    {
        if self.open.len() >= self.limits.open_requests {
            write_error(
                out,
                id,
                &ErrorObject::internal("too many requests are open, wait for their answers"),
            );
            return Err("too many requests are open");
        }
        match self.open.insert(id, token) {
            Some(token) => Ok(token.clone()),
            None => {
                // RPC-08: a response with this id would be read as that of the first request.
                const WHY: &str = "the id belongs to an open request";
                write_error(out, &Id::Null, &ErrorObject::invalid_request(WHY));
                Err(WHY)
            }
        }
    }

    fn on_request<'a>(
        &mut self,
        id: Id,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
        line: &'a [u8],
        out: &mut Vec<u8>,
        token: impl FnOnce() -> T,
    ) -> Event<'a, W, T>
    where
        T: Clone,
    {
        if method.starts_with(RESERVED) {
            // CANCEL-14: these names are notifications; as a request each is an unknown method
            // (RPC-12).
            write_error(out, &id, &ErrorObject::method_not_found(&method));
            return Event::Noise { line, reason: Cow::Borrowed("a reserved method was sent as a request") };
        }
        match self.open_request(&id, out, token) {
            Ok(token) => Event::Request { id, method, params, token },
            Err(reason) => Event::Noise { line, reason: Cow::Borrowed(reason) },
        }
    }

    fn on_notification<'a>(&mut self, method: Cow<'a, str>, params: Option<&'a RawValue>) -> Event<'a, W, T>
    where
        T: Clone,
    {
        if !method.starts_with(RESERVED) {
            return Event::Notification { method, params };
        }
        if method != CANCEL_REQUEST {
            // CANCEL-14
            return Event::Ignored { reason: "an unknown protocol notification" };
        }
        // CANCEL-21: only requests of the sender can be cancelled. CANCEL-20, V2-42: other ids are
        // ignored.
        let id = params.and_then(|params| serde_json::from_str::<CancelId>(params.get()).ok());
        match id.and_then(|CancelId(id)| self.open.get(&id?)) {
            Some(token) => Event::CancelRequest { token: token.clone() },
            None => Event::Ignored { reason: "a cancellation of something that is not open" },
        }
    }

    fn on_response<'a>(
        &mut self,
        id: Id,
        outcome: Result<&'a RawValue, ErrorObject>,
        line: &'a [u8],
    ) -> Event<'a, W, T> {
        let waiter = match id {
            Id::Int(id) => self.waiting.remove(&id).map(|waiter| (id, waiter)),
            _ => None,
        };
        match (waiter, outcome) {
            (Some((id, waiter)), outcome) => Event::Response { waiter, id, outcome },
            // It reports that the peer could not read one of our messages.
            (None, Err(error)) if id == Id::Null => {
                Event::Noise { line, reason: Cow::Owned(format!("the peer complains: {error}")) }
            }
            // RPC-14
            (None, _) => Event::Ignored { reason: "an answer to a request that is not open" },
        }
    }

    fn on_malformed<'a>(&mut self, malformed: Malformed<'a>, out: &mut Vec<u8>) -> Event<'a, W, T> {
        let Malformed { line, fault, answer } = malformed;
        if fault == Fault::Blank {
            // STDIO-11
            return Event::Ignored { reason: "a blank line" };
        }
        if fault == Fault::NotMessage && answer.is_none() {
            return Event::Ignored { reason: "a protocol notification without a version" };
        }
        if let Some((id, error)) = answer
            && (fault != Fault::Log || self.limits.answer_noise)
        {
            write_error(out, &id, &error);
        }
        Event::Noise { line, reason: Cow::Owned(fault.to_string()) }
    }
}

const CANCEL_REQUEST: &str = "$/cancel_request";

fn write_error(out: &mut Vec<u8>, id: &Id, error: &ErrorObject) {
    let written = encode::error(out, id, error);
    debug_assert!(written.is_ok(), "an error object always serializes");
}

struct CancelParams(i64);

impl Serialize for CancelParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("requestId", self.0)])
    }
}

struct CancelId(Option<Id>);

impl<'de> serde::Deserialize<'de> for CancelId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CancelVisitor)
    }
}

struct CancelVisitor;

impl<'de> Visitor<'de> for CancelVisitor {
    type Value = CancelId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with requestId")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CancelId, A::Error> {
        let mut id = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "requestId" {
                id = Id::from_raw(map.next_value::<&RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(CancelId(id))
    }
}

/// Hasher for our own ids, which the peer cannot choose: a multiplication spreads them well enough.
#[derive(Clone, Copy, Debug, Default)]
struct OwnIds(u64);

impl Hasher for OwnIds {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        self.0 = (self.0 ^ id.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
