//! Any line: opening it never panics, and what was understood of it survives being written and read
//! again.
#![no_main]

use attache_rpc::{Frame, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let _ = Frame::parse_head(line, "too long");
    let frame = Frame::parse(line, 64);
    let mut out = Vec::new();
    let written = match &frame {
        Frame::Request { id, method, params } => encode::request(&mut out, id, method, params),
        Frame::Notification { method, params } => encode::notification(&mut out, method, params),
        Frame::Response { id, outcome: Ok(result) } => encode::result(&mut out, id, result),
        Frame::Response { id, outcome: Err(error) } => encode::error(&mut out, id, error),
        // An answer to it, if one is due, is a message itself, and one that is never answered.
        Frame::Malformed(malformed) => match &malformed.answer {
            Some((id, error)) => {
                encode::error(&mut out, id, error).expect("an error object always serializes");
                let again = Frame::parse(body(&out), 64);
                assert!(matches!(again, Frame::Response { outcome: Err(_), .. }), "{again:?}");
                return;
            }
            None => return,
        },
        other => panic!("a kind of frame that is not tested: {other:?}"),
    };
    written.expect("what was read can be written");
    let again = Frame::parse(body(&out), 64);
    assert_eq!(describe(&frame), describe(&again));
});

fn body(out: &[u8]) -> &[u8] {
    let (end, body) = out.split_last().expect("something was written");
    assert_eq!(*end, b'\n');
    assert!(!body.contains(&b'\n') && !body.contains(&b'\r'), "a message is one line");
    body
}

/// Everything of a frame, comparable. Line breaks between tokens become blanks when written.
fn describe(frame: &Frame<'_>) -> String {
    let text = |raw: &serde_json::value::RawValue| raw.get().replace(['\n', '\r'], " ");
    match frame {
        Frame::Request { id, method, params } => format!("request {id} {method} {:?}", params.map(text)),
        Frame::Notification { method, params } => format!("notification {method} {:?}", params.map(text)),
        Frame::Response { id, outcome: Ok(result) } => format!("result {id} {}", text(result)),
        Frame::Response { id, outcome: Err(error) } => {
            format!("error {id} {} {} {:?}", error.code, error.message, error.data.as_deref().map(text))
        }
        Frame::Malformed(malformed) => format!("malformed {malformed:?}"),
        other => panic!("a kind of frame that is not tested: {other:?}"),
    }
}
