//! A server for one client under test, on a loopback port.
//!
//! It accepts what a client may send wrongly, so that the conversation goes on, and observes it.
//! Lines of the checker become frames, or events on the stream that they belong to.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::Observations;
use super::behaviour::{Behaviour, cut_at, is_fault};
use super::frames;
use super::request::ReceivedRequest;
use crate::transport::Transport;

/// The id of the only connection.
pub(super) const CONNECTION: &str = "attache-check-connection";
/// The cookie that a client must return.
pub(super) const COOKIE: &str = "attache-check=chip";

/// The target of redirects.
const REDIRECTED: &str = "/redirected";
/// The pause that a busy server asks for.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The pause between the pieces of an event.
const BETWEEN_PIECES: Duration = Duration::from_millis(100);
/// Streams of sessions that are refused.
const REFUSED_STREAMS: usize = 2;

/// Requests that open a session.
const OPENING: [&str; 3] = ["session/load", "session/resume", "session/fork"];

/// The number of messages between two tasks.
const QUEUE: usize = 64;

/// A listener for one conversation.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) observations: Observations,
    /// The lines of the client.
    pub(crate) reader: DuplexStream,
    /// The lines for the client.
    pub(crate) writer: DuplexStream,
    pub(crate) end: End,
}

/// Ends the lines of the client, when its program has exited.
#[derive(Clone)]
pub(crate) struct End(Arc<Shared>);

impl End {
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

pub(super) struct Shared {
    pub(super) transport: Transport,
    pub(super) behaviour: Behaviour,
    pub(super) observations: Observations,
    state: Mutex<State>,
    /// Wakes a prompt whose 202 is late.
    accepted: Notify,
}

#[derive(Default)]
struct State {
    /// The lines of the client; `None` after its end.
    to_checker: Option<mpsc::Sender<Vec<u8>>>,
    /// The messages of an open WebSocket.
    socket: Option<mpsc::Sender<Vec<u8>>>,
    /// Messages before there is a WebSocket.
    early: Vec<Vec<u8>>,
    /// Streams by session; `None` is that of the connection.
    streams: HashMap<Option<String>, Stream>,
    /// Open requests of the client: the text of the id, and the session.
    requests: HashMap<String, (String, Option<String>)>,
    /// Requests of the checker in a session, by the text of the id.
    asked: HashMap<String, String>,
    /// The POST of `initialize`, and the text of its id.
    initialize: Option<(String, oneshot::Sender<Vec<u8>>)>,
    is_initialized: bool,
    is_over: bool,
    /// Whether the next message of a session is one of every second.
    is_even: bool,
    /// When a prompt was refused.
    busy_since: Option<Instant>,
    /// Streams of sessions that were refused.
    refused_streams: usize,
}

/// A stream of events; messages wait until it is opened.
#[derive(Default)]
struct Stream {
    events: Option<mpsc::Sender<Vec<u8>>>,
    waiting: Vec<Vec<u8>>,
}

impl Listener {
    /// Listens on a free port. The tasks end with the checker's side.
    pub(crate) async fn bind(transport: Transport, behaviour: Behaviour) -> io::Result<Listener> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let observations = Observations::default();
        let (to_checker, mut from_client) = mpsc::channel::<Vec<u8>>(QUEUE);
        let state = Mutex::new(State { to_checker: Some(to_checker), ..State::default() });
        let (observed, accepted) = (observations.clone(), Notify::new());
        let shared = Arc::new(Shared { transport, behaviour, observations: observed, state, accepted });
        let (reader, mut lines_in) = tokio::io::duplex(64 << 10);
        let (writer, lines_out) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            while let Some(mut line) = from_client.recv().await {
                line.push(b'\n');
                if lines_in.write_all(&line).await.is_err() {
                    break;
                }
            }
        });
        let accepting = Arc::clone(&shared);
        let accepts = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&accepting);
                // A client may hang up at any time.
                tokio::spawn(async move { drop(shared.serve(stream).await) });
            }
        });
        let sending = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut lines = BufReader::new(lines_out).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                sending.send(line).await;
            }
            sending.hang_up();
            accepts.abort();
        });
        Ok(Listener { address, observations, reader, writer, end: End(shared) })
    }
}

impl Shared {
    /// Passes a message of the client on to the checker.
    pub(super) async fn received(&self, line: &[u8]) {
        let to_checker = self.state.lock().to_checker.clone();
        if let Some(to_checker) = to_checker {
            // JSON of several lines is one message all the same.
            let line = line.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
            // The checker may be done.
            let _ = to_checker.send(line).await;
        }
    }

    /// The client has left.
    pub(super) fn end(&self) {
        self.state.lock().to_checker = None;
    }

    /// The checker has nothing more to say.
    fn hang_up(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.streams.clear();
        state.initialize = None;
        // Without a sender the WebSocket is closed.
        state.socket = None;
        self.accepted.notify_one();
    }

    /// Sends a line of the checker.
    async fn send(&self, line: Vec<u8>) {
        if let Some((sender, message)) = self.route(line) {
            // A reader that is gone misses it.
            let _ = sender.send(message).await;
        }
    }

    /// Returns the open socket or stream for a line, with its bytes there. Other lines are kept, or
    /// are the answer to a POST.
    fn route(&self, line: Vec<u8>) -> Option<(mpsc::Sender<Vec<u8>>, Vec<u8>)> {
        let mut state = self.state.lock();
        if self.behaviour == Behaviour::Cut && is_fault(&line) {
            return self.cut(&mut state, line);
        }
        if self.behaviour == Behaviour::LateAccept && is_fault(&line) {
            self.accepted.notify_one();
            return None;
        }
        if self.transport == Transport::WebSocket {
            if let Some(socket) = &state.socket {
                return Some((socket.clone(), line));
            }
            state.early.push(line);
            return None;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let id = message["id"].to_string();
        let is_answer = message.get("method").is_none() && message.get("id").is_some();
        if is_answer && state.initialize.as_ref().is_some_and(|(waiting, _)| *waiting == id) {
            if let Some((_, post)) = state.initialize.take() {
                state.is_initialized = true;
                // The client may have hung up.
                let _ = post.send(line);
            }
            return None;
        }
        let session = match is_answer {
            true => state.requests.remove(&id).and_then(|(method, session)| match method.as_str() {
                "session/new" | "session/fork" => None,
                "session/load" if self.behaviour == Behaviour::LoadOnConnection => None,
                // The stream of a session that is not open yet has no reader.
                _ => session.filter(|session| {
                    state.streams.get(&Some(session.clone())).is_some_and(|stream| stream.events.is_some())
                }),
            }),
            false => message["params"]["sessionId"].as_str().map(str::to_owned),
        };
        let is_open = |session: &Option<String>| {
            state.streams.get(session).is_some_and(|stream| stream.events.is_some())
        };
        let session = match self.behaviour {
            // A server that does not know the session yet.
            Behaviour::RefusedStream => session.filter(|session| is_open(&Some(session.clone()))),
            Behaviour::OtherSession if session.is_some() && !is_open(&session) => {
                state.streams.keys().find(|known| known.is_some() && is_open(known)).cloned().flatten()
            }
            _ => session,
        };
        let is_alternating = self.behaviour == Behaviour::EitherStream && !is_answer && session.is_some();
        let session = session.filter(|_| !(is_alternating && state.is_even));
        state.is_even ^= is_alternating;
        // A request on the stream of the connection does not belong to a session by its stream.
        if let (false, Some(session), true) = (is_answer, &session, message.get("id").is_some()) {
            state.asked.insert(id, session.clone());
        }
        let event = self.event(&line);
        let stream = state.streams.entry(session).or_default();
        match &stream.events {
            Some(events) if !events.is_closed() => return Some((events.clone(), event)),
            _ => stream.waiting.push(event),
        }
        None
    }

    /// Ends all streams, or the WebSocket, which gets a part of the line before.
    fn cut(&self, state: &mut State, line: Vec<u8>) -> Option<(mpsc::Sender<Vec<u8>>, Vec<u8>)> {
        // Frames are cut where they are written.
        if self.transport == Transport::WebSocket {
            return Some((state.socket.take()?, line));
        }
        // The client may begin again.
        state.is_initialized = false;
        let mut event = self.event(&line);
        event.truncate(cut_at(&line, event.len()));
        let streams = state.streams.iter_mut();
        let mut open: Vec<_> =
            streams.filter_map(|(of, stream)| Some((of.is_some(), stream.events.take()?))).collect();
        open.sort_by_key(|(is_session, _)| *is_session);
        open.pop().map(|(_, events)| (events, event))
    }

    /// The bytes of an event.
    fn event(&self, line: &[u8]) -> Vec<u8> {
        if self.behaviour != Behaviour::OddEvents {
            return [b"data: ", line, b"\n\n"].concat();
        }
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let pretty = serde_json::to_string_pretty(&message).unwrap_or_default();
        let data: String = pretty.lines().map(|line| format!("data: {line}\r\n")).collect();
        format!(": a comment\r\n\r\nevent: message\r\nid: 1\r\n{data}\r\n").into_bytes()
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        let mut input = Vec::new();
        while let Some(request) = ReceivedRequest::read(&mut stream, &mut input).await? {
            if request.header("upgrade").is_some_and(|name| name.eq_ignore_ascii_case("websocket")) {
                if self.behaviour == Behaviour::Redirect {
                    if request.path != REDIRECTED {
                        let location =
                            format!("http://{}{REDIRECTED}", request.header("host").unwrap_or_default());
                        let headers = [("location", location.as_str()), ("connection", "close")];
                        return respond(&mut stream, "307 Temporary Redirect", &headers, b"").await;
                    }
                    let why = "the client follows the redirect of an upgrade, with its token if it has one";
                    self.observations.add("WS-22", false, &request.shown(), why);
                }
                if self.transport == Transport::WebSocket {
                    return self.upgrade(request, stream, input).await;
                }
                respond(&mut stream, "426 Upgrade Required", &[], b"").await?;
            } else if self.transport == Transport::WebSocket {
                respond(&mut stream, "404 Not Found", &[], b"").await?;
            } else {
                match request.method.as_str() {
                    "POST" => self.post(&request, &mut stream).await?,
                    "GET" => return self.stream(&request, stream).await,
                    "DELETE" => {
                        self.observe_headers(&request, "a DELETE");
                        respond(&mut stream, "202 Accepted", &[], b"").await?;
                        self.end();
                    }
                    _ => respond(&mut stream, "405 Method Not Allowed", &[], b"").await?,
                }
            }
        }
        Ok(())
    }

    /// Judges the headers that every request after `initialize` has.
    // HTTP-14, HTTP-24, HTTP-28
    fn observe_headers(&self, request: &ReceivedRequest, what: &str) {
        let see = |rule, kept, why: String| self.observations.add(rule, kept, &request.shown(), why);
        let has_id = request.header("acp-connection-id") == Some(CONNECTION);
        see("HTTP-14", has_id, format!("{what} has no Acp-Connection-Id"));
        let has_cookie = request.header("cookie").is_some_and(|cookies| cookies.contains(COOKIE));
        see("HTTP-24", has_cookie, format!("{what} does not return the cookie of the server"));
        let has_version = request.header("acp-protocol-version").is_some();
        see("HTTP-28", has_version, format!("{what} has no Acp-Protocol-Version"));
    }

    async fn post(&self, request: &ReceivedRequest, stream: &mut TcpStream) -> io::Result<()> {
        let shown = request.shown();
        let see = |rule, kept, why: &str| self.observations.add(rule, kept, &shown, why);
        let media = request.header("content-type").and_then(|value| value.split(';').next());
        let is_json = media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"));
        see("HTTP-17", is_json, "a POST is not application/json");
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (method, id) = (message["method"].as_str(), message["id"].to_string());
        let is_first = !self.state.lock().is_initialized && method == Some("initialize");
        if is_first {
            let has_id = request.header("acp-connection-id").is_some();
            see("HTTP-05", !has_id, "the first initialize has an Acp-Connection-Id");
            let (post, answer) = oneshot::channel();
            self.state.lock().initialize = Some((id, post));
            self.received(&request.body).await;
            let Ok(answer) = answer.await else {
                return respond(stream, "503 Service Unavailable", &[], b"").await;
            };
            let headers = [
                ("content-type", "application/json"),
                ("acp-connection-id", CONNECTION),
                ("set-cookie", &format!("{COOKIE}; Path=/; HttpOnly")),
            ];
            return respond(stream, "200 OK", &headers, &answer).await;
        }
        self.observe_headers(request, "a POST");
        // HTTP-15: also an answer belongs to the session of its request.
        let session = match method {
            Some(_) => message["params"]["sessionId"].as_str().map(str::to_owned),
            None => self.state.lock().asked.remove(&id),
        };
        // The SDKs differ about requests that open a session, and the RFD does not name them.
        let is_exempt = |method: &str| method.starts_with('$') || OPENING.contains(&method);
        if let Some(session) = &session
            && !method.is_some_and(is_exempt)
        {
            let is_named = request.header("acp-session-id") == Some(session.as_str());
            see("HTTP-15", is_named, "a POST about a session has no Acp-Session-Id");
        }
        let is_prompt = method == Some("session/prompt");
        if self.behaviour == Behaviour::Busy && is_prompt {
            let earlier = self.state.lock().busy_since.replace(Instant::now());
            let Some(earlier) = earlier else {
                let after = RETRY_AFTER.as_secs().to_string();
                return respond(stream, "429 Too Many Requests", &[("retry-after", &after)], b"").await;
            };
            let why = "the client sends a message again before the time in Retry-After";
            see("HTTP-42", earlier.elapsed() >= RETRY_AFTER, why);
        }
        if let Some(method) = method
            && message.get("id").is_some()
        {
            self.state.lock().requests.insert(id, (method.to_owned(), session));
        }
        if self.behaviour == Behaviour::LateAccept && is_prompt {
            self.received(&request.body).await;
            self.accepted.notified().await;
            return respond(stream, "202 Accepted", &[], b"").await;
        }
        // The 202 comes first, as from any server.
        respond(stream, "202 Accepted", &[], b"").await?;
        self.received(&request.body).await;
        Ok(())
    }

    async fn stream(&self, request: &ReceivedRequest, mut stream: TcpStream) -> io::Result<()> {
        self.observe_headers(request, "a GET");
        let accepts = request.header("accept").is_some_and(|accept| accept.contains("text/event-stream"));
        let why = "a GET does not accept text/event-stream";
        self.observations.add("HTTP-18", accepts, &request.shown(), why);
        let session = request.header("acp-session-id").map(str::to_owned);
        let (sender, mut events) = mpsc::channel(QUEUE);
        let waiting = {
            let mut state = self.state.lock();
            if state.is_over {
                return Ok(());
            }
            if self.behaviour == Behaviour::RefusedStream
                && session.is_some()
                && state.refused_streams < REFUSED_STREAMS
            {
                state.refused_streams += 1;
                None
            } else {
                let entry = state.streams.entry(session).or_default();
                // The newest reader wins.
                entry.events = Some(sender);
                Some(std::mem::take(&mut entry.waiting))
            }
        };
        let Some(waiting) = waiting else {
            return respond(&mut stream, "404 Not Found", &[("connection", "close")], b"").await;
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n";
        stream.write_all(&[head.as_bytes(), &waiting.concat()].concat()).await?;
        let mut left = [0; 16];
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.write_event(&mut stream, &event).await?,
                    None => return Ok(()),
                },
                read = stream.read(&mut left) => if read? == 0 {
                    return Ok(());
                },
            }
        }
    }

    async fn write_event(&self, stream: &mut TcpStream, event: &[u8]) -> io::Result<()> {
        let inner = event.iter().position(|byte| !byte.is_ascii()).map_or(event.len(), |first| first + 1);
        if self.behaviour != Behaviour::Pieces || inner == event.len() {
            return stream.write_all(event).await;
        }
        let (one, two) = event.split_at(inner);
        stream.write_all(one).await?;
        // So that no reader gets both at once.
        tokio::time::sleep(BETWEEN_PIECES).await;
        stream.write_all(two).await
    }

    async fn upgrade(
        &self,
        request: ReceivedRequest,
        mut stream: TcpStream,
        input: Vec<u8>,
    ) -> io::Result<()> {
        let key = request.header("sec-websocket-key").unwrap_or_default();
        let is_valid = request.header("sec-websocket-version") == Some("13")
            && key.len() == 24
            && request
                .header("connection")
                .is_some_and(|value| value.to_ascii_lowercase().contains("upgrade"));
        let why = "the upgrade has no version 13, no key of 16 bytes or no `Connection: Upgrade`";
        self.observations.add("WS-01", is_valid, &request.shown(), why);
        let accept = attache_http::ws::accept_key(key);
        let headers = [
            ("upgrade", "websocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-accept", &*accept),
            ("acp-connection-id", CONNECTION),
            ("set-cookie", &format!("{COOKIE}; Path=/; HttpOnly")),
        ];
        let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        stream.write_all(format!("HTTP/1.1 101 Switching Protocols\r\n{head}\r\n").as_bytes()).await?;
        let (sender, outgoing) = mpsc::channel(QUEUE);
        let early = {
            let mut state = self.state.lock();
            // After the checker's end the socket is closed at once.
            state.socket = (!state.is_over).then_some(sender);
            std::mem::take(&mut state.early)
        };
        let carried = frames::carry(self, stream, input, early, outgoing).await;
        // A client that was cut off may come again.
        if self.behaviour != Behaviour::Cut {
            self.end();
        }
        carried
    }
}

async fn respond(
    stream: &mut TcpStream,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str("\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).await
}
