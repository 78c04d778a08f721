//! Lines that are messages.

use attache_rpc::{ErrorObject, Fault, Frame, Id};
use std::borrow::Cow;

fn parse(line: &str) -> Frame<'_> {
    Frame::parse(line.as_bytes(), 1024)
}

#[test]
fn ids_come_back_unchanged() {
    // shows RPC-05, RPC-06
    for (text, id) in [
        ("0", Id::Int(0)),
        ("-1", Id::Int(-1)),
        ("9007199254740992", Id::Int(1 << 53)),
        ("-9223372036854775808", Id::Int(i64::MIN)),
        (r#""a""#, "a".into()),
        (r#""1""#, "1".into()),
        (r#""""#, "".into()),
        (r#""\u0000\"é""#, "\0\"é".into()),
        ("null", Id::Null),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"a"}}"#);
        let Frame::Request { id: got, .. } = parse(&line) else { panic!("{line}") };
        assert_eq!(got, id);
        let again: serde_json::Value = serde_json::to_value(&got).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}

#[test]
fn members_stand_in_any_order_and_may_be_escaped() {
    let line =
        r#" { "params" : {"x":[1,{"y":"}"}]} , "extra":[{}], "\u006dethod":"a\/b","id":1,"jsonrpc":"2.0"} "#;
    let Frame::Request { id, method, params } = parse(line) else { panic!() };
    assert_eq!((id, &*method), (Id::Int(1), "a/b"));
    assert_eq!(params.unwrap().get(), r#"{"x":[1,{"y":"}"}]}"#);
}

#[test]
fn names_and_params_are_borrowed() {
    let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"text":"é\u2028"}}"#;
    let Frame::Notification { method, params } = parse(line) else { panic!() };
    assert!(matches!(method, Cow::Borrowed("session/update")));
    assert!(line.as_bytes().as_ptr_range().contains(&params.unwrap().get().as_ptr()));
}

#[test]
fn null_params_are_absent_params() {
    // shows RPC-21
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#,
    ] {
        assert!(matches!(parse(line), Frame::Request { params: None, .. }));
    }
}

#[test]
fn extensions_choose_their_params() {
    for params in ["[1,2]", "\"x\"", "3"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_x.dev/y","params":{params}}}"#);
        assert!(matches!(parse(&line), Frame::Request { params: Some(raw), .. } if raw.get() == params));
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    assert!(matches!(parse("\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"), Frame::Notification { .. }));
}

#[test]
fn answers_with_result_null_are_answers() {
    // shows RPC-02, RPC-22
    let Frame::Response { id: Id::Int(4), outcome: Ok(result) } =
        parse(r#"{"jsonrpc":"2.0","id":4,"result":null}"#)
    else {
        panic!()
    };
    assert_eq!(result.get(), "null");
}

#[test]
fn errors_are_read_whatever_their_code() {
    // shows RPC-03, RPC-16
    let error = |text: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{text}}}"#);
        match parse(&line) {
            Frame::Response { outcome: Err(error), .. } => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(error(r#"{"code":-31999,"message":"m"}"#), ErrorObject::new(-31999, "m"));
    assert_eq!(error(r#"{"code":400,"message":"m","data":null,"x":1}"#), ErrorObject::new(400, "m"));
    assert_eq!(error(r#"{"data":[1],"code":1,"message":""}"#).data.unwrap().get(), "[1]");
    assert_eq!(error(r#"{"code":7}"#), ErrorObject::new(7, ""));
    // Without a usable code the request still fails, and nothing of what came is lost.
    for broken in [r#"{"message":"m"}"#, r#"{"code":"E"}"#, r#"{"code":99999999999}"#, "[1]", "\"no\""] {
        let error = error(broken);
        assert_eq!((error.code, error.data.unwrap().get()), (-32603, broken));
    }
}

#[test]
fn with_both_members_the_one_that_says_something_counts() {
    // shows RPC-23
    let outcome = |members: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#);
        match parse(&line) {
            Frame::Response { outcome, .. } => {
                outcome.map(|raw| raw.get().to_owned()).map_err(|error| error.code)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(outcome(r#""result":5,"error":{"code":1,"message":""}"#), Ok("5".to_owned()));
    assert_eq!(outcome(r#""result":5,"error":null"#), Ok("5".to_owned()));
    assert_eq!(outcome(r#""result":null,"error":{"code":1,"message":""}"#), Err(1));
    assert_eq!(outcome(r#""result":null,"error":null"#), Ok("null".to_owned()));
    assert_eq!(outcome(r#""error":null"#), Err(-32603));
}

#[test]
fn depth_is_limited_without_recursion() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let request =
        |levels| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{}}}}}"#, nested(levels));
    // Two levels are the envelope and params.
    assert!(matches!(Frame::parse(request(8).as_bytes(), 10), Frame::Request { .. }));
    let line = request(9);
    let Frame::Malformed(malformed) = Frame::parse(line.as_bytes(), 10) else { panic!() };
    assert_eq!(malformed.fault, Fault::TooDeep);
    let (id, error) = malformed.answer.unwrap();
    assert_eq!((id, error.code), (Id::Int(1), -32602), "the caller does not wait for ever");
    assert!(matches!(parse(&request(1_000_000)), Frame::Malformed(_)));
    // The same in a response fails its request, and in a notification it is dropped.
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, nested(2000));
    assert!(matches!(parse(&answer), Frame::Response { outcome: Err(_), .. }));
    let notification = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":{}}}}}"#, nested(2000));
    assert!(matches!(parse(&notification), Frame::Malformed(malformed) if malformed.answer.is_none()));
}

#[test]
fn brackets_in_strings_are_not_depth() {
    let text = format!(r#"\"{}\\"#, "[{".repeat(3000));
    let line = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":"{text}","y":[{{}}]}}}}"#);
    assert!(matches!(Frame::parse(line.as_bytes(), 4), Frame::Notification { .. }));
    assert!(matches!(Frame::parse(line.as_bytes(), 3), Frame::Malformed(_)));
    let wide = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":[{}[]]}}}}"#, "[],".repeat(3000));
    assert!(matches!(Frame::parse(wide.as_bytes(), 4), Frame::Notification { .. }));
}

#[test]
fn the_head_of_a_long_line_says_whom_it_concerns() {
    let head = |text: &'static str| Frame::parse_head(text.as_bytes(), "too long");
    let answer = |text| match head(text) {
        Frame::Malformed(malformed) => malformed.answer.map(|(id, error)| (id, error.code)),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        answer(r#"{"jsonrpc":"2.0","id":"x","method":"a","params":{"t":"aaa"#),
        Some(("x".into(), -32600)),
        "the caller learns that its request was refused"
    );
    assert_eq!(answer(r#"{"jsonrpc":"2.0","method":"a","params":{"t":"aaa"#), Some((Id::Null, -32600)));
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"params":{"t":"aaa"#), Some((Id::Null, -32600)));
    assert_eq!(answer(r#"{"jsonrpc":"2.0","result":{"t":"aaa"#), None, "shaped like an answer");
    assert_eq!(answer("\u{e4}\u{f6}\u{fc} and so on"), Some((Id::Null, -32600)));
    assert!(matches!(
        head(r#"{"jsonrpc":"2.0","id":4,"result":{"t":"aaa"#),
        Frame::Response { id: Id::Int(4), outcome: Err(_) }
    ));
    assert!(matches!(
        Frame::parse_head(b"{\"id\":4,\"error\":{\"t\":\"aaa\xc3", "too long"),
        Frame::Response { id: Id::Int(4), outcome: Err(_) }
    ));
    let Frame::Malformed(log) = head("aaaaaaaa") else { panic!() };
    assert_eq!(log.fault, Fault::Log);
}
