//! What a machine remembers.

use attache_rpc::{ErrorObject, Event, Id, Limits, Machine, RequestError};
use serde_json::json;

type Plain = Machine<&'static str, u32>;

fn machine() -> Plain {
    Machine::new(Limits::default())
}

fn text(out: &mut Vec<u8>) -> String {
    String::from_utf8(std::mem::take(out)).unwrap()
}

#[test]
fn ids_count_upward_from_zero() {
    // shows RPC-07, RPC-08
    let (mut machine, mut out) = (machine(), Vec::new());
    for expected in 0..3 {
        assert_eq!(machine.request("a", &(), "w", &mut out).unwrap(), expected);
    }
    let Event::Response { .. } = machine.receive(br#"{"jsonrpc":"2.0","id":1,"result":1}"#, &mut out, || 0)
    else {
        panic!()
    };
    assert_eq!(
        machine.request("a", &(), "w", &mut out).unwrap(),
        3,
        "an id that is free again is not used again"
    );
}

#[test]
fn answers_find_their_request_in_any_order() {
    // shows RPC-20, RPC-14
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.request("a", &(), "first", &mut out).unwrap();
    machine.request("b", &(), "second", &mut out).unwrap();
    let second = br#"{"jsonrpc":"2.0","id":1,"result":2}"#;
    let Event::Response { waiter: "second", id: 1, outcome: Ok(raw) } =
        machine.receive(second, &mut out, || 0)
    else {
        panic!()
    };
    assert_eq!(raw.get(), "2");
    assert!(matches!(machine.receive(second, &mut out, || 0), Event::Ignored { .. }), "answered once");
    // The string "0" is another id than the number.
    let other = br#"{"jsonrpc":"2.0","id":"0","result":2}"#;
    assert!(matches!(machine.receive(other, &mut out, || 0), Event::Ignored { .. }));
    let first = br#"{"jsonrpc":"2.0","id":0,"error":{"code":5,"message":"m"}}"#;
    assert!(matches!(
        machine.receive(first, &mut out, || 0),
        Event::Response { waiter: "first", outcome: Err(ErrorObject { code: 5, .. }), .. }
    ));
}

#[test]
fn a_broken_answer_fails_its_request() {
    // shows RPC-10: it is dropped as a response, but no request waits for ever
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.request("a", &(), "w", &mut out).unwrap();
    out.clear();
    assert!(matches!(
        machine.receive(br#"{"id":0,"result":1}"#, &mut out, || 0),
        Event::Response { waiter: "w", outcome: Err(_), .. }
    ));
    assert!(out.is_empty());
}

#[test]
fn a_request_is_answered_once() {
    // shows RPC-24
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.receive(br#"{"jsonrpc":"2.0","id":"x","method":"a"}"#, &mut out, || 7);
    assert_eq!(machine.open(), 1);
    assert!(machine.respond(&"x".into(), Ok(&json!({})), &mut out));
    assert_eq!(text(&mut out), "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n");
    assert!(!machine.respond(&"x".into(), Ok(&json!({})), &mut out));
    assert!(!machine.respond(&Id::Int(1), Err::<&(), _>(&ErrorObject::cancelled()), &mut out));
    assert!(out.is_empty());
}

#[test]
fn a_result_that_does_not_serialize_is_an_internal_error() {
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.receive(br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, &mut out, || 7);
    let bad = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(machine.respond(&Id::Int(1), Ok(&bad), &mut out));
    assert!(text(&mut out).starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"#));
}

#[test]
fn an_id_in_use_is_refused_without_naming_it() {
    // shows RPC-08
    let (mut machine, mut out) = (machine(), Vec::new());
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
    assert!(matches!(machine.receive(line, &mut out, || 1), Event::Request { .. }));
    assert!(matches!(machine.receive(line, &mut out, || panic!("not executed")), Event::Noise { .. }));
    assert!(text(&mut out).starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#));
    // The ids of the two directions are independent.
    machine.request("b", &(), "w", &mut out).unwrap();
    machine.request("b", &(), "w", &mut out).unwrap();
    assert!(machine.respond(&Id::Int(1), Ok(&1), &mut out));
    assert!(matches!(machine.receive(line, &mut out, || 1), Event::Request { .. }), "free again");
}

#[test]
fn open_requests_are_capped_both_ways() {
    let mut machine = Plain::new(Limits::default().open_requests(2));
    let mut out = Vec::new();
    for id in 0..3 {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
        let event = machine.receive(line.as_bytes(), &mut out, || id);
        assert_eq!(matches!(event, Event::Request { .. }), id < 2);
    }
    assert!(text(&mut out).starts_with(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"#));
    machine.request("a", &(), "w", &mut out).unwrap();
    machine.request("a", &(), "w", &mut out).unwrap();
    out.clear();
    assert!(matches!(machine.request("a", &(), "w", &mut out), Err(RequestError::TooMany)));
    assert!(out.is_empty());
}

#[test]
fn cancel_names_a_request_of_its_sender() {
    // shows CANCEL-13, CANCEL-16, CANCEL-20, CANCEL-21
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.request("ours", &(), "w", &mut out).unwrap();
    let cancel = br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"_meta":{},"requestId":0}}"#;
    // Both sides use the id 0; only the peer's own request is meant, and it has none yet.
    assert!(matches!(machine.receive(cancel, &mut out, || 0), Event::Ignored { .. }));
    machine.receive(br#"{"jsonrpc":"2.0","id":0,"method":"a"}"#, &mut out, || 42);
    for _ in 0..2 {
        assert!(matches!(machine.receive(cancel, &mut out, || 0), Event::CancelRequest { token: 42 }));
    }
    out.clear();
    assert!(
        machine.respond(&Id::Int(0), Err::<&(), _>(&ErrorObject::cancelled()), &mut out),
        "still to be answered"
    );
    assert!(text(&mut out).contains("-32800"));
    assert!(matches!(machine.receive(cancel, &mut out, || 0), Event::Ignored { .. }), "answered already");
    assert!(out.is_empty());
}

#[test]
fn giving_up_notifies_the_peer_once() {
    // shows CANCEL-13, RPC-14
    let (mut machine, mut out) = (machine(), Vec::new());
    machine.request("a", &(), "w", &mut out).unwrap();
    out.clear();
    assert_eq!(machine.abandon(0, &mut out), Some("w"));
    assert_eq!(
        text(&mut out),
        "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}}\n"
    );
    assert_eq!(machine.abandon(0, &mut out), None);
    assert!(out.is_empty());
    let late = br#"{"jsonrpc":"2.0","id":0,"result":1}"#;
    assert!(matches!(machine.receive(late, &mut out, || 0), Event::Ignored { .. }));
    assert_eq!(machine.waiting(), 0, "a peer that never answers costs nothing");
}

#[test]
fn the_end_frees_everybody_in_order() {
    let (mut machine, mut out) = (Machine::<usize, ()>::new(Limits::default()), Vec::new());
    for waiter in 0..100 {
        machine.request("a", &(), waiter, &mut out).unwrap();
    }
    machine.abandon(50, &mut out);
    let freed: Vec<usize> = machine.close().collect();
    assert_eq!(freed, (0..100).filter(|waiter| *waiter != 50).collect::<Vec<_>>());
    assert_eq!(machine.waiting(), 0);
}

#[test]
fn null_is_an_id_like_another() {
    let (mut machine, mut out) = (machine(), Vec::new());
    let event = machine.receive(br#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, &mut out, || 0);
    assert!(matches!(event, Event::Request { id: Id::Null, .. }));
    assert!(machine.respond(&Id::Null, Ok(&1), &mut out));
    assert_eq!(text(&mut out), "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}\n");
}
