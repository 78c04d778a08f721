//! The memory between two frames: who waits for which answer, and which requests of the peer are open.

use crate::open::Open;
use crate::{ErrorObject, Fault, Frame, Id, Malformed, encode};
use serde::Serialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// What a machine accepts.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Requests open at once, in each direction.
    pub open_requests: usize,
    /// Whether a line that does not even begin like a message is answered.
    ///
    /// An agent answers it (RPC-09). A client does not: what it reads is the standard output of a program, and a log
    /// line there is a slip of the agent's author that an error sent to the agent would not mend.
    pub answer_noise: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { depth: 1024, open_requests: 4096, answer_noise: true }
    }
}

/// What a received line means.
#[derive(Debug)]
pub enum Event<'a, W, T> {
    /// A request to be executed; it is open until [`Machine::answer`].
    Request {
        /// For the answer.
        id: Id,
        /// What to do.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
        /// The token that was made for it, which a later [`Event::CancelRequest`] brings back.
        token: T,
    },
    /// A notification.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours.
    Answer {
        /// Who waits for it.
        waiter: W,
        /// The id it was sent with.
        id: i64,
        /// What came.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// The peer would like an open request to end; it still wants an answer (CANCEL-16).
    CancelRequest {
        /// The token of that request.
        token: T,
    },
    /// Not a message, or one that was refused. If an answer is due it is already written.
    Noise {
        /// The line as it came.
        line: &'a [u8],
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// Nothing to do, and nothing wrong enough to bother anybody.
    Ignored {
        /// Why.
        reason: &'static str,
    },
}

/// Why a request was not sent.
#[derive(Debug)]
pub enum RequestError {
    /// Its parameters cannot be serialized.
    Encode(serde_json::Error),
    /// Too many requests wait for an answer already.
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
/// `W` is whatever waits for an answer to a request of ours. `T` is the token of a request of the peer, made when it
/// arrives and given out again when the peer cancels it.
///
/// Every method that has something to say appends whole lines to the `out` it is given. RPC-20: answers find their request by
/// id, any number of requests may be open in both directions, and RPC-08: the ids of the two directions never meet.
#[derive(Debug)]
pub struct Machine<W, T> {
    limits: Limits,
    next_id: i64,
    waiting: HashMap<i64, W, BuildHasherDefault<OwnIds>>,
    open: Open<T>,
}

impl<W, T> Machine<W, T> {
    /// A machine at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Machine { limits, next_id: 0, waiting: HashMap::default(), open: Open::default() }
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many requests of ours wait for an answer.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests of the peer are not answered yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The tokens of the requests that are not answered yet, in no particular order.
    pub fn open_tokens(&self) -> impl Iterator<Item = &T> {
        self.open.tokens()
    }

    /// Writes a request and keeps `waiter` for its answer. Returns the id.
    ///
    /// # Errors
    /// When nothing was written; `waiter` is dropped then.
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

    /// The first half of [`request`](Self::request), for those who must keep the waiter if it fails: writes the request.
    /// Before anything else is received, [`wait`](Self::wait) says who waits for the answer.
    ///
    /// # Errors
    /// When nothing was written.
    pub fn send<P: Serialize + ?Sized>(
        &mut self,
        method: &str,
        params: &P,
        out: &mut Vec<u8>,
    ) -> Result<i64, RequestError> {
        if self.waiting.len() >= self.limits.open_requests {
            return Err(RequestError::TooMany);
        }
        // RPC-07, RPC-08: integers from 0 upward, each used once in the life of a connection.
        let id = self.next_id;
        encode::request(out, &Id::Int(id), method, params).map_err(RequestError::Encode)?;
        self.next_id = id.wrapping_add(1);
        Ok(id)
    }

    /// The second half of [`request`](Self::request): `waiter` waits for the answer to `id`.
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

    /// Takes one line (without its line feed). `token` is called if it is a request that may be executed.
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

    /// [`receive`](Self::receive) for a line that was parsed already, with the same depth limit: a driver that shares the
    /// machine between threads parses before it takes the lock.
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
            Frame::Request { id, method, params } => self.incoming(id, method, params, line, out, token),
            Frame::Notification { method, params } => self.told(method, params),
            Frame::Response { id, outcome } => self.answered(id, outcome, line),
            Frame::Malformed(malformed) => self.refused(malformed, out),
        }
    }

    /// Answers an open request. RPC-24: exactly once, so `false` says that it is not open (any more) and nothing was
    /// written. A result that cannot be serialized becomes an internal error.
    pub fn answer<R: Serialize + ?Sized>(
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

    /// Answers a request with an error without ever opening it, for a driver that has no room for it.
    pub fn refuse(&self, id: &Id, error: &ErrorObject, out: &mut Vec<u8>) {
        write_error(out, id, error);
    }

    /// The caller of request `id` gave up. CANCEL-13: the peer is told; its answer, which still comes, will find nobody and
    /// is dropped. Returns the waiter, or `None` if the request was not open.
    pub fn abandon(&mut self, id: i64, out: &mut Vec<u8>) -> Option<W> {
        let waiter = self.waiting.remove(&id)?;
        let written = encode::notification(out, CANCEL_REQUEST, &CancelParams(id));
        debug_assert!(written.is_ok(), "an integer always serializes");
        Some(waiter)
    }

    /// The connection is over: everybody who still waits, in the order in which they asked.
    pub fn close(&mut self) -> impl Iterator<Item = W> + use<W, T> {
        let mut waiters: Vec<(i64, W)> = self.waiting.drain().collect();
        waiters.sort_unstable_by_key(|(id, _)| *id);
        waiters.into_iter().map(|(_, waiter)| waiter)
    }

    fn incoming<'a>(
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
            // CANCEL-14: these names are notifications; as a request each is an unknown method (RPC-12).
            write_error(out, &id, &ErrorObject::method_not_found(&method));
            return Event::Noise { line, reason: Cow::Borrowed("a reserved method was sent as a request") };
        }
        if self.open.len() >= self.limits.open_requests {
            write_error(
                out,
                &id,
                &ErrorObject::internal("too many requests are open, wait for their answers"),
            );
            return Event::Noise { line, reason: Cow::Borrowed("too many requests are open") };
        }
        let Some(token) = self.open.insert(&id, token) else {
            // RPC-08: the id is taken, and an answer that names it would be read as that of the first request.
            write_error(out, &Id::Null, &ErrorObject::invalid_request("the id belongs to an open request"));
            return Event::Noise { line, reason: Cow::Borrowed("the id belongs to an open request") };
        };
        let token = token.clone();
        Event::Request { id, method, params, token }
    }

    fn told<'a>(&mut self, method: Cow<'a, str>, params: Option<&'a RawValue>) -> Event<'a, W, T>
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
        // CANCEL-21: the id is one of the sender's own, so only what it has open here is looked at. CANCEL-20: anything
        // else is ignored.
        let id = params.and_then(|params| serde_json::from_str::<CancelId>(params.get()).ok());
        match id.and_then(|CancelId(id)| self.open.get(&id?)) {
            Some(token) => Event::CancelRequest { token: token.clone() },
            None => Event::Ignored { reason: "a cancellation of something that is not open" },
        }
    }

    fn answered<'a>(
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
            (Some((id, waiter)), outcome) => Event::Answer { waiter, id, outcome },
            // Nobody waits, but it says that something we sent could not be read: worth a line in a log.
            (None, Err(error)) if id == Id::Null => {
                Event::Noise { line, reason: Cow::Owned(format!("the peer complains: {error}")) }
            }
            // RPC-14
            (None, _) => Event::Ignored { reason: "an answer to a request that is not open" },
        }
    }

    fn refused<'a>(&mut self, malformed: Malformed<'a>, out: &mut Vec<u8>) -> Event<'a, W, T> {
        let Malformed { line, fault, answer } = malformed;
        if fault == Fault::Blank {
            // STDIO-11
            return Event::Ignored { reason: "a blank line" };
        }
        if let Some((id, error)) = answer
            && (fault != Fault::Log || self.limits.answer_noise)
        {
            write_error(out, &id, &error);
        }
        Event::Noise { line, reason: Cow::Owned(fault.to_string()) }
    }
}

/// Methods whose names begin like this belong to the protocol itself.
const RESERVED: &str = "$/";
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

/// Our own ids count upward and nobody else chooses them, so they are their own hash, spread a little.
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
