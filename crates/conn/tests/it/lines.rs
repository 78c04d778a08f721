//! What a line is, and what happens to those that are not messages.

use crate::kit::{Received, Wire, connect};
use attache_conn::{CallError, Limits, Link, Peer, Side};
use serde_json::json;

fn agent(limits: Limits) -> (Peer, Received, Wire) {
    on_side(limits, Side::Agent)
}

fn on_side(limits: Limits, side: Side) -> (Peer, Received, Wire) {
    let (link, wire) = Wire::new();
    let (peer, driver, received) = connect(link, limits, side);
    tokio::spawn(driver);
    (peer, received, wire)
}

#[tokio::test]
async fn lines_end_at_the_line_feed_and_nowhere_else() {
    // shows STDIO-04, STDIO-11, STDIO-16
    let (_peer, mut received, mut wire) = agent(Limits::default());
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{c}e\u{b}";
    let text = text.replace('\u{c}', "\\f").replace('\u{b}', "\\u000b");
    let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"t":"{text}"}}}}"#);
    wire.write(format!("\n  \n{line}\r\n\r\n{line}\n")).await;
    for _ in 0..2 {
        let (method, params) = received.notification().await;
        assert_eq!((method.as_str(), params), ("m", format!(r#"{{"t":"{text}"}}"#)));
    }
}

#[tokio::test]
async fn a_line_may_come_byte_by_byte() {
    let (_peer, mut received, mut wire) = agent(Limits::default());
    for byte in "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"t\":\"é\"}}\n".as_bytes() {
        wire.write([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(received.notification().await.1, r#"{"t":"é"}"#);
}

#[tokio::test]
async fn a_line_may_be_long() {
    // shows STDIO-11
    let (_peer, mut received, mut wire) = agent(Limits::default());
    let text = "x".repeat(10 << 20);
    let sent = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{{\"t\":\"{text}\"}}}}\n");
    let writing = tokio::spawn(async move {
        wire.write(sent).await;
        wire
    });
    assert_eq!(received.notification().await.1.len(), text.len() + 8);
    let mut wire = writing.await.unwrap();
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"small\"}\n").await;
    assert_eq!(received.notification().await.0, "small");
}

#[tokio::test]
async fn a_line_that_is_too_long_does_not_end_the_connection() {
    let limits = Limits::default().frame(1000);
    let (_peer, mut received, mut wire) = agent(limits);
    // One that is read in one piece, one that is not, and one that is just short enough.
    for size in [1001usize, 300_000] {
        let begin = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\",\"params\":{\"t\":\"";
        let line = format!("{begin}{}\"}}}}\n", "x".repeat(size - begin.len() - 3));
        assert_eq!(line.len(), size + 1);
        wire.write(line).await;
        let (head, why) = received.noise().await;
        assert!(head.starts_with("{\"jsonrpc\"") && head.len() <= 512);
        assert_eq!(why, format!("a message of {size} bytes is larger than 1000 bytes"));
        let answer = wire.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(5), &json!(-32600)));
    }
    let fits = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "m".repeat(1000 - 29));
    assert_eq!(fits.len(), 1001);
    wire.write(fits).await;
    assert_eq!(received.notification().await.0.len(), 1000 - 29);
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_call() {
    let limits = Limits::default().frame(1000);
    let (peer, mut received, mut wire) = on_side(limits, Side::Client);
    let call = peer.call("a", &());
    assert_eq!(wire.json().await["id"], 0);
    wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"{}\"}}\n", "x".repeat(2000))).await;
    let Err(CallError::Refused(error)) = call.await else { panic!() };
    assert!(error.message.contains("larger than 1000 bytes"), "{error}");
    received.noise().await;
    peer.notify("next", &()).await.unwrap();
    assert_eq!(wire.json().await["method"], "next", "an answer is not answered");
}

#[tokio::test]
async fn depth_is_limited() {
    let limits = Limits::default().depth(8);
    let (_peer, mut received, mut wire) = agent(limits);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{{\"x\":{deep}}}}}\n"))
        .await;
    received.noise().await;
    assert_eq!(wire.json().await["error"]["code"], -32602);
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"next\"}\n").await;
    received.notification().await;
}

#[tokio::test]
async fn an_agent_answers_noise() {
    // shows RPC-09, RPC-10, STDIO-01
    let (_peer, mut received, mut wire) = agent(Limits::default());
    for (line, code) in [(&b"hello\n"[..], -32700), (b"{\"a\":\"\xff\"}\n", -32700), (b"[]\n", -32600)] {
        wire.write(line).await;
        received.noise().await;
        let answer = wire.json().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(null)));
    }
}

#[tokio::test]
async fn a_client_reports_log_lines_and_answers_malformed_messages() {
    let (_peer, mut received, mut wire) = on_side(Limits::default(), Side::Client);
    wire.write("starting up\n[debug] ready\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n{oops\n").await;
    assert_eq!(received.noise().await.0, "starting up");
    assert_eq!(received.noise().await.0, "[debug] ready");
    assert_eq!(received.notification().await.0, "m");
    assert_eq!(received.noise().await.0, "{oops");
    assert_eq!(wire.json().await["error"]["code"], -32700, "and nothing before that");
}

/// A transport that is broken for good, such as a WebSocket after a wrong frame.
struct Broken;

impl tokio::io::AsyncRead for Broken {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "a wrong frame")))
    }
}

#[tokio::test]
async fn an_error_of_the_transport_ends_the_input() {
    let (mut reader, _writer) = Link::from_io(Broken, tokio::io::sink()).split();
    let error = reader.next().await.unwrap_err();
    // This kind says that the next line can be read.
    assert_ne!(error.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(error.to_string(), "a wrong frame");
    assert!(reader.next().await.unwrap().is_none());
}
