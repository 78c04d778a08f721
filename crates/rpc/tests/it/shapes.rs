//! Every way in which a line can fail to be a message, as a table.

use attache_rpc::{Event, Limits, Machine, code};

/// What is to happen with a line.
enum Expect {
    /// This error code, with this JSON text as the id.
    Answer(i32, &'static str),
    /// No response, but an event.
    Reported,
    /// No response and no event.
    Ignored,
}
use Expect::{Answer, Ignored, Reported};

const PARSE: i32 = code::PARSE_ERROR;
const INVALID: i32 = code::INVALID_REQUEST;
const PARAMS: i32 = code::INVALID_PARAMS;
const UNKNOWN: i32 = code::METHOD_NOT_FOUND;

#[rustfmt::skip]
const CASES: &[(&str, &str, Expect)] = &[
    // RPC-09: not JSON
    ("RPC-09 prose", "good morning", Answer(PARSE, "null")),
    ("RPC-09 cut off", "{oops", Answer(PARSE, "null")),
    ("RPC-09 cut off within a string", r#"{"jsonrpc":"2.0","method":"a"#, Answer(PARSE, "null")),
    ("RPC-09 single quotes", "{'jsonrpc':'2.0','id':4,'method':'a'}", Answer(PARSE, "null")),
    ("RPC-09 comma before the brace", r#"{"jsonrpc":"2.0","id":4,"method":"a",}"#, Answer(PARSE, "null")),
    ("RPC-09 something after the object", r#"{"jsonrpc":"2.0","id":4,"method":"a"} x"#, Answer(PARSE, "null")),
    ("RPC-09 two objects", r#"{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}"#, Answer(PARSE, "null")),
    ("RPC-09 raw tab in a string", "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"params\":{\"t\":\"\t\"}}", Answer(PARSE, "null")),
    ("RPC-09 raw bell in an ignored member", "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"x\":\"\u{7}\"}", Answer(PARSE, "null")),
    ("RPC-09 NaN", r#"{"jsonrpc":"2.0","id":4,"method":"a","params":{"n":NaN}}"#, Answer(PARSE, "null")),
    ("RPC-09 broken batch", r#"[{"jsonrpc":"2.0""#, Answer(PARSE, "null")),
    ("RPC-09 bracketed log line", "[warn] low on memory", Answer(PARSE, "null")),
    // RPC-10: JSON, but no message
    ("RPC-10 number", "42", Answer(INVALID, "null")),
    ("RPC-10 string", r#""hello""#, Answer(INVALID, "null")),
    ("RPC-10 true", "true", Answer(INVALID, "null")),
    ("RPC-10 null", "null", Answer(INVALID, "null")),
    ("RPC-10 empty object", "{}", Answer(INVALID, "null")),
    ("RPC-10 version only", r#"{"jsonrpc":"2.0"}"#, Answer(INVALID, "null")),
    ("RPC-10 id only", r#"{"jsonrpc":"2.0","id":7}"#, Answer(INVALID, "null")),
    ("RPC-10 method is a number", r#"{"jsonrpc":"2.0","id":7,"method":7}"#, Answer(INVALID, "null")),
    ("RPC-10 method is null", r#"{"jsonrpc":"2.0","id":7,"method":null}"#, Answer(INVALID, "null")),
    ("RPC-10 method is an invalid escape", r#"{"jsonrpc":"2.0","id":7,"method":"\ud800"}"#, Answer(INVALID, "null")),
    ("RPC-10 member twice", r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-10 method twice", r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#, Answer(INVALID, "null")),
    // RPC-01: the version
    ("RPC-01 no version", r#"{"id":1,"method":"initialize","params":{}}"#, Answer(INVALID, "null")),
    ("RPC-01 version 1.0", r#"{"jsonrpc":"1.0","id":1,"method":"initialize"}"#, Answer(INVALID, "null")),
    ("RPC-01 version as a number", r#"{"jsonrpc":2.0,"id":1,"method":"initialize"}"#, Answer(INVALID, "null")),
    ("RPC-01 notification without version", r#"{"method":"a"}"#, Answer(INVALID, "null")),
    // RPC-06: the id
    ("RPC-06 fraction", r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 fraction that is whole", r#"{"jsonrpc":"2.0","id":1.0,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 exponent", r#"{"jsonrpc":"2.0","id":1e2,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 minus zero", r#"{"jsonrpc":"2.0","id":-0,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 object", r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 array", r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 true", r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 beyond 64 bits", r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"a"}"#, Answer(INVALID, "null")),
    ("RPC-06 lone surrogate", r#"{"jsonrpc":"2.0","id":"\udc00","method":"a"}"#, Answer(INVALID, "null")),
    // RPC-11: batches
    ("RPC-11 batch of two", r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#, Answer(INVALID, "null")),
    ("RPC-11 empty batch", "[]", Answer(INVALID, "null")),
    ("RPC-11 batch of answers", r#"[{"jsonrpc":"2.0","id":0,"result":1}]"#, Answer(INVALID, "null")),
    // RPC-25: positional params
    ("RPC-25 array", r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":[1]}"#, Answer(PARAMS, "3")),
    ("RPC-25 string", r#"{"jsonrpc":"2.0","id":"s","method":"initialize","params":"x"}"#, Answer(PARAMS, r#""s""#)),
    ("RPC-25 false", r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":false}"#, Answer(PARAMS, "3")),
    ("RPC-04 a notification is not answered", r#"{"jsonrpc":"2.0","method":"session/cancel","params":[1]}"#, Reported),
    // RPC-10: the shape of an answer is never answered
    ("RPC-10 answer without version", r#"{"id":7,"result":1}"#, Ignored),
    ("RPC-10 answer without id", r#"{"jsonrpc":"2.0","result":{}}"#, Reported),
    ("RPC-10 error without id", r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#, Reported),
    ("RPC-10 error with id null", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#, Reported),
    ("RPC-10 result with id null", r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Ignored),
    ("RPC-10 answer with an object as id", r#"{"jsonrpc":"2.0","id":{},"result":{}}"#, Reported),
    ("RPC-14 unknown id", r#"{"jsonrpc":"2.0","id":"ghost","result":{}}"#, Ignored),
    ("RPC-03 error without code", r#"{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}"#, Ignored),
    ("RPC-03 error with a string as code", r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E","message":"m"}}"#, Ignored),
    ("RPC-03 error with a fraction as code", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1.5,"message":"m"}}"#, Ignored),
    ("RPC-23 both result and error", r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}"#, Ignored),
    // CANCEL-14, CANCEL-20: what begins with $/
    ("CANCEL-14 unknown notification", r#"{"jsonrpc":"2.0","method":"$/progress","params":{}}"#, Ignored),
    ("CANCEL-14 without version", r#"{"method":"$/ping"}"#, Ignored),
    ("CANCEL-14 with another version", r#"{"jsonrpc":"1.0","method":"$/cancel_request","params":{"requestId":1}}"#, Ignored),
    ("CANCEL-14 as a request without version", r#"{"id":5,"method":"$/ping"}"#, Answer(INVALID, "null")),
    ("CANCEL-14 as a request with id null", r#"{"id":null,"method":"$/ping"}"#, Answer(INVALID, "null")),
    ("CANCEL-14 as a request", r#"{"jsonrpc":"2.0","id":5,"method":"$/cancel_request","params":{"requestId":1}}"#, Answer(UNKNOWN, "5")),
    ("CANCEL-20 unknown id", r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9999}}"#, Ignored),
    ("CANCEL-20 no id", r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}"#, Ignored),
    ("CANCEL-20 no params", r#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#, Ignored),
    ("CANCEL-20 id null", r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":null}}"#, Ignored),
    ("CANCEL-20 id of a wrong type", r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[1]}}"#, Ignored),
    // STDIO-11: blank lines
    ("STDIO-11 empty", "", Ignored),
    ("STDIO-11 blanks", " \t\r", Ignored),
];

fn check(name: &str, line: &[u8], expect: &Expect) {
    let mut machine = Machine::<(), ()>::new(Limits::default());
    let mut out = Vec::new();
    let event = machine.receive(line, &mut out, || ());
    let has_event = match event {
        Event::Noise { .. } => true,
        Event::Ignored { .. } => false,
        other => panic!("{name}: was taken for {other:?}"),
    };
    let out = String::from_utf8(out).unwrap();
    match expect {
        Answer(code, id) => {
            let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"#);
            assert!(
                has_event && out.starts_with(&begin) && out.ends_with("}}\n"),
                "{name}: answered {out:?}"
            );
            assert_eq!(out.matches('\n').count(), 1, "{name}: one answer");
        }
        Reported => assert!(has_event && out.is_empty(), "{name}: answered {out:?}"),
        Ignored => assert!(!has_event && out.is_empty(), "{name}: answered {out:?}"),
    }
    // Whatever came, the next request is served.
    let next = machine.receive(br#"{"jsonrpc":"2.0","id":99,"method":"next"}"#, &mut Vec::new(), || ());
    assert!(matches!(next, Event::Request { .. }), "{name}: the connection goes on");
}

#[test]
fn every_malformed_shape() {
    for (name, line, expect) in CASES {
        check(name, line.as_bytes(), expect);
        // STDIO-11: a carriage return at the end changes nothing.
        check(name, format!("{line}\r").as_bytes(), expect);
    }
}

#[test]
fn invalid_utf8_is_not_json() {
    // shows STDIO-01
    for line in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"t\":\"\xff\"}}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"other\":\"\xc3\"}",
        b"{\"\xf0\x9f\":1}",
        b"[\"\xed\xa0\x80\"]",
        b"\xff\xfe",
    ] {
        check("STDIO-01", line, &Answer(PARSE, "null"));
    }
}

#[test]
fn a_client_does_not_answer_log_lines() {
    // shows RPC-09 as a client keeps it: what was meant as a message is answered, what was not is
    // only reported
    let limits = Limits::default().answer_noise(false);
    let mut machine = Machine::<(), ()>::new(limits);
    for (line, answered) in [
        ("started on port 80", false),
        ("[info] started", false),
        ("[12:00:01] started", false),
        ("\u{1b}[32mok\u{1b}[0m", false),
        ("{oops", true),
        ("[ {oops", true),
        ("7", true),
        ("[1]", true),
    ] {
        let mut out = Vec::new();
        let event = machine.receive(line.as_bytes(), &mut out, || ());
        assert!(matches!(event, Event::Noise { .. }), "{line}");
        assert_eq!(!out.is_empty(), answered, "{line}");
    }
}
