//! One line becomes one [`Frame`]: the envelope is opened, `params` and `result` stay undecoded and borrowed.

use crate::{ErrorObject, Id, code, plain};
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A line, opened.
#[derive(Debug)]
pub enum Frame<'a> {
    /// The peer wants an answer.
    Request {
        /// To be repeated in the answer, unchanged.
        id: Id,
        /// What to do.
        method: Cow<'a, str>,
        /// With what; `null` and absent are the same (RPC-21).
        params: Option<&'a RawValue>,
    },
    /// The peer tells something.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// With what; `null` and absent are the same.
        params: Option<&'a RawValue>,
    },
    /// The peer answers.
    Response {
        /// Which of our requests.
        id: Id,
        /// The `result`, or the `error`.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
    /// Not a message, or one that must not be executed.
    Malformed(Malformed<'a>),
}

/// A line that is not a message.
#[derive(Debug)]
pub struct Malformed<'a> {
    /// The line itself, without its line end.
    pub line: &'a [u8],
    /// What is wrong with it.
    pub fault: Fault,
    /// What the rules say to answer, if anything.
    pub answer: Option<(Id, ErrorObject)>,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing but blanks.
    Blank,
    /// Not JSON and not even begun like a message: most probably a log line on the wrong stream.
    Log,
    /// Begun like a message, but not JSON.
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
    /// Shaped like an answer, but not to be attributed to any request.
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

impl Frame<'_> {
    /// Opens one line (without its line feed). `depth_limit` counts the levels of objects and arrays, the envelope included.
    ///
    /// Never panics and never recurses into the input.
    pub fn parse(line: &[u8], depth_limit: usize) -> Frame<'_> {
        let body = strip(line);
        let Some(first) = body.first() else {
            return malformed(line, Fault::Blank, None);
        };
        // STDIO-01: the whole line is checked once, so that what is cut out of it needs no further look.
        let Ok(text) = std::str::from_utf8(body) else {
            return not_json(line, body);
        };
        if *first != b'{' {
            return match serde_json::from_str::<IgnoredAny>(text) {
                Err(_) => not_json(line, body),
                // RPC-11: one error for the whole batch, none of its entries is looked at.
                Ok(_) if *first == b'[' => refuse(line, Fault::Batch),
                // RPC-10
                Ok(_) => refuse(line, Fault::NotMessage),
            };
        }
        let shallow = plain::is_shallow(body, depth_limit);
        if shallow && let Some(frame) = plain::read(text) {
            return frame;
        }
        general(line, text, !shallow && too_deep(body, depth_limit))
    }

    /// What can be done about a line that was too long to be kept, from its beginning: a request that has shown its id
    /// is refused by that id, and an answer that has shown its id fails the request that waits for it, so that nobody
    /// waits for ever. Everything else is malformed.
    pub fn parse_head<'a>(head: &'a [u8], why: &str) -> Frame<'a> {
        let body = strip(head);
        // The cut may have split a character.
        let whole = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        let text = body.get(..whole).and_then(|whole| std::str::from_utf8(whole).ok()).unwrap_or_default();
        let mut envelope = Envelope::default();
        // It fails at the cut, with everything before the cut read.
        let _ = envelope.read(text);
        let id = envelope.id.and_then(Id::from_raw);
        if envelope.method.is_none() && matches!(envelope.begun, Some(Member::Result | Member::Error)) {
            return match id {
                Some(id) => Frame::Response { id, outcome: Err(unusable(why)) },
                None => malformed(head, Fault::BadResponse, None),
            };
        }
        let fault = if looks_begun(body) { Fault::TooLong } else { Fault::Log };
        let id = id.filter(|_| envelope.method.is_some()).unwrap_or(Id::Null);
        malformed(head, fault, Some((id, ErrorObject::invalid_request(why))))
    }
}

/// Opens any line that begins like an object; `text` is what is left of it between blanks.
pub(crate) fn general<'a>(line: &'a [u8], text: &'a str, too_deep: bool) -> Frame<'a> {
    let mut envelope = Envelope::default();
    match envelope.read(text) {
        Ok(()) => envelope.into_frame(line, too_deep),
        Err(_) => not_json(line, text.as_bytes()),
    }
}

/// What a waiter gets instead of an answer that makes no sense.
fn unusable(why: &str) -> ErrorObject {
    ErrorObject::internal(format!("the peer's answer cannot be used: {why}"))
}

/// Blanks around the message, a carriage return before the line feed (STDIO-11), and the byte order mark with which
/// some programs begin their output.
fn strip(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn malformed<'a>(line: &'a [u8], fault: Fault, answer: Option<(Id, ErrorObject)>) -> Frame<'a> {
    Frame::Malformed(Malformed { line, fault, answer })
}

/// RPC-10: JSON that is no message is answered with -32600 and id null.
fn refuse(line: &[u8], fault: Fault) -> Frame<'_> {
    malformed(line, fault, Some((Id::Null, ErrorObject::invalid_request(fault.to_string()))))
}

/// RPC-09: what is not JSON is answered with -32700 and id null.
fn not_json<'a>(line: &'a [u8], body: &[u8]) -> Frame<'a> {
    let fault = if looks_begun(body) { Fault::NotJson } else { Fault::Log };
    malformed(line, fault, Some((Id::Null, ErrorObject::parse_error())))
}

/// Whether somebody meant to write a message: "[INFO] started" begins like a batch as little as "INFO: started" does.
fn looks_begun(body: &[u8]) -> bool {
    let after_bracket = body.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    body.starts_with(b"{") || after_bracket.is_some_and(|rest| rest.starts_with(b"{"))
}

/// The members of an envelope as they stand on the wire.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    repeated: bool,
    /// The member that was being read last.
    begun: Option<Member>,
}

impl<'a> Envelope<'a> {
    /// Takes in all of `text`; after an error the members before it are there.
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
        // RPC-01, RPC-06, RPC-10: no version, another version, an id that is none, a method that is no string.
        let (true, Some(method), true) = (sound, text_of(method), id != Some(None)) else {
            return refuse(line, Fault::NotMessage);
        };
        let id = id.flatten();
        let params = self.params.filter(|params| params.get() != "null");
        // RPC-25: positional params are refused. Names that begin with an underscore belong to others, who may
        // define their parameters as they like.
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
        // RPC-04: without an id there is nothing to answer.
        malformed(line, fault, id.map(|id| (id, ErrorObject::invalid_params(fault.to_string()))))
    }

    /// RPC-10: what is shaped like an answer is never answered. If it names one of our requests that request fails,
    /// because nothing better will ever come for it; if not it is dropped.
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
                // Peers of the JSON-RPC 1.0 school send both members and one of them null.
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
    serde_json::from_str(raw.get()).unwrap_or_else(|_| ErrorObject {
        code: code::INTERNAL_ERROR,
        message: "the peer answered with an error that has no code".to_owned(),
        data: Some(raw.to_owned()),
    })
}

/// The content of a JSON string, borrowed when nothing in it is escaped.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// Whether objects and arrays stand deeper in each other than `limit`. If `json` is not valid it does not matter.
fn too_deep(json: &[u8], limit: usize) -> bool {
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

/// What follows a string whose opening quote was just taken.
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
            // Two readers of one line must not see two different messages, so a repeated member spoils it.
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
