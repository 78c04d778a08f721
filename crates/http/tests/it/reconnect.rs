//! Connections that are cut and made again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Link};
use attache_http::client::remote::{Options, Transport, connect};
use attache_http::client::{Backoff, HttpClient};
use attache_http::server::{self, Server};
use hyper::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::foreign::{Foreign, Habits, Seen};
use crate::kit::request;

/// A server of agents that keep their sessions in a common store, and all requests they got.
struct Agents {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Agents {
    async fn start(capabilities: Value) -> Agents {
        let mut server = Server::bind("127.0.0.1:0", server::Options::default()).await.unwrap();
        let address = server.local_addr();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let sessions = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok(client) = server.accept().await {
                tokio::spawn(agent(
                    client.link,
                    capabilities.clone(),
                    Arc::clone(&seen),
                    Arc::clone(&sessions),
                ));
            }
        });
        Agents { address, requests }
    }

    fn methods(&self) -> Vec<String> {
        self.requests.lock().iter().map(|(method, _)| method.clone()).collect()
    }
}

async fn agent(
    link: Link,
    capabilities: Value,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    sessions: Arc<AtomicUsize>,
) {
    let (mut reader, mut writer) = link.split();
    let mut own = Vec::new();
    while let Ok(Some(line)) = reader.next().await {
        let message: Value = serde_json::from_slice(line).unwrap();
        let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        seen.lock().push((method.to_owned(), params.clone()));
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let update = |text: &str| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": text}});
        let mut lines = Vec::new();
        let result = match method {
            "initialize" => json!({"protocolVersion": 1, "agentCapabilities": capabilities}),
            "session/new" => {
                own.push(format!("s{}", sessions.fetch_add(1, Ordering::Relaxed)));
                json!({"sessionId": own.last()})
            }
            "session/resume" | "session/load" if session == "s1" => {
                let error = json!({"code": -32002, "message": "no such session"});
                lines.push(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
                Value::Null
            }
            "session/resume" | "session/load" => {
                own.push(session.clone());
                lines.extend((method == "session/load").then(|| update("history")));
                json!({})
            }
            "session/prompt" if params["hang"] == true => {
                lines.push(update("begun"));
                Value::Null
            }
            "session/prompt" => {
                assert!(own.contains(&session), "{session}");
                lines.push(update("text"));
                json!({"stopReason": "end_turn"})
            }
            _ => continue,
        };
        if !result.is_null() {
            lines.push(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        lines.iter().for_each(|line| writer.feed(line.to_string().as_bytes()));
        if writer.flush().await.is_err() {
            return;
        }
    }
}

/// A proxy whose connections can be cut.
struct Proxy {
    address: SocketAddr,
    cut: watch::Sender<u32>,
}

impl Proxy {
    async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, cuts) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut cuts = cuts.clone();
                cuts.borrow_and_update();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Proxy { address, cut }
    }

    fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

struct Peer {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Peer {
    async fn connect(proxy: &Proxy) -> Peer {
        Peer::connect_by(Transport::WebSocket, proxy).await
    }

    async fn connect_by(transport: Transport, proxy: &Proxy) -> Peer {
        let options = Options {
            client: Some(HttpClient::new(None).unwrap()),
            transport: Some(transport),
            reconnect: Backoff {
                attempts: 10,
                first: Duration::from_millis(1),
                max: Duration::from_millis(50),
            },
            ..Options::default()
        };
        let (reader, writer) = connect(&format!("http://{}", proxy.address), &options).await.unwrap().split();
        let mut peer = Peer { reader, writer };
        assert_eq!(
            peer.call(0, "initialize", json!({"protocolVersion": 1})).await["result"]["protocolVersion"],
            1
        );
        peer
    }

    async fn next(&mut self) -> Value {
        serde_json::from_slice(self.reader.next().await.unwrap().expect("a message")).unwrap()
    }

    async fn send(&mut self, message: Value) {
        self.writer.send(message.to_string().as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(request(id, method, params)).await;
        loop {
            let message = self.next().await;
            if message["method"].is_null() {
                assert_eq!(message["id"], id);
                return message;
            }
            assert_ne!(message["params"]["update"], "history", "the client has it already");
        }
    }

    async fn new_session(&mut self, id: u64) -> Value {
        self.call(id, "session/new", json!({"cwd": "/w", "mcpServers": []})).await["result"]["sessionId"]
            .take()
    }
}

#[tokio::test]
async fn sessions_continue_after_a_cut_between_turns() {
    for (capabilities, method) in [
        (json!({"sessionCapabilities": {"resume": {}}}), "session/resume"),
        (json!({"loadSession": true}), "session/load"),
    ] {
        let agents = Agents::start(capabilities).await;
        let proxy = Proxy::start(agents.address).await;
        let mut peer = Peer::connect(&proxy).await;
        let session = peer.new_session(1).await;
        peer.call(2, "session/prompt", json!({"sessionId": session})).await;
        proxy.cut();
        let answer = peer.call(3, "session/prompt", json!({"sessionId": session})).await;
        // A prompt that was on its way at the cut may have arrived, so it is not repeated.
        if answer["result"].is_null() {
            assert_eq!(answer["error"]["message"], "the connection was cut before the agent answered");
        }
        assert_eq!(
            peer.call(4, "session/prompt", json!({"sessionId": session})).await["result"]["stopReason"],
            "end_turn"
        );
        let expected = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
        assert!(agents.requests.lock().contains(&(method.to_owned(), expected)), "{:?}", agents.methods());
    }
}

#[tokio::test]
async fn a_turn_that_is_cut_fails_and_the_session_continues() {
    // shows HTTP-41, WS-19 The streams of HTTP have no position here: an answer that was under way
    // would be waited for in vain.
    for transport in [Transport::WebSocket, Transport::StreamableHttp] {
        let agents = Agents::start(json!({"loadSession": true})).await;
        let proxy = Proxy::start(agents.address).await;
        let mut peer = Peer::connect_by(transport, &proxy).await;
        let session = peer.new_session(1).await;
        peer.send(request(2, "session/prompt", json!({"sessionId": session, "hang": true}))).await;
        assert_eq!(peer.next().await["params"]["update"], "begun");
        proxy.cut();
        let answer = peer.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32603)));
        assert_eq!(
            peer.call(3, "session/prompt", json!({"sessionId": session})).await["result"]["stopReason"],
            "end_turn"
        );
        // The hanging prompt was sent once.
        let prompts = agents.methods().iter().filter(|method| *method == "session/prompt").count();
        assert_eq!(prompts, 2);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_has_a_clear_error() {
    let agents = Agents::start(json!({"sessionCapabilities": {"resume": {}}})).await;
    let proxy = Proxy::start(agents.address).await;
    let mut peer = Peer::connect(&proxy).await;
    let (first, second) = (peer.new_session(1).await, peer.new_session(2).await);
    peer.send(request(3, "session/prompt", json!({"sessionId": first, "hang": true}))).await;
    assert_eq!(peer.next().await["params"]["update"], "begun");
    proxy.cut();
    assert_eq!(peer.next().await["id"], 3);
    let answer = peer.call(4, "session/prompt", json!({"sessionId": second})).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["message"]),
        (
            &json!(-32002),
            &json!("the connection was cut, and the agent cannot resume the session: no such session")
        )
    );
    assert_eq!(
        peer.call(5, "session/prompt", json!({"sessionId": first})).await["result"]["stopReason"],
        "end_turn"
    );

    let agents = Agents::start(json!({})).await;
    let proxy = Proxy::start(agents.address).await;
    let mut peer = Peer::connect(&proxy).await;
    let session = peer.new_session(1).await;
    peer.send(request(2, "session/prompt", json!({"sessionId": session, "hang": true}))).await;
    assert_eq!(peer.next().await["params"]["update"], "begun");
    proxy.cut();
    assert_eq!(peer.next().await["id"], 2);
    let answer = peer.call(3, "session/prompt", json!({"sessionId": session})).await;
    assert_eq!(answer["error"]["message"], "the connection was cut, and the agent cannot resume sessions");
    // A new session works.
    let session = peer.new_session(4).await;
    peer.call(5, "session/prompt", json!({"sessionId": session})).await;
}

#[tokio::test]
async fn a_server_that_stays_away_ends_the_link_with_the_reason() {
    let (listener, agents) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), Agents::start(json!({})).await);
    let address = listener.local_addr().unwrap();
    let once = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut server = TcpStream::connect(agents.address).await.unwrap();
        // The request and the response of `initialize`, then nothing any more.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    });
    let (cut, _) = watch::channel(0);
    let mut peer = Peer::connect(&Proxy { address, cut }).await;
    once.abort();
    let error = peer.reader.next().await.unwrap_err().to_string();
    assert!(error.starts_with("the connection was cut, and cannot be made again: "), "{error}");
}

/// A server with the faults of the Python SDK's: it gives messages to readers that are gone, and
/// knows a session on its first connection only.
async fn forgetful_server() -> Foreign {
    Foreign::start(Habits { unknown_session: 404, forgets_sessions: true, ..Habits::default() }).await
}

/// After a cut there is a new connection, on which the history arrives, and prompts have an error
/// instead of no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_the_server_forgets_has_a_clear_error() {
    let server = forgetful_server().await;
    let proxy = Proxy::start(server.address).await;
    let mut peer = Peer::connect_by(Transport::StreamableHttp, &proxy).await;
    let session = peer.new_session(1).await;
    let is_stream_of = |seen: &Seen| seen.method == Method::GET && seen.header("acp-session-id").is_some();
    server.wait_for(|seen| seen.iter().any(is_stream_of)).await;
    proxy.cut();
    let is_load = |seen: &Seen| seen.body["method"] == "session/load";
    server
        .wait_for(|seen| seen.iter().any(|one| is_load(one) && one.header("acp-session-id").is_none()))
        .await;
    let prompt = json!({"sessionId": session, "prompt": []});
    let answer = peer.call(2, "session/prompt", prompt).await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("the server does not know this session"), "{answer}");
    // The connection lives.
    assert_eq!(peer.new_session(3).await, "s2");
    assert!(!server.seen().iter().any(|seen| seen.header("upgrade").is_some()), "the caller chose HTTP");
}

/// Over WebSocket such a server could continue with the session, so that is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgets_sessions_is_asked_for_a_websocket_again() {
    let server = forgetful_server().await;
    let proxy = Proxy::start(server.address).await;
    let options = Options {
        client: Some(HttpClient::new(None).unwrap()),
        reconnect: Backoff { attempts: 10, first: Duration::from_millis(1), max: Duration::from_millis(50) },
        ..Options::default()
    };
    let origin = format!("http://{}", proxy.address);
    options.transports.insert(&origin, Transport::StreamableHttp);
    let (reader, writer) = connect(&origin, &options).await.unwrap().split();
    let mut peer = Peer { reader, writer };
    peer.call(0, "initialize", json!({"protocolVersion": 1})).await;
    let is_stream = |seen: &Seen| seen.method == Method::GET && seen.header("upgrade").is_none();
    server.wait_for(|seen| seen.iter().any(is_stream)).await;
    proxy.cut();
    server.wait_for(|seen| seen.iter().any(|one| one.header("upgrade").is_some())).await;
    // This server has none.
    server.wait_for(|seen| seen.iter().filter(|one| one.body["method"] == "initialize").count() == 2).await;
    assert_eq!(peer.new_session(1).await, "s1");
    assert_eq!(options.transports.get(&origin), Some(Transport::StreamableHttp));
}

/// The requests for the stream of the connection.
fn streams(seen: &[Seen]) -> usize {
    let is_stream = |seen: &&Seen| {
        seen.method == Method::GET
            && seen.header("upgrade").is_none()
            && seen.header("acp-session-id").is_none()
    };
    seen.iter().filter(is_stream).count()
}

fn initializes(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.body["method"] == "initialize").count()
}

async fn connect_to(server: &Foreign, attempts: u32) -> Peer {
    let options = Options {
        client: Some(HttpClient::new(None).unwrap()),
        reconnect: Backoff { attempts, first: Duration::from_millis(1), max: Duration::from_millis(50) },
        ..Options::default()
    };
    let (reader, writer) = connect(&server.url(), &options).await.unwrap().split();
    let mut peer = Peer { reader, writer };
    peer.call(0, "initialize", json!({"protocolVersion": 1})).await;
    peer
}

/// A server without comments behind a proxy that ends silent streams.
#[tokio::test]
async fn a_silent_stream_that_lived_for_a_while_is_opened_again_for_ever() {
    // shows HTTP-41
    let server = Foreign::start(Habits::default()).await;
    let mut peer = connect_to(&server, 10).await;
    for opened in 1..8 {
        server.wait_for(|seen| streams(seen) == opened).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(6)).await;
        tokio::time::resume();
        server.cut("");
    }
    server.wait_for(|seen| streams(seen) == 8).await;
    assert_eq!(peer.new_session(1).await, "s1");
    assert_eq!(initializes(&server.seen()), 1);
}

#[tokio::test]
async fn a_stream_that_always_ends_at_once_leads_to_a_new_connection() {
    // shows HTTP-41
    let server = Foreign::start(Habits::default()).await;
    let mut peer = connect_to(&server, 10).await;
    // The server is overloaded then, for longer than a message is tried.
    for opened in 1..5 {
        server.wait_for(|seen| streams(seen) == opened).await;
        for _ in 0..if opened == 4 { 5 } else { 0 } {
            server.refuse("initialize", 503, &[("retry-after", "0")]);
        }
        server.cut("");
    }
    server.wait_for(|seen| initializes(seen) == 1 + 5 + 1).await;
    assert!(server.seen().iter().any(|seen| seen.method == Method::DELETE), "the old connection is closed");
    assert_eq!(peer.new_session(1).await, "s1");
    // Not for ever: connections without a message count as failed attempts.
    let server = Foreign::start(Habits { ends_stream: true, ..Habits::default() }).await;
    let mut peer = connect_to(&server, 2).await;
    let error = peer.reader.next().await.unwrap_err().to_string();
    assert!(error.contains("the server ends the stream of events at once"), "{error}");
    assert_eq!(initializes(&server.seen()), 3);
}
