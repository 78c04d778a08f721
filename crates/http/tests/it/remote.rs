//! Links to remote agents: our own server, and servers with other habits.

use attache_conn::{FrameReader, FrameWriter, Link};
use attache_http::client::remote::{Options, RemoteError, Transport, connect};
use attache_http::client::{Backoff, HttpClient};
use attache_http::proxy::Proxies;
use attache_http::server;
use hyper::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::foreign::{Foreign, Habits, Seen};
use crate::kit;

/// Options that do not depend on the environment.
fn options() -> Options {
    Options { client: Some(HttpClient::new(None).unwrap()), ..Options::default() }
}

/// The client's end of a link.
struct Peer {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Peer {
    fn new(link: Link) -> Peer {
        let (reader, writer) = link.split();
        Peer { reader, writer }
    }

    async fn connect(url: &str, options: &Options) -> Peer {
        Peer::new(connect(url, options).await.unwrap())
    }

    async fn send(&mut self, message: Value) {
        self.writer.send(message.to_string().as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) {
        self.send(kit::request(id, method, params)).await;
    }

    async fn next(&mut self) -> Value {
        let line = self.reader.next().await.unwrap().expect("a message");
        serde_json::from_slice(line).unwrap()
    }

    /// Returns the next message that is no update, and the updates before it.
    async fn after_updates(&mut self) -> (Vec<String>, Value) {
        let mut updates = Vec::new();
        loop {
            let message = self.next().await;
            match message["params"]["update"].as_str() {
                Some(text) => updates.push(text.to_owned()),
                None => return (updates, message),
            }
        }
    }

    async fn initialize(&mut self) {
        self.call(0, "initialize", json!({"protocolVersion": 1})).await;
        assert_eq!(self.next().await["result"]["protocolVersion"], 1);
    }

    async fn new_session(&mut self, id: u64) -> String {
        self.call(id, "session/new", json!({})).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id);
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    /// A prompt with a permission question.
    async fn prompt(&mut self, id: u64, session: &str) -> Vec<String> {
        self.call(id, "session/prompt", json!({"sessionId": session})).await;
        let (mut updates, ask) = self.after_updates().await;
        assert_eq!(ask["method"], "session/request_permission", "{ask}");
        self.send(json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"outcome": {}}})).await;
        let (rest, answer) = self.after_updates().await;
        assert_eq!((&answer["id"], &answer["result"]["stopReason"]), (&json!(id), &json!("end_turn")));
        updates.extend(rest);
        updates
    }

    async fn load(&mut self, id: u64, session: &str) -> Vec<String> {
        self.call(id, "session/load", json!({"sessionId": session})).await;
        let (history, answer) = self.after_updates().await;
        assert_eq!(answer["id"], id);
        history
    }
}

async fn conversation(peer: &mut Peer) {
    peer.initialize().await;
    let session = peer.new_session(1).await;
    assert!(peer.prompt(2, &session).await.contains(&"ä 0".to_owned()));
    assert_eq!(peer.load(3, &session).await, ["history 0", "history 1", "history 2"]);
    let second = peer.new_session(4).await;
    assert_ne!(second, session);
    peer.prompt(5, &second).await;
}

#[tokio::test]
async fn our_server_by_every_transport() {
    let address = kit::serve(server::Options::default()).await;
    let url = format!("http://{address}");
    // HTTP-02: the WebSocket is preferred, and the path is `/acp`.
    let options = options();
    conversation(&mut Peer::connect(&url, &options).await).await;
    assert_eq!(options.transports.get(&url), Some(Transport::WebSocket));
    conversation(&mut Peer::connect(&format!("ws://{address}/acp"), &options).await).await;
    options.transports.insert(&url, Transport::StreamableHttp);
    conversation(&mut Peer::connect(&url, &options).await).await;
    // HTTP-04
    let mut http2 = options.clone();
    http2.http2_prior_knowledge = true;
    conversation(&mut Peer::connect(&url, &http2).await).await;
}

#[cfg(feature = "self-signed")]
#[tokio::test]
async fn our_server_with_tls() {
    use attache_http::client::ErrorKind;
    use attache_http::server::Tls;
    let made = Tls::self_signed(vec!["localhost".to_owned()]).unwrap();
    let dir = std::env::temp_dir().join(format!("attache-http-tls-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    std::fs::write(&certificate, &made.certificate).unwrap();
    std::fs::write(&key, &made.key).unwrap();
    let tls = Some(Tls::from_files(&certificate, &key).unwrap());
    let trusting = HttpClient::new(Some(&certificate)).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let address = kit::serve(server::Options { tls, ..server::Options::default() }).await;
    let origin = format!("https://localhost:{}", address.port());
    let options = Options { client: Some(trusting), ..Options::default() };
    conversation(&mut Peer::connect(&format!("{origin}/acp").replace("https", "wss"), &options).await).await;
    // HTTP-04: the server and the client agree on HTTP/2.
    options.transports.insert(&origin, Transport::StreamableHttp);
    conversation(&mut Peer::connect(&origin, &options).await).await;
    let stranger =
        connect(&format!("wss://localhost:{}", address.port()), &self::options()).await.unwrap_err();
    assert!(matches!(&stranger, RemoteError::Http(error) if error.kind() == ErrorKind::Tls), "{stranger}");
}

#[tokio::test]
async fn servers_with_other_habits() {
    let rust = Habits { load_on_session: true, ..Habits::default() };
    let typescript = Habits { needs_header: true, ..Habits::default() };
    let python = Habits { unknown_session: 404, ..Habits::default() };
    let qwen = Habits { unknown_session: 403, knows_loaded: true, ..Habits::default() };
    for (name, habits) in [("rust", rust), ("typescript", typescript), ("python", python), ("qwen", qwen)] {
        for chunk in [0, 1, 7] {
            let server = Foreign::start(Habits { chunk, ..habits.clone() }).await;
            let options = options();
            let mut peer = Peer::connect(&server.url(), &options).await;
            peer.initialize().await;
            assert_eq!(options.transports.all()[0].1, Transport::StreamableHttp);
            let session = peer.new_session(1).await;
            assert_eq!(peer.prompt(2, &session).await, ["Größe 😀", "done"], "{name}");
            // HTTP-13: the history comes first, on whichever stream the response is.
            let expected: Vec<String> = (0..20).map(|number| format!("history {number}")).collect();
            assert_eq!(peer.load(3, "old").await, expected, "{name}");
            // HTTP-15, HTTP-24, HTTP-28
            for seen in server.seen().iter().skip(2) {
                assert_eq!(seen.header("acp-protocol-version"), Some("1"), "{name}");
                assert_eq!(
                    (seen.header("acp-connection-id"), seen.header("cookie")),
                    (Some("c1"), Some("route=a"))
                );
                if seen.body["method"].is_null() && seen.method == Method::POST {
                    assert_eq!(seen.header("acp-session-id"), Some(session.as_str()));
                }
            }
            drop(peer);
            // HTTP-22
            server.wait_for(|seen| seen.iter().any(|seen| seen.method == Method::DELETE)).await;
        }
    }
}

#[tokio::test]
async fn a_cancel_reaches_a_running_prompt() {
    let server = Foreign::start(Habits::default()).await;
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.initialize().await;
    let session = peer.new_session(1).await;
    peer.call(2, "session/prompt", json!({"sessionId": session})).await;
    peer.after_updates().await;
    peer.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})).await;
    let (_, answer) = peer.after_updates().await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    // HTTP-34
    peer.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 2}})).await;
    server.wait_for(|seen| seen.iter().any(|seen| seen.body["method"] == "$/cancel_request")).await;
    let seen = server.seen();
    let cancel = seen.iter().find(|seen| seen.body["method"] == "$/cancel_request").unwrap();
    assert_eq!(cancel.header("acp-session-id"), None);
}

/// The server may still give the answer to the reader that is gone.
#[tokio::test]
async fn a_request_waits_for_a_stream_that_broke() {
    let server = Foreign::start(Habits::default()).await;
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.initialize().await;
    let session = peer.new_session(1).await;
    peer.prompt(2, &session).await;
    for (key, id, method) in [(session.as_str(), 3, "session/prompt"), ("", 4, "session/new")] {
        let streams = |seen: &[Seen]| {
            let is_stream = |seen: &&Seen| {
                seen.method == Method::GET
                    && seen.header("upgrade").is_none()
                    && seen.header("acp-session-id").unwrap_or_default() == key
            };
            seen.iter().filter(is_stream).count()
        };
        assert_eq!(streams(&server.seen()), 1);
        // The first attempt to open it again fails, and shows that the client knows of the break.
        server.refuse("GET", 503, &[]);
        server.cut(key);
        server.wait_for(|seen| streams(seen) == 2).await;
        match method {
            "session/prompt" => drop(peer.prompt(id, &session).await),
            _ => drop(peer.new_session(id).await),
        }
        let seen = server.seen();
        let request = seen.iter().position(|seen| seen.body["id"] == id).unwrap();
        assert_eq!(streams(&seen[..request]), 3, "{method}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again_at_its_position() {
    let server = Foreign::start(Habits::default()).await;
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.initialize().await;
    let session = peer.new_session(1).await;
    peer.prompt(2, &session).await;
    for key in [session.as_str(), ""] {
        server.cut(key);
        let message =
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": "after the cut"}});
        server.emit(key, &message);
        assert_eq!(peer.next().await, message);
    }
    let seen = server.seen();
    let reopened: Vec<_> = seen.iter().filter(|seen| seen.header("last-event-id").is_some()).collect();
    assert_eq!(reopened.len(), 2);
    assert!(reopened.iter().all(|seen| seen.header("x-qwen-event-epoch") == Some("e1")));
    // The connection works as before.
    peer.prompt(3, &session).await;
}

#[tokio::test]
async fn a_refused_message_is_an_error_and_the_connection_lives() {
    let server = Foreign::start(Habits::default()).await;
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.initialize().await;
    let session = peer.new_session(1).await;
    for (status, expected) in
        [(413, "too large"), (409, "in use"), (400, "status 400"), (404, "does not know")]
    {
        // HTTP-30
        server.refuse("session/prompt", status, &[]);
        peer.call(2, "session/prompt", json!({"sessionId": session})).await;
        let answer = peer.next().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    // A request that is not well-formed has an answer too.
    server.refuse("_x", 400, &[]);
    peer.call(2, "_x", json!([1])).await;
    assert_eq!(peer.next().await["id"], 2);
    // A busy server is asked again.
    server.refuse("session/prompt", 429, &[("retry-after", "0")]);
    server.refuse("session/prompt", 503, &[("retry-after", "0")]);
    peer.prompt(3, &session).await;
    let prompts = server.seen().iter().filter(|seen| seen.body["id"] == 3).count();
    assert_eq!(prompts, 3);
}

#[tokio::test]
async fn the_end_of_a_connection_has_a_reason() {
    for (method, status, expected) in
        [("session/new", 401, "valid token"), ("session/new", 404, "closed the connection")]
    {
        let server = Foreign::start(Habits::default()).await;
        let mut peer = Peer::connect(&server.url(), &options()).await;
        peer.initialize().await;
        server.refuse(method, status, &[]);
        peer.call(1, method, json!({})).await;
        let error = peer.reader.next().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // The stream of the connection: the server has forgotten it.
    let server = Foreign::start(Habits::default()).await;
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.initialize().await;
    peer.new_session(1).await;
    // The other stream of the connection must not get the refusal.
    server.wait_for(|seen| seen.iter().any(|seen| seen.header("acp-session-id").is_some())).await;
    server.refuse("GET", 404, &[]);
    server.cut("");
    let error = peer.reader.next().await.unwrap_err().to_string();
    assert!(error.contains("closed the connection"), "{error}");
}

#[tokio::test]
async fn initialize_reports_what_is_wrong() {
    let server = Foreign::start(Habits::default()).await;
    server.refuse("initialize", 403, &[]);
    let mut peer = Peer::connect(&server.url(), &options()).await;
    peer.call(0, "initialize", json!({"protocolVersion": 1})).await;
    let message = peer.next().await["error"]["message"].to_string();
    assert!(message.contains("valid token"), "{message}");
    assert!(peer.reader.next().await.is_err());
    // HTTP-29: after an error of the agent the client may try again.
    let address = kit::serve(server::Options::default()).await;
    let options = options();
    options.transports.insert(format!("http://{address}"), Transport::StreamableHttp);
    let mut peer = Peer::connect(&format!("http://{address}"), &options).await;
    peer.call(0, "initialize", json!({"fail": true})).await;
    assert_eq!(peer.next().await["error"]["message"], "no");
    peer.initialize().await;
}

#[tokio::test]
async fn a_token_is_sent_and_never_shown() {
    let server = Foreign::start(Habits::default()).await;
    let mut options = options();
    options.token = Some("sesame".to_owned());
    let mut peer = Peer::connect(&server.url(), &options).await;
    peer.initialize().await;
    peer.new_session(1).await;
    assert!(server.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer sesame")));
    assert!(!format!("{options:?}").contains("sesame"));
}

#[tokio::test]
async fn connecting_reports_the_cause() {
    let busy = |seconds: Option<u64>| RemoteError::Busy {
        status: 503,
        retry_after: seconds.map(Duration::from_secs),
    };
    for (status, expected) in
        [(401, RemoteError::Login(401)), (503, busy(None)), (302, RemoteError::Refused(302))]
    {
        let server = Foreign::start(Habits { upgrade_status: status, ..Habits::default() }).await;
        assert_eq!(connect(&server.url(), &options()).await.unwrap_err(), expected);
        assert_eq!(server.seen().len(), 1);
    }
    let server = Foreign::start(Habits::default()).await;
    server.refuse("upgrade", 503, &[("retry-after", "7")]);
    assert_eq!(connect(&server.url(), &options()).await.unwrap_err(), busy(Some(7)));
    // shows WS-22: a redirect is not followed, though its target would do.
    let target = kit::serve(server::Options::default()).await;
    for scheme in ["http", "ws"] {
        let server = Foreign::start(Habits::default()).await;
        server.refuse("upgrade", 307, &[("location", &format!("http://{target}/acp"))]);
        let url = server.url().replace("http", scheme);
        assert_eq!(connect(&url, &options()).await.unwrap_err(), RemoteError::Refused(307));
    }
    // A WebSocket that is asked for by name has no fallback.
    let server = Foreign::start(Habits { upgrade_status: 404, ..Habits::default() }).await;
    let url = server.url().replace("http://", "ws://");
    assert_eq!(connect(&url, &options()).await.unwrap_err(), RemoteError::Refused(404));
    for url in ["ftp://host", "host", "wss://", ""] {
        assert!(connect(url, &options()).await.is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_starts_late_is_found() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut options = options();
    options.retry =
        Backoff { attempts: 50, first: Duration::from_millis(10), max: Duration::from_millis(100) };
    let url = format!("ws://{address}/acp");
    let connecting = tokio::spawn(async move { connect(&url, &options).await.is_ok() });
    let mut server = server::Server::bind(address, server::Options::default()).await.unwrap();
    server.accept().await.unwrap();
    assert!(connecting.await.unwrap());
}

/// The own pauses of the client would take longer than anybody waits.
#[tokio::test]
async fn a_busy_server_says_when_to_try_again() {
    // shows HTTP-42
    let past = "Thu, 01 Jan 1970 00:00:00 GMT";
    for (transport, attempt) in [(None, "upgrade"), (Some(Transport::StreamableHttp), "initialize")] {
        for retry_after in ["0", past] {
            let server = Foreign::start(Habits::default()).await;
            let hour = Duration::from_secs(3600);
            let retry = Backoff { attempts: 2, first: hour, max: hour };
            let options = Options { retry, transport, ..options() };
            for _ in 0..2 {
                server.refuse(attempt, 503, &[("retry-after", retry_after)]);
            }
            let mut peer = Peer::connect(&server.url(), &options).await;
            peer.initialize().await;
            peer.new_session(1).await;
        }
    }
}

/// A proxy that makes tunnels to one server, whatever their target, and the heads of its requests.
async fn proxy(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                seen.lock().push(String::from_utf8(head).unwrap());
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut server = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, heads)
}

#[tokio::test]
async fn every_request_goes_through_the_proxy() {
    const HOST: &str = "agents.example";
    let hosts = vec![HOST.to_owned()];
    let server = kit::serve(server::Options { hosts, ..server::Options::default() }).await;
    let through = async |transport| {
        let (address, heads) = proxy(server).await;
        let variable = |name: &str| (name == "HTTP_PROXY").then(|| format!("http://user:secret@{address}"));
        let client = HttpClient::new(None).unwrap().with_proxies(Proxies::from_vars(variable));
        let options = Options { client: Some(client), transport: Some(transport), ..Options::default() };
        conversation(&mut Peer::connect(&format!("http://{HOST}"), &options).await).await;
        let heads = heads.lock().clone();
        for head in &heads {
            assert!(head.starts_with(&format!("CONNECT {HOST}:80 HTTP/1.1\r\n")), "{head}");
            assert!(head.contains("proxy-authorization: Basic "), "{head}");
        }
        heads.len()
    };
    assert_eq!(through(Transport::WebSocket).await, 1);
    // The first request, the two lanes, and the streams of the connection and of two sessions.
    assert!(through(Transport::StreamableHttp).await >= 5);
}
