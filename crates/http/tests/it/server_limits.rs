//! Limits: each has its refusal.

use crate::kit::{Http, request, serve, upgrade};
use attache_conn::{FrameReader, FrameWriter};
use attache_http::server::{Access, Limits, Options, Server, TokenFile, Tokens};
use attache_http::ws::Close;
use hyper::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn limited(limits: Limits) -> Options {
    Options { limits, ..Options::default() }
}

#[tokio::test]
async fn clients() {
    let client = Http::new(serve(limited(Limits { connections: 2, ..Limits::default() })).await);
    let first = client.initialize().await;
    let _socket = upgrade(client.address, &[]).await.unwrap();
    let refused = client.post(request(0, "initialize", json!({}))).await;
    assert_eq!(
        (refused.status, &refused.headers["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"5".parse().unwrap())
    );
    assert_eq!(upgrade(client.address, &[]).await.err(), Some(StatusCode::SERVICE_UNAVAILABLE));
    // A place becomes free with the agent's end of the connection.
    assert_eq!(first.send(Method::DELETE, "/acp", "").await.status, StatusCode::ACCEPTED);
    while client.post(request(0, "initialize", json!({}))).await.status != StatusCode::OK {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn clients_of_one_token() {
    let (token, entry) = Tokens::generate("me").unwrap();
    let options = Options {
        access: Access::tokens(Tokens::parse(&entry).unwrap()),
        ..limited(Limits { connections_per_identity: 1, ..Limits::default() })
    };
    let client = Http::new(serve(options).await).with("authorization", &format!("Bearer {token}"));
    let _open = client.initialize().await;
    let refused = client.post(request(0, "initialize", json!({}))).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn messages() {
    // HTTP-30
    let client =
        Http::new(serve(limited(Limits { message: 1000, ..Limits::default() })).await).initialize().await;
    let large = client.post(request(1, "x", json!({"text": "x".repeat(1000)}))).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    // The connection lives.
    client.accept(request(2, "session/new", json!({}))).await;
}

#[tokio::test]
async fn open_requests() {
    let client =
        Http::new(serve(limited(Limits { open_requests: 2, ..Limits::default() })).await).initialize().await;
    client.accept(request(1, "never", json!({}))).await;
    client.accept(request(2, "never", json!({}))).await;
    let refused = client.post(request(3, "never", json!({}))).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn open_requests_of_one_token() {
    let limits = Limits { open_requests_per_identity: 2, ..Limits::default() };
    let (token, entry) = Tokens::generate("me").unwrap();
    let access = Access::tokens(Tokens::parse(&entry).unwrap());
    let client = Http::new(serve(Options { access, ..limited(limits) }).await);
    let client = client.with("authorization", &format!("Bearer {token}"));
    let (first, second) = (client.initialize().await, client.initialize().await);
    first.accept(request(1, "never", json!({}))).await;
    first.accept(request(2, "never", json!({}))).await;
    let refused = second.post(request(1, "never", json!({}))).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    // HTTP-39
    assert!(refused.headers.contains_key("retry-after"));
    // The requests of a connection end with it.
    assert_eq!(first.send(Method::DELETE, "/acp", "").await.status, StatusCode::ACCEPTED);
    while second.post(request(1, "never", json!({}))).await.status != StatusCode::ACCEPTED {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn unknown_sessions() {
    // HTTP-20
    let client = Http::new(serve(Options::default()).await).initialize().await;
    let mut streams = Vec::new();
    for number in 0..64 {
        streams.push(client.open(Some(&format!("ghost {number}"))).await);
        assert_eq!(streams.last().unwrap().status, StatusCode::OK);
    }
    assert_eq!(client.open(Some("one more")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_the_agent_wait() {
    let held = 100_000;
    let mut server =
        Server::bind("127.0.0.1:0", limited(Limits { held, ..Limits::default() })).await.unwrap();
    let address = server.local_addr();
    let client = tokio::spawn(async move { Http::new(address).initialize().await });
    let link = server.accept().await.unwrap().link;
    let (mut reader, mut writer) = link.split();
    reader.next().await.unwrap().unwrap();
    writer.send(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#).await.unwrap();
    let client = client.await.unwrap();
    let line = json!({"jsonrpc": "2.0", "method": "x", "params": {"text": "x".repeat(1000)}}).to_string();
    let mut sent = 0;
    loop {
        tokio::select! {
            biased;
            sending = writer.send(line.as_bytes()) => sending.unwrap(),
            () = std::future::ready(()) => break,
        }
        sent += line.len();
        assert!(sent < 2 * held);
    }
    assert!(sent >= held - line.len());
    // A reader lets it go on.
    let mut stream = client.open(None).await;
    stream.event().await.unwrap();
    writer.flush().await.unwrap();
}

#[tokio::test]
async fn a_server_that_goes_down_refuses_new_clients() {
    let server = Server::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let client = Http::new(server.local_addr());
    server.drain();
    assert_eq!(
        client.post(request(0, "initialize", json!({}))).await.status,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(client.send(Method::GET, "/ready", "").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(client.send(Method::GET, "/health", "").await.status, StatusCode::OK);
}

/// Returns the status with which the server closed a WebSocket.
async fn close_status(reader: &mut FrameReader) -> (u16, String) {
    let error = loop {
        match reader.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a normal end"),
            Err(error) => break error,
        }
    };
    let close = error.get_ref().and_then(|error| error.downcast_ref::<Close>()).expect("a close frame");
    (close.code, close.reason.clone())
}

/// A server with one token, which can be revoked, for a file of its own.
struct Guarded {
    server: Server,
    file: std::path::PathBuf,
    token: String,
}

impl Guarded {
    async fn start(name: &str, limits: Limits) -> Guarded {
        let file = std::env::temp_dir().join(format!("attache-{name}-{}", std::process::id()));
        let (token, entry) = Tokens::generate("me").unwrap();
        std::fs::write(&file, entry).unwrap();
        let access = Access::Token(Arc::new(TokenFile::open(&file).unwrap()));
        let server = Server::bind("127.0.0.1:0", Options { access, ..limited(limits) }).await.unwrap();
        Guarded { server, file, token }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[tokio::test]
async fn sessions_of_one_token() {
    let limits = Limits { sessions_per_identity: 2, ..Limits::default() };
    let (token, entry) = Tokens::generate("me").unwrap();
    let access = Access::tokens(Tokens::parse(&entry).unwrap());
    let client = Http::new(serve(Options { access, ..limited(limits) }).await);
    let client = client.with("authorization", &format!("Bearer {token}"));
    let (first, second) = (client.initialize().await, client.initialize().await);
    // Sessions with a reader are in use and cannot make room.
    let _a = first.open(Some("a")).await;
    let b = second.open(Some("b")).await;
    assert_eq!(b.status, StatusCode::OK);
    assert_eq!(second.open(Some("c")).await.status, StatusCode::NOT_FOUND);
    let refused = second.post(request(1, "session/prompt", json!({"sessionId": "c"}))).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    // HTTP-39
    assert!(refused.headers.contains_key("retry-after"));
    // The sessions of a connection end with it.
    assert_eq!(first.send(Method::DELETE, "/acp", "").await.status, StatusCode::ACCEPTED);
    while second.open(Some("c")).await.status != StatusCode::OK {
        tokio::task::yield_now().await;
    }
}

/// Messages of about 1 kB.
fn line() -> String {
    json!({"jsonrpc": "2.0", "method": "x", "params": {"text": "x".repeat(1000)}}).to_string()
}

/// Sends until the server takes no more. Returns the number of bytes.
async fn fill(writer: &mut FrameWriter) -> usize {
    let (line, mut count) = (line(), 0);
    loop {
        tokio::select! {
            biased;
            sending = writer.send(line.as_bytes()) => sending.unwrap(),
            () = std::future::ready(()) => return count,
        }
        count += line.len();
    }
}

#[tokio::test]
async fn bytes_of_all_clients() {
    let limits = Limits { held_total: 300_000, held: 200_000, ..Limits::default() };
    let mut server = Server::bind("127.0.0.1:0", limited(limits)).await.unwrap();
    let address = server.local_addr();
    let line = line();
    let (mut sent, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let client = tokio::spawn(async move { Http::new(address).initialize().await });
        let (mut reader, mut writer) = server.accept().await.unwrap().link.split();
        reader.next().await.unwrap().unwrap();
        writer.send(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#).await.unwrap();
        sent.push(fill(&mut writer).await);
        clients.push((client.await.unwrap(), reader, writer));
    }
    // The first two fill the server; the others get their share all the same.
    assert!(sent[0] > 190_000 && sent[1] > 90_000, "{sent:?}");
    assert!(sent[2..].iter().all(|sent| (50_000..80_000).contains(sent)), "{sent:?}");
    // The agent of a client that reads continues.
    let (client, _reader, writer) = &mut clients[3];
    let mut stream = client.open(None).await;
    for _ in 0..200 {
        tokio::join!(async { writer.send(line.as_bytes()).await.unwrap() }, async {
            stream.event().await.unwrap();
        });
    }
}

#[tokio::test]
async fn bytes_of_one_token() {
    let limits = Limits { held_per_identity: 300_000, held: 200_000, ..Limits::default() };
    let tokens = ["me", "you"].map(|name| Tokens::generate(name).unwrap());
    let entries: String = tokens.iter().map(|(_, entry)| entry.as_str()).collect();
    let access = Access::tokens(Tokens::parse(&entries).unwrap());
    let mut server = Server::bind("127.0.0.1:0", Options { access, ..limited(limits) }).await.unwrap();
    let address = server.local_addr();
    let (mut sent, mut clients) = (Vec::new(), Vec::new());
    for owner in [0, 0, 0, 1] {
        let bearer = format!("Bearer {}", tokens[owner].0);
        let client = tokio::spawn(async move {
            Http::new(address).with("authorization", &bearer).initialize().await;
        });
        let (mut reader, mut writer) = server.accept().await.unwrap().link.split();
        reader.next().await.unwrap().unwrap();
        writer.send(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#).await.unwrap();
        sent.push(fill(&mut writer).await);
        clients.push((client, reader, writer));
    }
    // The third has its share only; the owner of another token is not concerned.
    assert!((50_000..80_000).contains(&sent[2]), "{sent:?}");
    assert!(sent[3] > 190_000, "{sent:?}");
}

#[tokio::test]
async fn requests_over_websocket() {
    let address = serve(limited(Limits { socket_requests: 2, ..Limits::default() })).await;
    let (mut reader, mut writer, _) = upgrade(address, &[]).await.unwrap();
    for id in 0..10 {
        // Those with an answer are not open.
        writer.send(request(id, "session/new", json!({})).to_string().as_bytes()).await.unwrap();
        reader.next().await.unwrap().unwrap();
    }
    for id in 10..13 {
        writer.send(request(id, "never answered", json!({})).to_string().as_bytes()).await.unwrap();
    }
    let why = "too many requests are open; try again later".to_owned();
    assert_eq!(close_status(&mut reader).await, (1013, why));
}

#[tokio::test]
async fn sessions_over_websocket() {
    let (token, entry) = Tokens::generate("me").unwrap();
    let access = Access::tokens(Tokens::parse(&entry).unwrap());
    let limits = Limits { socket_sessions: 2, socket_sessions_per_identity: 3, ..Limits::default() };
    let address = serve(Options { access, ..limited(limits) }).await;
    let bearer = format!("Bearer {token}");
    let mut id = 0;
    let connect = async || upgrade(address, &[("authorization", &bearer)]).await.unwrap();
    let why = "too many sessions are open; close one with session/close";
    let (mut reader, mut writer, _) = connect().await;
    let mut ask = async |writer: &mut FrameWriter, method: &str, params: serde_json::Value| {
        id += 1;
        writer.send(request(id, method, params).to_string().as_bytes()).await.unwrap();
    };
    for _ in 0..2 {
        ask(&mut writer, "session/new", json!({})).await;
        reader.next().await.unwrap().unwrap();
    }
    // A closed session makes room, and known ones count once.
    ask(&mut writer, "session/close", json!({"sessionId": "s1"})).await;
    for _ in 0..3 {
        ask(&mut writer, "session/load", json!({"sessionId": "old"})).await;
        for _ in 0..4 {
            reader.next().await.unwrap().unwrap();
        }
    }
    // The token has a place for one session more.
    let (mut second, mut second_writer, _) = connect().await;
    ask(&mut second_writer, "session/new", json!({})).await;
    second.next().await.unwrap().unwrap();
    ask(&mut second_writer, "session/new", json!({})).await;
    assert_eq!(close_status(&mut second).await, (1008, why.to_owned()));
    ask(&mut writer, "session/new", json!({})).await;
    assert_eq!(close_status(&mut reader).await, (1008, why.to_owned()));
}

#[tokio::test]
async fn messages_over_websocket() {
    let address = serve(limited(Limits { message: 1000, ..Limits::default() })).await;
    let (mut reader, mut writer, _) = upgrade(address, &[]).await.unwrap();
    writer.send("x".repeat(1001).as_bytes()).await.unwrap();
    assert_eq!(close_status(&mut reader).await, (1009, "a message may have 1000 bytes".to_owned()));
}

#[tokio::test]
async fn pages_learn_why_a_websocket_is_refused() {
    let mut server =
        Guarded::start("full", Limits { connections: 2, connections_per_identity: 1, ..Limits::default() })
            .await;
    let address = server.server.local_addr();
    let (bearer, origin) = (server.bearer(), format!("http://{address}"));
    let page = [("authorization", bearer.as_str()), ("origin", &origin)];
    let (_reader, _writer, _) = upgrade(address, &page).await.unwrap();
    let _first = server.server.accept().await.unwrap();
    let (mut reader, _writer, _) = upgrade(address, &page).await.unwrap();
    assert_eq!(close_status(&mut reader).await, (1008, "this token has too many clients".to_owned()));
    // A program sees the status of HTTP.
    assert_eq!(upgrade(address, &page[..1]).await.err(), Some(StatusCode::TOO_MANY_REQUESTS));
    server.server.drain();
    let (mut reader, _writer, _) = upgrade(address, &page).await.unwrap();
    assert_eq!(close_status(&mut reader).await, (1012, "the server is going down".to_owned()));

    let address = serve(limited(Limits { connections: 0, ..Limits::default() })).await;
    let origin = format!("http://{address}");
    let (mut reader, _writer, _) = upgrade(address, &[("origin", &origin)]).await.unwrap();
    assert_eq!(close_status(&mut reader).await, (1013, "the server has too many clients".to_owned()));
}

#[tokio::test]
async fn a_revoked_token_ends_its_connections() {
    let limits = Limits { sweep: Duration::from_millis(10), ..Limits::default() };
    let mut server = Guarded::start("revoked", limits).await;
    let address = server.server.local_addr();
    let bearer = server.bearer();
    let (mut reader, _writer, _) = upgrade(address, &[("authorization", &bearer)]).await.unwrap();
    let link = server.server.accept().await.unwrap().link;
    let agent = tokio::spawn(async move {
        let (mut reader, mut writer) = link.split();
        let error = reader.next().await.unwrap_err();
        let _ = writer.close().await;
        error.to_string()
    });
    let (_, other) = Tokens::generate("other").unwrap();
    std::fs::write(&server.file, format!("# me is gone\n{other}")).unwrap();
    assert_eq!(close_status(&mut reader).await, (1008, "the token was revoked".to_owned()));
    assert_eq!(agent.await.unwrap(), "the token was revoked");
    assert_eq!(upgrade(address, &[("authorization", &bearer)]).await.err(), Some(StatusCode::UNAUTHORIZED));
}

#[tokio::test]
async fn a_server_that_stops_closes_its_websockets() {
    let mut server = Server::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let (mut reader, _writer, _) = upgrade(server.local_addr(), &[]).await.unwrap();
    let link = server.accept().await.unwrap().link;
    let agent = tokio::spawn(async move { link.split().0.next().await.is_err() });
    server.shut_down();
    assert_eq!(close_status(&mut reader).await, (1012, "the server restarts".to_owned()));
    assert!(agent.await.unwrap());
}

#[tokio::test]
async fn the_end_of_an_agent_has_a_reason() {
    let mut server = Server::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let (mut reader, _writer, _) = upgrade(server.local_addr(), &[]).await.unwrap();
    let client = server.accept().await.unwrap();
    client.closer.unwrap().set_end(1011, "the agent has ended");
    client.link.split().1.close().await.unwrap();
    assert_eq!(close_status(&mut reader).await, (1011, "the agent has ended".to_owned()));
}
