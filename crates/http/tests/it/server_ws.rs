//! Clients over WebSocket.

use crate::kit::{keep_alives, request, serve, serve_connections, upgrade};
use attache_conn::{FrameReader, FrameWriter};
use attache_http::server::Options;
use hyper::StatusCode;
use serde_json::{Value, json};

async fn receive(reader: &mut FrameReader) -> Value {
    serde_json::from_slice(reader.next().await.unwrap().unwrap()).unwrap()
}

async fn send(writer: &mut FrameWriter, message: Value) {
    writer.send(message.to_string().as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_conversation() {
    let address = serve(Options::default()).await;
    // WS-01, WS-02
    let (mut reader, mut writer, headers) = upgrade(address, &[]).await.unwrap();
    assert!(!headers["acp-connection-id"].is_empty());
    assert!(!headers.contains_key("sec-websocket-protocol"));
    send(&mut writer, request(0, "initialize", json!({}))).await;
    assert_eq!(receive(&mut reader).await["result"]["protocolVersion"], 1);
    send(&mut writer, request(1, "session/new", json!({}))).await;
    assert_eq!(receive(&mut reader).await["result"]["sessionId"], "s1");
    send(&mut writer, request(2, "session/prompt", json!({"sessionId": "s1", "count": 1000}))).await;
    assert_eq!(receive(&mut reader).await["method"], "session/request_permission");
    send(&mut writer, json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
    for number in 0..1000 {
        assert_eq!(receive(&mut reader).await["params"]["update"], format!("ä {number}"));
    }
    assert_eq!(receive(&mut reader).await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_subprotocol_is_named_only_if_it_was_offered() {
    // shows WS-13
    let address = serve(Options::default()).await;
    let (_reader, _writer, headers) =
        upgrade(address, &[("sec-websocket-protocol", "bearer.secret, acp.v1")]).await.unwrap();
    assert_eq!(headers["sec-websocket-protocol"], "acp.v1");
    let (_reader, _writer, headers) =
        upgrade(address, &[("sec-websocket-protocol", "bearer.secret")]).await.unwrap();
    assert!(!headers.contains_key("sec-websocket-protocol"));
}

#[tokio::test]
async fn other_versions_and_pages_are_refused() {
    let address = serve(Options::default()).await;
    let refused = |name: &'static str, value: &'static str| async move {
        upgrade(address, &[(name, value)]).await.err()
    };
    // shows WS-15
    assert_eq!(refused("sec-websocket-version", "8").await, Some(StatusCode::UPGRADE_REQUIRED));
    // HTTP-33
    assert_eq!(refused("origin", "https://evil.example").await, Some(StatusCode::FORBIDDEN));
    assert_eq!(refused("origin", "null").await, Some(StatusCode::FORBIDDEN));
}

#[tokio::test]
async fn keep_alives_are_not_answered() {
    // CANCEL-14
    let address = serve_connections(Options::default()).await;
    let (mut reader, mut writer, _) = upgrade(address, &[]).await.unwrap();
    for keep_alive in keep_alives() {
        send(&mut writer, keep_alive).await;
    }
    send(&mut writer, request(1, "initialize", json!({}))).await;
    assert_eq!(receive(&mut reader).await["id"], 1);
}
