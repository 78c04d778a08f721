//! Clients and agents that are slow, silent or gone.

use crate::kit::{Http, request, serve};
use attache_http::server::{Limits, Options, Server};
use hyper::StatusCode;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(10);

fn limited(limits: Limits) -> Options {
    Options { limits, ..Options::default() }
}

#[tokio::test]
async fn silent_streams_have_comments() {
    let address = serve(limited(Limits { comment: SHORT, ..Limits::default() })).await;
    for client in [Http::new(address), Http { http2: true, ..Http::new(address) }] {
        let client = client.initialize().await;
        let mut stream = client.open(Some("s")).await;
        // HTTP-32: proxies neither keep nor change the stream, nor close it.
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache, no-transform"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(stream.headers[name], value);
        }
        for _ in 0..3 {
            assert_eq!(stream.piece().await.unwrap(), ":\n\n");
        }
        // They are no events.
        client.accept(request(1, "session/load", json!({"sessionId": "s"}))).await;
        assert_eq!(stream.event().await.unwrap()["params"]["update"], "history 0");
    }
}

#[tokio::test]
async fn a_client_without_stream_and_request_is_removed() {
    let limits = Limits { idle: Duration::from_secs(2), sweep: SHORT, ..Limits::default() };
    let mut server = Server::bind("127.0.0.1:0", limited(limits)).await.unwrap();
    let address = server.local_addr();
    let mut clients = Vec::new();
    for is_read in [true, false] {
        let client = tokio::spawn(async move {
            let client = Http::new(address).initialize().await;
            let stream = if is_read { Some(client.open(None).await) } else { None };
            (client, stream)
        });
        let (mut reader, mut writer) = server.accept().await.unwrap().link.split();
        reader.next().await.unwrap().unwrap();
        writer.send(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#).await.unwrap();
        clients.push((client.await.unwrap(), reader, writer));
    }
    // The agent of the second client sees its end.
    let ((second, _), mut reader, _writer) = clients.pop().unwrap();
    assert_eq!(reader.next().await.unwrap(), None);
    assert_eq!(second.post(request(1, "x", json!({}))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(second.open(None).await.status, StatusCode::NOT_FOUND);
    // The first was silent for longer, but it reads an empty stream.
    let ((first, _stream), mut reader, _writer) = clients.pop().unwrap();
    first.accept(request(1, "x", json!({}))).await;
    reader.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come() {
    let address = serve(limited(Limits { body: SHORT, ..Limits::default() })).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /acp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn an_agent_that_does_not_answer_initialize() {
    let mut server = Server::bind("127.0.0.1:0", limited(Limits { initialize: SHORT, ..Limits::default() }))
        .await
        .unwrap();
    let client = Http::new(server.local_addr());
    let post = tokio::spawn(async move { client.post(request(0, "initialize", json!({}))).await.status });
    let (mut reader, _writer) = server.accept().await.unwrap().link.split();
    // It ends with its client.
    while reader.next().await.unwrap().is_some() {}
    assert_eq!(post.await.unwrap(), StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn an_agent_that_ends_instead_of_an_answer() {
    let mut server = Server::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let client = Http::new(server.local_addr());
    let post = tokio::spawn(async move { client.post(request(0, "initialize", json!({}))).await.status });
    drop(server.accept().await.unwrap());
    assert_eq!(post.await.unwrap(), StatusCode::BAD_GATEWAY);
}
