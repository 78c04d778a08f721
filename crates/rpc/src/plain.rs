//! Lines as nearly every program writes them: no blanks in the envelope, its members in the usual order, `params` or `result`
//! last. These are read without looking at each byte of the envelope twice.
//!
//! Nothing is decided here that [`Frame::parse`](crate::Frame::parse) would decide otherwise: a line with anything unusual about
//! it is nobody's business here (`None`), and the general reader takes it.

use crate::{Frame, Id};
use serde_json::value::RawValue;
use std::borrow::Cow;

const OPENING: &str = r#"{"jsonrpc":"2.0","#;

/// A notification whose `params` nobody has looked at.
///
/// If [`params`](Self::params) is one JSON value and nothing else, the line is this notification. If it is not, nothing is known
/// about the line, and [`Frame::parse`] judges it. So whoever reads the params anyway, and to their end, spares
/// everybody a look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread<'a> {
    /// What happened.
    pub method: &'a str,
    /// Begins like an object.
    pub params: &'a str,
}

impl<'a> Unread<'a> {
    /// `None` if the line is another message, or written in another way, or perhaps nested deeper than `depth_limit`.
    pub fn of(line: &'a [u8], depth_limit: usize) -> Option<Self> {
        // Most other messages are told apart by this.
        line.strip_prefix(OPENING.as_bytes())?.strip_prefix(METHOD.as_bytes())?;
        let text = std::str::from_utf8(line).ok()?;
        let (method, rest) = method(text.strip_prefix(OPENING)?)?;
        let params = last_member(rest, PARAMS)?;
        let fits = params.starts_with('{') && is_shallow(line, depth_limit);
        // RPC-04, CANCEL-14: names of the protocol itself are not for those who read params.
        (fits && !method.starts_with('$')).then_some(Unread { method, params })
    }
}

const METHOD: &str = r#""method":""#;
const PARAMS: &str = r#","params":"#;

/// The message in `text`, whose depth is known to be fine.
pub(crate) fn read(text: &str) -> Option<Frame<'_>> {
    let rest = text.strip_prefix(OPENING)?;
    let Some(rest) = rest.strip_prefix(r#""id":"#) else {
        let (method, params) = call(rest)?;
        return Some(Frame::Notification { method, params });
    };
    let (id, rest) = id(rest)?;
    if let Some(result) = last_member(rest, r#""result":"#) {
        return Some(Frame::Response { id, outcome: Ok(value(result)?) });
    }
    let (method, params) = call(rest)?;
    Some(Frame::Request { id, method, params })
}

fn call(rest: &str) -> Option<(Cow<'_, str>, Option<&RawValue>)> {
    let (method, rest) = method(rest)?;
    let params = value(last_member(rest, PARAMS)?)?;
    // Other params have rules of their own.
    params.get().starts_with('{').then_some((Cow::Borrowed(method), Some(params)))
}

/// A method, and what follows it.
fn method(rest: &str) -> Option<(&str, &str)> {
    simple(rest.strip_prefix(METHOD)?)
}

/// A number or a string without anything special in it, and what follows the comma behind it.
fn id(rest: &str) -> Option<(Id, &str)> {
    if let Some(rest) = rest.strip_prefix('"') {
        let (id, rest) = simple(rest)?;
        return Some((Id::from(id), rest.strip_prefix(',')?));
    }
    let (number, rest) = rest.split_at(rest.bytes().position(|byte| !byte.is_ascii_digit())?);
    // A zero in front is no JSON, and a number that is too long no id.
    if number.len() > 1 && number.starts_with('0') {
        return None;
    }
    Some((Id::Int(number.parse().ok()?), rest.strip_prefix(',')?))
}

/// The content of a string whose opening quote is gone, and what follows its closing one.
fn simple(rest: &str) -> Option<(&str, &str)> {
    let (content, rest) =
        rest.split_at(rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?);
    Some((content, rest.strip_prefix('"')?))
}

/// What stands between the name of a member and the end of the envelope.
fn last_member<'a>(rest: &'a str, name: &str) -> Option<&'a str> {
    rest.strip_prefix(name)?.strip_suffix('}')
}

/// One JSON value, and nothing else.
fn value(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

/// Whether objects and arrays cannot stand deeper in each other than `limit`, for want of brackets. This settles nearly all
/// lines; for the others it says nothing.
pub(crate) fn is_shallow(json: &[u8], limit: usize) -> bool {
    // Each level takes two bytes.
    json.len() / 2 <= limit
        || memchr::memchr2_iter(b'{', b'[', json).take(limit.saturating_add(1)).count() <= limit
}
