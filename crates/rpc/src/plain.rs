//! Lines as nearly every program writes them: no blanks in the envelope, its members in the usual order, `params` or `result`
//! last. These are read without looking at each byte of the envelope twice.
//!
//! Nothing is decided here that [`Frame::parse`](crate::Frame::parse) would decide otherwise: a line with anything unusual about
//! it is nobody's business here (`None`), and the general reader takes it.

use crate::{Frame, Id};
use serde_json::value::RawValue;
use std::borrow::Cow;

const OPENING: &str = r#"{"jsonrpc":"2.0","#;

/// A request or a notification whose `params` nobody has looked at.
///
/// If [`params`](Self::params) is one JSON value and nothing else, the line is this message. If it is not, nothing is known
/// about the line, and [`Frame::parse`] judges it. So whoever reads the params anyway, and to their end, spares
/// everybody a look at them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread<'a> {
    /// What a request is answered by; a notification has none.
    pub id: Option<Id>,
    /// What to do, or what happened. Never one of the protocol's own, which begin with `$`.
    pub method: &'a str,
    /// Begins like an object.
    pub params: &'a str,
}

impl<'a> Unread<'a> {
    /// `None` if the line is another message, or written in another way, or perhaps nested deeper than `depth_limit`.
    pub fn of(line: &'a [u8], depth_limit: usize) -> Option<Self> {
        if !line.starts_with(OPENING.as_bytes()) {
            return None;
        }
        let text = std::str::from_utf8(line).ok()?;
        let rest = text.strip_prefix(OPENING)?;
        let (id, rest) = match rest.strip_prefix(ID) {
            Some(rest) => id(rest).map(|(id, rest)| (Some(id), rest))?,
            None => (None, rest),
        };
        let (method, rest) = method(rest)?;
        let params = last_member(rest, PARAMS)?;
        let fits = params.starts_with('{') && !method.starts_with('$') && is_shallow(line, depth_limit);
        fits.then_some(Unread { id, method, params })
    }

    /// What [`Frame::parse`] makes of the line that this was made of.
    pub fn into_frame(self, line: &'a [u8], depth_limit: usize) -> Frame<'a> {
        let Some(params) = value(self.params) else { return Frame::parse(line, depth_limit) };
        let method = Cow::Borrowed(self.method);
        match self.id {
            Some(id) => Frame::Request { id, method, params: Some(params) },
            None => Frame::Notification { method, params: Some(params) },
        }
    }
}

const ID: &str = r#""id":"#;
const METHOD: &str = r#""method":""#;
const PARAMS: &str = r#","params":"#;

/// The message in `text`, whose depth is known to be fine.
pub(crate) fn read(text: &str) -> Option<Frame<'_>> {
    let rest = text.strip_prefix(OPENING)?;
    let Some(rest) = rest.strip_prefix(ID) else {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::frame::general;
    use proptest::prelude::*;

    const LINES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":17,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"a-1","method":"x","params":{"a":{"b":[1,-2.5e3,true,null,"}"]}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"t":"é\n\"\\\u00e9"}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{"a":[{}]}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":null}"#,
        r#"{"jsonrpc":"2.0","method":"_x","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#,
    ];

    /// What stands between the bytes of a line that is nearly one of those.
    fn scrap() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(vec![
                "\"",
                "\\",
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                " ",
                "0",
                "-",
                "null",
                "\u{1}",
                "é",
                "$/",
                "\"id\":1,",
                ",\"params\":{}",
                ",\"id\":2",
                ",\"result\":1",
                ",\"x\":{}",
                "\"jsonrpc\":\"2.0\",",
                "99999999999999999999",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ]
    }

    fn line() -> impl Strategy<Value = String> {
        let edit = (any::<prop::sample::Index>(), 0usize..6, scrap());
        (prop::sample::select(LINES.to_vec()), prop::collection::vec(edit, 0..4)).prop_map(|(line, edits)| {
            let mut line: Vec<char> = line.chars().collect();
            for (at, taken, put) in edits {
                let at = at.index(line.len() + 1);
                let end = (at + taken).min(line.len());
                line.splice(at..end, put.chars());
            }
            line.into_iter().collect()
        })
    }

    /// What is read here is read alike by the general reader. `true` if it was read here.
    fn agrees(line: &str) -> bool {
        let slow = |text: &str| format!("{:?}", general(text.as_bytes(), text, false));
        let fast = read(line);
        if let Some(frame) = &fast {
            assert_eq!(format!("{frame:?}"), slow(line), "{line}");
        }
        if let Some(unread) = Unread::of(line.as_bytes(), 64) {
            let promised = serde_json::from_str::<&RawValue>(unread.params).is_ok();
            let frame = format!("{:?}", unread.clone().into_frame(line.as_bytes(), 64));
            assert_eq!(frame, slow(line), "{line}");
            let message = match &unread.id {
                Some(id) => format!("Request {{ id: {id:?}, method: {:?}", unread.method),
                None => format!("Notification {{ method: {:?}", unread.method),
            };
            assert_eq!(frame.starts_with(&message), promised, "{line}");
        }
        fast.is_some()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn nothing_is_read_otherwise(line in line()) {
            agrees(&line);
        }
    }

    #[test]
    fn the_usual_lines_are_read_here() {
        let read: Vec<bool> = LINES.iter().map(|line| agrees(line)).collect();
        assert_eq!(read, [true, true, true, true, true, false, false]);
        let unread = Unread::of(LINES[0].as_bytes(), 64).unwrap();
        assert_eq!((unread.id, unread.method), (Some(Id::Int(17)), "session/new"));
        assert_eq!(unread.params, r#"{"cwd":"/tmp","mcpServers":[]}"#);
    }

    #[test]
    fn what_has_rules_of_its_own_is_not() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#,
            r#"{"jsonrpc":"2.0","id":01,"method":"a","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a\/b","params":{}}"#,
            r#"{"jsonrpc":"1.0","method":"a","params":{}}"#,
            r#" {"jsonrpc":"2.0","method":"a","params":{}}"#,
        ] {
            assert_eq!(Unread::of(line.as_bytes(), 64), None, "{line}");
        }
        let bad = b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"x\":\"\xff\"}}";
        assert_eq!(Unread::of(bad, 64), None);
        let deep = format!(
            r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":{}{}}}}}"#,
            "[".repeat(63),
            "]".repeat(63)
        );
        assert_eq!(Unread::of(deep.as_bytes(), 64), None);
        assert!(Unread::of(deep.as_bytes(), 65).is_some());
    }
}
