//! Parsing: one line becomes one [`Frame`], with `params` and `result` undecoded and borrowed.

use crate::scan::{self, Body};
use crate::{ErrorObject, Id, code};
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Prefix of methods that belong to the protocol itself.
pub(crate) const RESERVED: &str = "$/";

/// A parsed line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// A request.
    Request {
        /// Repeated unchanged in the response.
        id: Id,
        /// The method name.
        method: Cow<'a, str>,
        /// The params; `null` and absent are the same.
        // RPC-21
        params: Option<&'a RawValue>,
    },
    /// A notification.
    Notification {
        /// The method name.
        method: Cow<'a, str>,
        /// The params; `null` and absent are the same.
        params: Option<&'a RawValue>,
    },
    /// A response to a request of ours.
    Response {
        /// The id of that request.
        id: Id,
        /// The `result` or the `error` member.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// Not a message, or one that must not be executed.
    Malformed(Malformed<'a>),
}

/// A line that is not a valid message.
#[derive(Debug)]
#[non_exhaustive]
pub struct Malformed<'a> {
    /// The line without its line end.
    pub line: &'a [u8],
    /// The reason.
    pub fault: Fault,
    /// The error response that is due, if any. None is due to a broken notification whose method
    /// begins with `$/`.
    pub answer: Option<(Id, ErrorObject)>,
}

/// Reason why a line is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Only whitespace.
    Blank,
    /// Not JSON, and does not begin like a message: most likely a log line on the wrong stream.
    Log,
    /// Begins like a message but is not JSON.
    NotJson,
    /// JSON, but not a message.
    NotMessage,
    /// A JSON array.
    Batch,
    /// Nested deeper than the limit.
    TooDeep,
    /// Longer than the limit; only its beginning is known.
    TooLong,
    /// `params` is neither an object nor null.
    BadParams,
    /// A response without a usable id.
    BadResponse,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Blank => "the line is blank",
            Fault::Log => "the line is not a message",
            Fault::NotJson => "the line is not JSON",
            Fault::NotMessage => "the JSON is not a JSON-RPC 2.0 message",
            Fault::Batch => "batches are not part of this protocol",
            Fault::TooDeep => "the message is nested too deeply",
            Fault::TooLong => "the message is too long",
            Fault::BadParams => "params is not an object",
            Fault::BadResponse => "the answer names no request",
        })
    }
}

/// A request or notification whose params are not validated yet; see [`Scan`].
///
/// If [`params`](Self::params) is one JSON value, the line is this message. Otherwise nothing is
/// known about the line, and [`validate`](Self::validate) parses it again. A receiver that decodes
/// the params to their end saves the separate validation pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawCall<'a> {
    /// The id of a request; `None` for a notification.
    pub id: Option<Id>,
    /// The method name. Never one that begins with `$`.
    pub method: &'a str,
    /// Text that begins with `{`.
    pub params: &'a str,
}

impl<'a> RawCall<'a> {
    /// Validates the params and returns the frame of `line`, from which this call was scanned.
    pub fn validate(self, line: &'a [u8], depth_limit: usize) -> Frame<'a> {
        let Ok(params) = serde_json::from_str(self.params) else {
            return Frame::parse_general(line, depth_limit);
        };
        let (method, params) = (Cow::Borrowed(self.method), Some(params));
        match self.id {
            Some(id) => Frame::Request { id, method, params },
            None => Frame::Notification { method, params },
        }
    }
}

/// A line whose envelope is parsed.
#[derive(Debug)]
pub enum Scan<'a> {
    /// A request or notification in the usual form; its params are not validated.
    Call(RawCall<'a>),
    /// Any other line.
    Frame(Frame<'a>),
}

impl<'a> Scan<'a> {
    /// Parses the envelope of one line (without its line feed). `depth_limit` is that of
    /// [`Frame::parse`].
    pub fn line(line: &'a [u8], depth_limit: usize) -> Self {
        match scan::envelope(line, depth_limit) {
            Some((id, Body::Call { method, params })) if !method.starts_with('$') => {
                Scan::Call(RawCall { id, method, params })
            }
            Some((Some(id), Body::Result(result))) => match serde_json::from_str(result) {
                Ok(result) => Scan::Frame(Frame::Response { id, outcome: Ok(result) }),
                Err(_) => Scan::Frame(Frame::parse_general(line, depth_limit)),
            },
            _ => Scan::Frame(Frame::parse_general(line, depth_limit)),
        }
    }
}

impl<'a> Frame<'a> {
    /// Parses one line (without its line feed). `depth_limit` counts the levels of objects and
    /// arrays, including the envelope.
    ///
    /// Never panics and never recurses into the input.
    pub fn parse(line: &'a [u8], depth_limit: usize) -> Frame<'a> {
        match Scan::line(line, depth_limit) {
            Scan::Call(call) => call.validate(line, depth_limit),
            Scan::Frame(frame) => frame,
        }
    }

    fn parse_general(line: &'a [u8], depth_limit: usize) -> Frame<'a> {
        let body = strip(line);
        let Some(first) = body.first() else {
            return malformed(line, Fault::Blank, None);
        };
        // STDIO-01: the whole line is checked once, so that slices of it need no further check.
        let Ok(text) = std::str::from_utf8(body) else {
            return not_json(line, body);
        };
        if *first != b'{' {
            return match serde_json::from_str::<IgnoredAny>(text) {
                Err(_) => not_json(line, body),
                // RPC-11: one error for the whole batch; its entries are not looked at.
                Ok(_) if *first == b'[' => refuse(line, Fault::Batch),
                // RPC-10
                Ok(_) => refuse(line, Fault::NotMessage),
            };
        }
        let mut envelope = Envelope::default();
        match envelope.read(text) {
            Ok(()) => envelope.into_frame(line, too_deep(body, depth_limit)),
            Err(_) => not_json(line, body),
        }
    }

    /// Classifies a line that was too long to be kept, from its beginning. A request whose id is
    /// known is refused, and a response whose id is known fails the request, so that no caller
    /// waits for ever. Everything else is malformed.
    pub fn parse_head(head: &'a [u8], why: &str) -> Frame<'a> {
        let body = strip(head);
        // The cut may have split a character.
        let whole = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        let text = body.get(..whole).and_then(|whole| std::str::from_utf8(whole).ok()).unwrap_or_default();
        let mut envelope = Envelope::default();
        // It fails at the cut, after every member before the cut was read.
        let _ = envelope.read(text);
        let id = envelope.id.and_then(Id::from_raw);
        if envelope.method.is_none() && matches!(envelope.begun, Some(Member::Result | Member::Error)) {
            return match id {
                Some(id) => Frame::Response { id, outcome: Err(unusable(why)) },
                None => malformed(head, Fault::BadResponse, None),
            };
        }
        let fault = if looks_like_message(body) { Fault::TooLong } else { Fault::Log };
        let id = id.filter(|_| envelope.method.is_some()).unwrap_or(Id::Null);
        malformed(head, fault, Some((id, ErrorObject::invalid_request(why))))
    }
}

/// The error that a caller gets instead of a broken response.
fn unusable(why: &str) -> ErrorObject {
    ErrorObject::internal(format!("the peer's answer cannot be used: {why}"))
}

/// Removes whitespace around the message, a carriage return before the line feed and a byte order
/// mark, which some programs print first.
// STDIO-11
fn strip(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn malformed<'a>(line: &'a [u8], fault: Fault, answer: Option<(Id, ErrorObject)>) -> Frame<'a> {
    Frame::Malformed(Malformed { line, fault, answer })
}

// RPC-10: JSON that is not a message is answered with -32600 and id null.
fn refuse(line: &[u8], fault: Fault) -> Frame<'_> {
    malformed(line, fault, Some((Id::Null, ErrorObject::invalid_request(fault.to_string()))))
}

// RPC-09, V2-02: a line that is not JSON is answered with -32700 and id null.
fn not_json<'a>(line: &'a [u8], body: &[u8]) -> Frame<'a> {
    let fault = if looks_like_message(body) { Fault::NotJson } else { Fault::Log };
    malformed(line, fault, Some((Id::Null, ErrorObject::parse_error())))
}

/// Whether a line was meant as a message. "[INFO] started" is a log line, although it begins like a
/// batch.
fn looks_like_message(body: &[u8]) -> bool {
    let after_bracket = body.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    body.starts_with(b"{") || after_bracket.is_some_and(|rest| rest.starts_with(b"{"))
}

/// The raw members of an envelope.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// A member occurred twice.
    repeated: bool,
    /// The member that was read last, perhaps only in part.
    begun: Option<Member>,
}

impl<'a> Envelope<'a> {
    /// Reads all of `text`. After an error the members before it are set.
    fn read(&mut self, text: &'a str) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_map(EnvelopeVisitor(self))?;
        json.end()
    }

    fn into_frame(self, line: &'a [u8], too_deep: bool) -> Frame<'a> {
        let sound = !self.repeated && self.jsonrpc.is_some_and(|version| version.get() == r#""2.0""#);
        match self.method {
            Some(method) => self.call(line, sound, method, too_deep),
            None if self.result.is_some() || self.error.is_some() => self.response(line, sound, too_deep),
            None => refuse(line, Fault::NotMessage),
        }
    }

    fn call(&self, line: &'a [u8], sound: bool, method: &'a RawValue, too_deep: bool) -> Frame<'a> {
        let id = self.id.map(Id::from_raw);
        let name = text_of(method);
        // CANCEL-14: there are clients whose keep-alive is `{"method":"$/ping"}`, and they do not
        // expect an error for it.
        if !sound && id.is_none() && name.as_ref().is_some_and(|name| name.starts_with(RESERVED)) {
            return malformed(line, Fault::NotMessage, None);
        }
        // RPC-01, RPC-06, RPC-10: the version, the id and the type of the method must be right.
        let (true, Some(method), true) = (sound, name, id != Some(None)) else {
            return refuse(line, Fault::NotMessage);
        };
        let id = id.flatten();
        let params = self.params.filter(|params| params.get() != "null");
        // RPC-25: positional params are refused, except for extensions, which define their own
        // params.
        let fits = params.is_none_or(|params| params.get().starts_with('{')) || method.starts_with('_');
        let fault = if too_deep {
            Fault::TooDeep
        } else if !fits {
            Fault::BadParams
        } else {
            return match id {
                Some(id) => Frame::Request { id, method, params },
                None => Frame::Notification { method, params },
            };
        };
        // RPC-04: without an id there is no response.
        malformed(line, fault, id.map(|id| (id, ErrorObject::invalid_params(fault.to_string()))))
    }

    // RPC-10: a response is never answered. A broken one fails the request that it names, because
    // no better response will come; one that names no request is dropped.
    fn response(&self, line: &'a [u8], sound: bool, too_deep: bool) -> Frame<'a> {
        let Some(id) = self.id.and_then(Id::from_raw) else {
            return malformed(line, Fault::BadResponse, None);
        };
        let broken = |what: &str| Err(unusable(what));
        let error = self.error.filter(|error| error.get() != "null");
        let outcome = if !sound {
            broken("it is not a JSON-RPC 2.0 message")
        } else if too_deep {
            broken("it is nested too deeply")
        } else {
            match (self.result, error) {
                // JSON-RPC 1.0 peers send both members, one of them null.
                (Some(result), Some(error)) if result.get() == "null" => Err(read_error(error)),
                // RPC-23: with both, the result counts.
                (Some(result), _) => Ok(result),
                (None, Some(error)) => Err(read_error(error)),
                (None, None) => broken("its error is null"),
            }
        };
        Frame::Response { id, outcome }
    }
}

fn read_error(raw: &RawValue) -> ErrorObject {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| {
        let message = "the peer answered with an error that has no code";
        let mut error = ErrorObject::new(code::INTERNAL_ERROR, message);
        error.data = Some(raw.to_owned());
        error
    })
}

/// The content of a JSON string, borrowed unless it contains escapes.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// Whether objects and arrays are nested deeper than `limit`. The result means nothing for invalid
/// JSON.
fn too_deep(json: &[u8], limit: usize) -> bool {
    if scan::is_shallow(json, limit) {
        return false;
    }
    let mut depth = 0usize;
    let mut rest = json;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => rest = after_string(rest),
            _ => {}
        }
    }
    false
}

/// The text after a string whose opening quote was consumed.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + 1 + usize::from(escaped)..).unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}

struct EnvelopeVisitor<'e, 'a>(&'e mut Envelope<'a>);

impl<'de> Visitor<'de> for EnvelopeVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let EnvelopeVisitor(envelope) = self;
        while let Some(member) = map.next_key_seed(MemberSeed)? {
            envelope.begun = Some(member);
            let slot = match member {
                Member::Jsonrpc => &mut envelope.jsonrpc,
                Member::Id => &mut envelope.id,
                Member::Method => &mut envelope.method,
                Member::Params => &mut envelope.params,
                Member::Result => &mut envelope.result,
                Member::Error => &mut envelope.error,
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // Two parsers could read a line with a repeated member as two different messages.
            envelope.repeated |= slot.is_some();
            *slot = Some(map.next_value()?);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

struct MemberSeed;

impl<'de> DeserializeSeed<'de> for MemberSeed {
    type Value = Member;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Member, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for MemberSeed {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Member, E> {
        Ok(match name {
            "jsonrpc" => Member::Jsonrpc,
            "id" => Member::Id,
            "method" => Member::Method,
            "params" => Member::Params,
            "result" => Member::Result,
            "error" => Member::Error,
            _ => Member::Other,
        })
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
