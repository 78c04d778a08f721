#![allow(clippy::unwrap_used)]

use super::*;
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

/// Text that edits put into a line.
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

/// Checks that both parsers agree. Returns whether the fast one took the line.
fn agrees(line: &str) -> bool {
    let bytes = line.as_bytes();
    let general = format!("{:?}", Frame::parse_general(bytes, 64));
    assert_eq!(format!("{:?}", Frame::parse(bytes, 64)), general, "{line}");
    match Scan::line(bytes, 64) {
        Scan::Frame(_) => matches!(scan::envelope(bytes, 64), Some((Some(_), Body::Result(_)))),
        Scan::Call(call) => {
            let valid = serde_json::from_str::<&RawValue>(call.params).is_ok();
            let message = match &call.id {
                Some(id) => format!("Request {{ id: {id:?}, method: {:?}", call.method),
                None => format!("Notification {{ method: {:?}", call.method),
            };
            assert!(!valid || general.starts_with(&message), "{line}");
            true
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_fast_path_agrees_with_the_general_parser(line in line()) {
        agrees(&line);
    }
}

#[test]
fn usual_lines_take_the_fast_path() {
    let read: Vec<bool> = LINES.iter().map(|line| agrees(line)).collect();
    assert_eq!(read, [true, true, true, true, true, false, false]);
    let Scan::Call(call) = Scan::line(LINES[0].as_bytes(), 64) else { panic!() };
    assert_eq!((call.id, call.method), (Some(Id::Int(17)), "session/new"));
    assert_eq!(call.params, r#"{"cwd":"/tmp","mcpServers":[]}"#);
}

#[test]
fn unusual_lines_take_the_general_parser() {
    for line in [
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"a","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a\/b","params":{}}"#,
        r#"{"jsonrpc":"1.0","method":"a","params":{}}"#,
        r#" {"jsonrpc":"2.0","method":"a","params":{}}"#,
    ] {
        assert!(matches!(Scan::line(line.as_bytes(), 64), Scan::Frame(_)), "{line}");
    }
    let bad = b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"x\":\"\xff\"}}";
    assert!(matches!(Scan::line(bad, 64), Scan::Frame(_)));
    let deep =
        format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":{}{}}}}}"#, "[".repeat(63), "]".repeat(63));
    assert!(matches!(Scan::line(deep.as_bytes(), 64), Scan::Frame(_)));
    assert!(matches!(Scan::line(deep.as_bytes(), 65), Scan::Call(_)));
}
