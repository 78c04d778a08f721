//! Clients over Streamable HTTP.

use crate::kit::{Http, keep_alives, request, serve, serve_connections};
use attache_http::server::{Limits, Options};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

fn patient(patience: Duration) -> Options {
    Options { limits: Limits { patience, ..Limits::default() }, ..Options::default() }
}

async fn conversation(client: Http) {
    // HTTP-01, HTTP-05, HTTP-06
    let client = client.initialize().await;
    let mut connection = client.open(None).await;
    // HTTP-08, HTTP-09, HTTP-11: the response of session/new is on the connection's stream.
    client.accept(request(1, "session/new", json!({}))).await;
    let answer = connection.event().await.unwrap();
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s1"}}));
    // HTTP-10, HTTP-12: everything of the session is on its own stream.
    let mut session = client.open(Some("s1")).await;
    client.accept(request(2, "session/prompt", json!({"sessionId": "s1", "count": 300}))).await;
    assert_eq!(session.event().await.unwrap()["method"], "session/request_permission");
    let answer = client.with("acp-session-id", "s1");
    answer.accept(json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
    for number in 0..300 {
        assert_eq!(session.event().await.unwrap()["params"]["update"], format!("ä {number}"));
    }
    assert_eq!(session.event().await.unwrap()["result"]["stopReason"], "end_turn");
    // HTTP-13: the history, then the response.
    client.accept(request(3, "session/load", json!({"sessionId": "s1"}))).await;
    for number in 0..3 {
        assert_eq!(session.event().await.unwrap()["params"]["update"], format!("history {number}"));
    }
    assert_eq!(session.event().await.unwrap()["id"], 3);
    // HTTP-22: the streams end, and the connection is unknown.
    let deleted = client.send(Method::DELETE, "/acp", "").await;
    assert_eq!(deleted.status, StatusCode::ACCEPTED);
    assert_eq!(connection.event().await, None);
    assert_eq!(session.event().await, None);
    assert_eq!(client.post(request(4, "session/new", json!({}))).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_conversation_over_http_1() {
    let address = serve(Options::default()).await;
    conversation(Http::new(address)).await;
}

#[tokio::test]
async fn a_conversation_over_http_2() {
    // HTTP-04: with prior knowledge.
    let address = serve(Options::default()).await;
    conversation(Http { http2: true, ..Http::new(address) }).await;
}

#[tokio::test]
async fn messages_wait_for_their_stream() {
    // HTTP-31
    let client = Http::new(serve(patient(Duration::from_secs(3600))).await).initialize().await;
    client.accept(request(1, "session/load", json!({"sessionId": "old"}))).await;
    let mut session = client.open(Some("old")).await;
    for number in 0..3 {
        assert_eq!(session.event().await.unwrap()["params"]["update"], format!("history {number}"));
    }
    // The response stays behind the history although the stream was opened late.
    assert_eq!(session.event().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_client_that_opens_no_session_stream_gets_everything_on_the_other_one() {
    let client = Http::new(serve(patient(Duration::from_millis(1))).await).initialize().await;
    let mut connection = client.open(None).await;
    client.accept(request(1, "session/load", json!({"sessionId": "old"}))).await;
    for number in 0..3 {
        assert_eq!(connection.event().await.unwrap()["params"]["update"], format!("history {number}"));
    }
    assert_eq!(connection.event().await.unwrap()["id"], 1);
    // A stream that is opened now gets what comes from now on.
    let mut session = client.open(Some("old")).await;
    client.accept(request(2, "session/load", json!({"sessionId": "old"}))).await;
    assert_eq!(session.event().await.unwrap()["params"]["update"], "history 0");
}

#[tokio::test]
async fn a_session_is_served_while_the_connection_has_no_stream() {
    // HTTP-31
    let client = Http::new(serve(patient(Duration::from_millis(1))).await).initialize().await;
    let mut connection = client.open(None).await;
    client.accept(request(1, "session/new", json!({}))).await;
    assert_eq!(connection.event().await.unwrap()["result"]["sessionId"], "s1");
    drop(connection);
    client.accept(request(2, "session/load", json!({"sessionId": "s1"}))).await;
    // The answers to these wait for the stream of the connection, and the history may fall back to
    // it.
    for id in 3..50 {
        client.accept(request(id, "session/new", json!({}))).await;
    }
    let mut session = client.open(Some("s1")).await;
    client.accept(request(50, "session/prompt", json!({"sessionId": "s1"}))).await;
    for number in 0..3 {
        assert_eq!(session.event().await.unwrap()["params"]["update"], format!("history {number}"));
    }
    assert_eq!(session.event().await.unwrap()["id"], 2);
    assert_eq!(session.event().await.unwrap()["method"], "session/request_permission");
    client.accept(json!({"jsonrpc": "2.0", "id": 50, "result": {}})).await;
    while session.event().await.unwrap()["id"] != 50 {}
    // What belongs to the connection has waited.
    let mut connection = client.open(None).await;
    assert_eq!(connection.event().await.unwrap()["id"], 3);
}

#[tokio::test]
async fn python_gets_ascii() {
    let address = serve(Options::default()).await;
    let client = Http::new(address).with("user-agent", "python-httpx/0.28").initialize().await;
    let session = client.open(Some("s")).await;
    client.accept(request(2, "session/prompt", json!({"sessionId": "s"}))).await;
    client.accept(json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
    let mut session = session;
    session.event().await.unwrap();
    assert_eq!(session.event().await.unwrap()["params"]["update"], "ä 0");
    client.send(Method::DELETE, "/acp", "").await;
    assert!(session.text().await.is_ascii());
}

#[tokio::test]
async fn statuses() {
    let client = Http::new(serve(Options::default()).await);
    let open = client.initialize().await;
    let post = |client: &Http, body: &str| {
        let (client, body) =
            (client.with("content-type", "application/json; charset=utf-8"), body.to_owned());
        async move { client.send(Method::POST, "/acp", body).await }
    };
    let prompt = request(9, "session/set_mode", json!({"sessionId": "a"})).to_string();
    // HTTP-17
    for wrong in ["text/plain", "application/jsonx", ""] {
        let reply = open.with("content-type", wrong).send(Method::POST, "/acp", prompt.clone()).await;
        assert_eq!(reply.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{wrong}");
    }
    // HTTP-18
    for wrong in ["application/json", "*/*", ""] {
        let reply = open.with("accept", wrong).send(Method::GET, "/acp", "").await;
        assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE, "{wrong}");
    }
    // HTTP-14, HTTP-19
    let unknown = client.with("acp-connection-id", "unknown");
    assert_eq!(post(&client, &prompt).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(post(&unknown, &prompt).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.open(None).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(unknown.open(None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.send(Method::DELETE, "/acp", "").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(unknown.send(Method::DELETE, "/acp", "").await.status, StatusCode::NOT_FOUND);
    // HTTP-15, HTTP-16
    let nameless = request(9, "session/prompt", json!({})).to_string();
    assert_eq!(post(&open, &nameless).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(post(&open.with("acp-session-id", "b"), &prompt).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(post(&open.with("acp-session-id", "a"), &prompt).await.status, StatusCode::ACCEPTED);
    // HTTP-23
    let batch = post(&open, "[]").await;
    assert_eq!(batch.status, StatusCode::BAD_REQUEST);
    let error: Value = serde_json::from_str(&batch.text().await).unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(post(&open, "{").await.status, StatusCode::BAD_REQUEST);
    // HTTP-30
    let broken = open
        .with("content-type", "application/json")
        .send(Method::POST, "/acp", b"{\"\xff\"}".to_vec())
        .await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    // HTTP-29
    let refused = client.post(request(0, "initialize", json!({"fail": true}))).await;
    assert_eq!(refused.status, StatusCode::OK);
    assert!(!refused.headers.contains_key("acp-connection-id"));
    assert!(refused.text().await.contains("-32602"));
    // A second offer on a connection is answered like the first.
    let again = open.post(request(7, "initialize", json!({}))).await;
    assert_eq!(again.status, StatusCode::OK);
    assert!(again.text().await.contains("\"id\":7"));
    assert_eq!(client.send(Method::PUT, "/acp", "").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(client.send(Method::GET, "/other", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.send(Method::GET, "/acp/unknown", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.send(Method::GET, "/health", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_later_reader_replaces_the_first() {
    // HTTP-21: a dead socket of the same client must not lock it out.
    let client = Http::new(serve(Options::default()).await).initialize().await;
    let mut old = client.open(None).await;
    let mut new = client.open(None).await;
    assert_eq!(old.event().await, None);
    client.accept(request(1, "session/new", json!({}))).await;
    assert_eq!(new.event().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_fork_is_answered_where_its_source_is_read() {
    // HTTP-13: like that of session/load, so that it stays behind what the source has sent.
    let client = Http::new(serve(Options::default()).await).initialize().await;
    let mut connection = client.open(None).await;
    let mut source = client.open(Some("read")).await;
    client.accept(request(1, "session/fork", json!({"sessionId": "read"}))).await;
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s1"}});
    assert_eq!(source.event().await.unwrap(), answer);
    client.accept(request(2, "session/fork", json!({"sessionId": "unread"}))).await;
    assert_eq!(connection.event().await.unwrap()["result"]["sessionId"], "s2");
}

#[tokio::test]
async fn keep_alives_are_accepted_and_not_answered() {
    // CANCEL-14
    let client = Http::new(serve_connections(Options::default()).await).initialize().await;
    let mut connection = client.open(None).await;
    for keep_alive in keep_alives() {
        client.accept(keep_alive).await;
    }
    client.accept(request(1, "x", json!({}))).await;
    assert_eq!(connection.event().await.unwrap()["id"], 1);
    assert_eq!(client.post(json!({"id": 2, "method": "$/ping"})).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_agent_refuses_unknown_methods() {
    let client = Http::new(serve(Options::default()).await).initialize().await;
    let mut connection = client.open(None).await;
    // HTTP-15: only methods that are known to be about a session need one.
    client.accept(request(1, "session/unknown", json!({}))).await;
    assert_eq!(connection.event().await.unwrap()["error"]["code"], -32601);
}

#[tokio::test]
async fn closing_a_session_leaves_its_stream_open() {
    // HTTP-35
    let client = Http::new(serve(Options::default()).await).initialize().await;
    let mut session = client.open(Some("a")).await;
    client.accept(request(1, "session/close", json!({"sessionId": "a"}))).await;
    client.accept(request(2, "session/load", json!({"sessionId": "a"}))).await;
    assert_eq!(session.event().await.unwrap()["params"]["update"], "history 0");
}
