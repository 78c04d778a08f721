//! A scripted agent behind a server, and a bare HTTP client.

use attache_conn::rpc::ErrorObject;
use attache_conn::{
    Dispatch, Flow, FrameReader, FrameWriter, IncomingNotification, IncomingRequest, Limits, Link, Side,
};
use attache_http::server::{Options, Server};
use attache_http::ws::{self, Role, Settings};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Starts a server whose clients get a scripted agent each.
pub(crate) async fn serve(options: Options) -> SocketAddr {
    let mut server = Server::bind("127.0.0.1:0", options).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(async move {
        while let Ok(client) = server.accept().await {
            tokio::spawn(agent(client.link));
        }
    });
    address
}

/// Starts a server whose clients get a connection each, which answers `initialize` and refuses
/// every other request.
pub(crate) async fn serve_connections(options: Options) -> SocketAddr {
    struct Refuse;

    impl Dispatch for Refuse {
        fn request(&mut self, request: IncomingRequest<'_>) {
            if request.method() != "initialize" {
                let error = ErrorObject::method_not_found(request.method());
                return request.reject(error);
            }
            if let Some((_, responder)) = request.open() {
                responder.ok(&json!({"protocolVersion": 1}));
            }
        }

        fn notification(&mut self, _: IncomingNotification<'_>) {}
    }

    let mut server = Server::bind("127.0.0.1:0", options).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(async move {
        while let Ok(client) = server.accept().await {
            tokio::spawn(attache_conn::open(client.link, Limits::default(), Side::Agent, |_| Refuse).1);
        }
    });
    address
}

/// Notifications that some clients send to keep their connection alive, or that a later protocol
/// may have.
pub(crate) fn keep_alives() -> [Value; 3] {
    [
        json!({"method": "$/ping"}),
        json!({"jsonrpc": "2.0", "method": "$/ping"}),
        json!({"jsonrpc": "2.0", "method": "$/later", "params": {"sessionId": "s"}}),
    ]
}

/// An agent: `session/prompt` asks for a permission and sends `count` updates, `session/load`
/// replays three.
async fn agent(mut link: Link) {
    let mut tap = link.take_tap();
    let mut count = |flow, line: &[u8]| tap.iter_mut().for_each(|tap| tap(flow, line));
    let (mut reader, mut writer) = link.split();
    let mut sessions = 0;
    let update = |session: &Value, text: String| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": text}});
    while let Ok(Some(line)) = reader.next().await {
        count(Flow::In, line);
        let message: Value = serde_json::from_slice(line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        let session = &params["sessionId"];
        let mut lines: Vec<Value> = Vec::new();
        let result = match message["method"].as_str() {
            Some("initialize") if params["fail"] == true => {
                lines.push(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no"}}));
                Value::Null
            }
            Some("initialize") => json!({"protocolVersion": 1}),
            Some("session/unknown") => {
                lines.push(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}));
                Value::Null
            }
            Some("session/new" | "session/fork") => {
                sessions += 1;
                json!({"sessionId": format!("s{sessions}")})
            }
            Some("session/load") => {
                lines.extend((0..3).map(|number| update(session, format!("history {number}"))));
                json!({})
            }
            Some("session/prompt") => {
                let ask = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission",
                    "params": {"sessionId": session}});
                writer.send(ask.to_string().as_bytes()).await.unwrap();
                let answer: Value = serde_json::from_slice(reader.next().await.unwrap().unwrap()).unwrap();
                assert_eq!(answer["id"], *id);
                let count = params["count"].as_u64().unwrap_or(1);
                lines.extend((0..count).map(|number| update(session, format!("ä {number}"))));
                json!({"stopReason": "end_turn"})
            }
            Some("flood") => {
                // Until the client has left.
                let line = update(session, "x".repeat(1000)).to_string();
                while writer.send(line.as_bytes()).await.is_ok() {}
                return;
            }
            _ => continue,
        };
        if !result.is_null() {
            lines.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
        for line in lines {
            count(Flow::Out, line.to_string().as_bytes());
            writer.feed(line.to_string().as_bytes());
        }
        if writer.flush().await.is_err() {
            return;
        }
    }
}

/// A response whose body can be read piece by piece.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    text: String,
}

impl Reply {
    /// Returns the rest of the body.
    pub(crate) async fn text(self) -> String {
        let rest = self.body.collect().await.unwrap().to_bytes();
        self.text + std::str::from_utf8(&rest).unwrap()
    }

    /// Returns the next piece of the body, or `None` at the end.
    pub(crate) async fn piece(&mut self) -> Option<Bytes> {
        Some(self.body.frame().await?.unwrap().into_data().unwrap())
    }

    /// Returns the next event, or `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.strip_prefix("data: ").map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let data = self.piece().await?;
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}

/// A client that opens a socket for each request.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) http2: bool,
}

impl Http {
    pub(crate) fn new(address: SocketAddr) -> Http {
        Http { address, headers: Vec::new(), http2: false }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Http {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Reply {
        let stream = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        let uri = match self.http2 {
            true => format!("http://{}{path}", self.address),
            false => path.to_owned(),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if !self.http2 && !self.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = if self.http2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        };
        let (head, body) = response.into_parts();
        Reply { status: head.status, headers: head.headers, body, text: String::new() }
    }

    pub(crate) async fn post(&self, message: Value) -> Reply {
        self.with("content-type", "application/json").send(Method::POST, "/acp", message.to_string()).await
    }

    /// Posts a message that is accepted.
    pub(crate) async fn accept(&self, message: Value) {
        let reply = self.post(message).await;
        assert_eq!((reply.status, reply.text().await.as_str()), (StatusCode::ACCEPTED, ""));
    }

    /// Posts `initialize` and returns a client that names its connection.
    pub(crate) async fn initialize(&self) -> Http {
        let reply = self.post(request(0, "initialize", json!({"protocolVersion": 1}))).await;
        assert_eq!(
            (reply.status, &reply.headers["content-type"]),
            (StatusCode::OK, &"application/json".parse().unwrap())
        );
        let id = reply.headers["acp-connection-id"].to_str().unwrap().to_owned();
        let answer: Value = serde_json::from_str(&reply.text().await).unwrap();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}));
        self.with("acp-connection-id", &id)
    }

    pub(crate) async fn open(&self, session: Option<&str>) -> Reply {
        let client = match session {
            Some(session) => self.with("acp-session-id", session),
            None => self.clone(),
        };
        let reply = client.with("accept", "text/event-stream").send(Method::GET, "/acp", "").await;
        if reply.status == StatusCode::OK {
            assert_eq!(reply.headers["content-type"], "text/event-stream");
        }
        reply
    }
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Opens a WebSocket. Returns the link and the headers of the response.
pub(crate) async fn upgrade(
    address: SocketAddr,
    headers: &[(&str, &str)],
) -> Result<(FrameReader, FrameWriter, HeaderMap), StatusCode> {
    let (socket, headers) = upgrade_socket(address, headers).await?;
    let (reader, writer) = ws::link(socket, Role::Client, Settings::default(), Vec::new()).split();
    Ok((reader, writer, headers))
}

/// Opens a WebSocket. Returns the socket and the headers of the response.
pub(crate) async fn upgrade_socket(
    address: SocketAddr,
    headers: &[(&str, &str)],
) -> Result<(TokioIo<Upgraded>, HeaderMap), StatusCode> {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let key = ws::random_key().unwrap();
    let request = Request::get("/acp")
        .header("host", address.to_string())
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", &key);
    let mut request = request.body(Full::<Bytes>::default()).unwrap();
    for (name, value) in headers {
        let name = hyper::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let response = sender.send_request(request).await.unwrap();
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(response.status());
    }
    assert_eq!(response.headers()["sec-websocket-accept"], ws::accept_key(&key));
    let headers = response.headers().clone();
    Ok((TokioIo::new(hyper::upgrade::on(response).await.unwrap()), headers))
}
