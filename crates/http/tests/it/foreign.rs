//! A server with the habits of other implementations, and its scripted agent.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// Chunks of a stream that wait for their reader.
const CHUNKS: usize = 100_000;

/// Habits of a server.
#[derive(Clone, Default)]
pub(crate) struct Habits {
    /// The response to an upgrade; 0 means 426.
    pub(crate) upgrade_status: u16,
    /// The status of a stream for a session that no result has named yet; 0 means 200.
    pub(crate) unknown_session: u16,
    /// Whether a loaded session becomes known.
    pub(crate) knows_loaded: bool,
    /// Whether the response to `session/load` comes on the session's stream.
    pub(crate) load_on_session: bool,
    /// Whether every message and answer of a session needs `Acp-Session-Id`.
    pub(crate) needs_header: bool,
    /// Whether a session is known to the connection that created it and to no other, and events
    /// have no ids, as in the Python SDK.
    pub(crate) forgets_sessions: bool,
    /// Whether the stream of the connection ends at once.
    pub(crate) ends_stream: bool,
    /// Bytes per chunk of a stream; 0 for whole events.
    pub(crate) chunk: usize,
}

/// A request that the server has received.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct State {
    habits: Habits,
    seen: Vec<Seen>,
    /// Streams by session; the empty one is the connection's.
    streams: HashMap<String, Stream>,
    known: HashSet<String>,
    sessions: u32,
    /// The open prompt and its session.
    prompt: Option<(Value, String)>,
    /// Responses to the next requests of these methods, instead of the usual one.
    refusals: Vec<Refusal>,
    events: u64,
    connections: u32,
    is_deleted: bool,
}

struct Refusal {
    method: String,
    status: u16,
    headers: Vec<(&'static str, String)>,
}

#[derive(Default)]
struct Stream {
    reader: Option<mpsc::Sender<Bytes>>,
    waiting: Vec<Bytes>,
}

#[derive(Clone)]
pub(crate) struct Foreign {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    changes: Arc<watch::Sender<()>>,
}

impl Foreign {
    pub(crate) async fn start(habits: Habits) -> Foreign {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(Mutex::new(State { habits, ..State::default() }));
        let changes = Arc::new(watch::Sender::new(()));
        let server = Foreign { address: listener.local_addr().unwrap(), state, changes };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let server = accepting.clone();
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(|request| {
                        let server = server.clone();
                        async move { Ok::<_, Infallible>(server.answer(request).await) }
                    });
                    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/acp", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().seen.clone()
    }

    /// Waits until the requests so far satisfy a condition.
    pub(crate) async fn wait_for(&self, condition: impl Fn(&[Seen]) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(&self.state.lock().seen) {
            changes.changed().await.unwrap();
        }
    }

    /// Responds to the next request with this JSON-RPC or HTTP method, or the next `upgrade`, with
    /// a status.
    pub(crate) fn refuse(&self, method: &str, status: u16, headers: &[(&'static str, &str)]) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.state.lock().refusals.push(Refusal { method: method.to_owned(), status, headers });
    }

    /// Ends a stream; later messages wait for the next one.
    pub(crate) fn cut(&self, session: &str) {
        if let Some(stream) = self.state.lock().streams.get_mut(session) {
            stream.reader = None;
        }
    }

    /// Sends a message on a stream.
    pub(crate) fn emit(&self, session: &str, message: &Value) {
        self.state.lock().emit(session, message);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Either<Full<Bytes>, Events>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let seen = Seen { method: head.method, headers: head.headers, body };
        let mut state = self.state.lock();
        state.seen.push(seen.clone());
        let response = state.answer(&seen);
        drop(state);
        self.changes.send_replace(());
        response
    }
}

fn reply(status: u16, body: impl Into<Bytes>) -> Response<Either<Full<Bytes>, Events>> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

impl State {
    fn answer(&mut self, seen: &Seen) -> Response<Either<Full<Bytes>, Events>> {
        let rpc = seen.body["method"].as_str().unwrap_or_default().to_owned();
        let is_upgrade = seen.header("upgrade").is_some();
        let refusal = self.refusals.iter().position(|refusal| {
            refusal.method == rpc
                || refusal.method == if is_upgrade { "upgrade" } else { seen.method.as_str() }
        });
        if let Some(at) = refusal {
            let Refusal { status, headers, .. } = self.refusals.remove(at);
            let mut response = reply(status, "");
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            return response;
        }
        if is_upgrade {
            return reply(if self.habits.upgrade_status == 0 { 426 } else { self.habits.upgrade_status }, "");
        }
        if rpc == "initialize" {
            self.connections += 1;
            let mut result = json!({"protocolVersion": 1});
            if self.habits.forgets_sessions {
                result["agentCapabilities"] = json!({"loadSession": true});
                self.known.clear();
                self.streams.clear();
            }
            // The client may have deleted the connection before.
            self.is_deleted = false;
            let result = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            let mut response = reply(200, result.to_string());
            response.headers_mut().insert("acp-connection-id", self.connection().parse().unwrap());
            response.headers_mut().append("set-cookie", "route=a; Path=/".parse().unwrap());
            return response;
        }
        if seen.header("acp-connection-id") != Some(&self.connection()) || self.is_deleted {
            return reply(404, "");
        }
        let session = seen.header("acp-session-id").unwrap_or_default().to_owned();
        match seen.method {
            Method::GET => self.open(&session),
            Method::DELETE => {
                self.is_deleted = true;
                self.streams.clear();
                reply(202, "")
            }
            _ => {
                let names_session = seen.body["params"]["sessionId"].is_string() || rpc.is_empty();
                let needs_header = self.habits.needs_header && names_session
                    || self.habits.forgets_sessions && rpc == "session/prompt";
                if needs_header && session.is_empty() {
                    return reply(400, "");
                }
                if self.habits.forgets_sessions && !session.is_empty() && !self.known.contains(&session) {
                    // A client that leaves the body unread cannot use the socket again.
                    return reply(404, r#"{"error": "Unknown session id"}"#);
                }
                self.run(&rpc, &seen.body);
                reply(202, "")
            }
        }
    }

    /// The id of the newest connection.
    fn connection(&self) -> String {
        match self.habits.forgets_sessions {
            true => format!("1c54fa72682649408af4b2dce{:07x}", self.connections),
            false => "c1".to_owned(),
        }
    }

    fn open(&mut self, session: &str) -> Response<Either<Full<Bytes>, Events>> {
        let unknown = self.habits.unknown_session;
        if unknown != 0 && !session.is_empty() && !self.known.contains(session) {
            return reply(unknown, "");
        }
        let (sender, receiver) = mpsc::channel(CHUNKS);
        let stream = self.streams.entry(session.to_owned()).or_default();
        for event in stream.waiting.drain(..) {
            sender.try_send(event).unwrap();
        }
        stream.reader = Some(sender).filter(|_| !self.habits.ends_stream || !session.is_empty());
        let mut response = Response::new(Either::Right(Events(receiver)));
        response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
        response.headers_mut().insert("x-qwen-event-epoch", "e1".parse().unwrap());
        response
    }

    fn emit(&mut self, session: &str, message: &Value) {
        self.events += 1;
        let session = match self.habits.unknown_session {
            0 => session,
            _ if self.known.contains(session) => session,
            _ => "",
        };
        let text = match self.habits.forgets_sessions {
            true => format!("data: {message}\n\n"),
            false => format!(": hb\n\nid: {}\ndata: {message}\n\n", self.events),
        };
        let size = if self.habits.chunk == 0 { text.len() } else { self.habits.chunk };
        let stream = self.streams.entry(session.to_owned()).or_default();
        for piece in text.as_bytes().chunks(size) {
            let piece = Bytes::copy_from_slice(piece);
            match &stream.reader {
                Some(reader) if reader.try_send(piece.clone()).is_ok() => {}
                _ => stream.waiting.push(piece),
            }
        }
    }

    fn update(&mut self, session: &str, text: &str) {
        let params = json!({"sessionId": session, "update": text});
        self.emit(session, &json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// The agent: a prompt asks for a permission, and `session/load` replays twenty updates.
    fn run(&mut self, method: &str, message: &Value) {
        let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        match method {
            "session/new" => {
                self.sessions += 1;
                let id = format!("s{}", self.sessions);
                self.emit("", &result(json!({"sessionId": id})));
                self.known.insert(id);
            }
            "session/load" => {
                if self.habits.knows_loaded {
                    self.known.insert(session.clone());
                }
                let response = result(json!({}));
                // On another stream the response may overtake the history.
                let has_stream = self.habits.unknown_session == 0 || self.known.contains(&session);
                let overtakes = has_stream && !self.habits.load_on_session;
                if overtakes {
                    self.emit("", &response);
                }
                for number in 0..20 {
                    self.update(&session, &format!("history {number}"));
                }
                if !overtakes {
                    self.emit(&session, &response);
                }
            }
            "session/prompt" => {
                self.update(&session, "Größe 😀");
                self.prompt = Some((message["id"].clone(), session.clone()));
                let params = json!({"sessionId": session});
                let ask = json!({"jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params});
                self.emit(&session, &ask);
            }
            "session/cancel" => self.end_prompt("cancelled"),
            "" if message["id"] == "p" => self.end_prompt("end_turn"),
            _ => {}
        }
    }

    fn end_prompt(&mut self, reason: &str) {
        if let Some((id, session)) = self.prompt.take() {
            self.update(&session, "done");
            let result = json!({"stopReason": reason});
            self.emit(&session, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
    }
}

/// The body of a stream.
pub(crate) struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}
