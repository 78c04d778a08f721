//! Fast path for envelopes in the form that nearly every program writes: no whitespace, members in
//! the usual order, `params` or `result` last.
//!
//! A line in any other form yields `None`, and the general parser in `frame.rs` handles it. The two
//! never disagree about a line.

use crate::Id;

const OPENING: &str = r#"{"jsonrpc":"2.0","#;
const ID: &str = r#""id":"#;
const METHOD: &str = r#""method":""#;
const PARAMS: &str = r#","params":"#;
const RESULT: &str = r#""result":"#;

/// The part of an envelope after the id. The JSON text in it is not validated.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// `params` begins with `{`.
    Call {
        method: &'a str,
        params: &'a str,
    },
    Result(&'a str),
}

/// Splits a line that is not nested deeper than `depth_limit`.
pub(crate) fn envelope(line: &[u8], depth_limit: usize) -> Option<(Option<Id>, Body<'_>)> {
    if !line.starts_with(OPENING.as_bytes()) || !is_shallow(line, depth_limit) {
        return None;
    }
    let rest = std::str::from_utf8(line).ok()?.strip_prefix(OPENING)?;
    let (id, rest) = match rest.strip_prefix(ID) {
        Some(rest) => id(rest).map(|(id, rest)| (Some(id), rest))?,
        None => (None, rest),
    };
    if let Some(result) = last_member(rest, RESULT) {
        return Some((id, Body::Result(result)));
    }
    let (method, rest) = simple_string(rest.strip_prefix(METHOD)?)?;
    // Other params have rules of their own.
    let params = last_member(rest, PARAMS)?;
    params.starts_with('{').then_some((id, Body::Call { method, params }))
}

/// Splits off an integer or a string without escapes, and the comma after it.
fn id(rest: &str) -> Option<(Id, &str)> {
    if let Some(rest) = rest.strip_prefix('"') {
        let (id, rest) = simple_string(rest)?;
        return Some((Id::from(id), rest.strip_prefix(',')?));
    }
    let (number, rest) = rest.split_at(rest.bytes().position(|byte| !byte.is_ascii_digit())?);
    // A leading zero is invalid JSON, and a number that does not fit is an invalid id.
    if number.len() > 1 && number.starts_with('0') {
        return None;
    }
    Some((Id::Int(number.parse().ok()?), rest.strip_prefix(',')?))
}

/// Splits off the content of a string without escapes whose opening quote was consumed.
fn simple_string(rest: &str) -> Option<(&str, &str)> {
    let (content, rest) = rest.split_at(memchr::memchr2(b'"', b'\\', rest.as_bytes())?);
    let is_plain = content.bytes().fold(u8::MAX, u8::min) >= b' ';
    Some((content, rest.strip_prefix('"').filter(|_| is_plain)?))
}

/// The text between a member name and the end of the envelope.
fn last_member<'a>(rest: &'a str, name: &str) -> Option<&'a str> {
    rest.strip_prefix(name)?.strip_suffix('}')
}

/// Whether the number of brackets alone rules out nesting deeper than `limit`. `false` says
/// nothing.
pub(crate) fn is_shallow(json: &[u8], limit: usize) -> bool {
    // Each level takes two bytes.
    json.len() / 2 <= limit
        || memchr::memchr2_iter(b'{', b'[', json).take(limit.saturating_add(1)).count() <= limit
}
