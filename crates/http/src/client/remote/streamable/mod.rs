//! Streamable HTTP: each message is a POST, and answers arrive as server-sent events.
//!
//! One task reads the lines of the link ([`run`]) and hands them to two lanes (`post.rs`): requests
//! and notifications in order, and responses, which never wait for a request. Each stream of events
//! has a task (`stream.rs`): one for the connection, one for each session. All tasks end with the
//! link.

mod message;
mod post;
mod session;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use attache_conn::rpc::Id;
use attache_conn::{FrameReader, FrameWriter, Link};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio::task::JoinSet;

use super::super::{Channel, Request};
use super::{Endpoint, RemoteError};
use message::{Message, Method};
use session::{MAX_OPENING, Session};

/// Streams of closed sessions that are kept.
const MAX_CLOSED: usize = 32;
/// Time for the last request of a connection.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a connection, shared by its tasks.
struct Connection {
    endpoint: Endpoint,
    /// Cloned for each lane and stream; HTTP/2 is one connection for all.
    channel: Channel,
    /// The headers that `initialize` brought: connection id and protocol version.
    identity: Mutex<Option<Identity>>,
    /// A new connection continues where this one is cut: the agent is a hub.
    resumes: AtomicBool,
    writer: AsyncMutex<FrameWriter>,
    state: Mutex<State>,
    /// `None` after the end.
    tasks: Mutex<Option<JoinSet<()>>>,
    /// The stream of the connection.
    listening: watch::Sender<Listening>,
    end: Arc<End>,
}

/// The state of the stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listening {
    /// It was not open yet.
    No,
    Yes,
    Broken,
}

#[derive(Clone)]
struct Identity {
    connection: String,
    version: Option<u64>,
}

#[derive(Default)]
struct State {
    /// Requests of the client without a response.
    sent: HashMap<Id, SentRequest>,
    /// Sessions of the agent's requests without a response. The link bounds their number.
    received: HashMap<Id, String>,
    sessions: HashMap<String, Arc<Session>>,
    /// Closed sessions whose streams are still open, oldest first.
    closed: VecDeque<String>,
}

/// A request of the client.
struct SentRequest {
    method: Method,
    session: Option<String>,
}

/// The reason for the end of a connection.
#[derive(Default)]
struct End {
    reason: Mutex<Option<RemoteError>>,
    changed: Notify,
}

/// Returns a link whose lines are posted to the endpoint.
pub(super) fn link(endpoint: Endpoint) -> Link {
    let end = Arc::new(End::default());
    let (near, far) = super::memory::links({
        let end = Arc::clone(&end);
        move || end.reason.lock().clone().map(io::Error::from)
    });
    let (lines, writer) = far.split();
    let connection = Arc::new(Connection {
        channel: Channel::new(&endpoint.client, endpoint.version),
        endpoint,
        identity: Mutex::new(None),
        resumes: false.into(),
        writer: AsyncMutex::new(writer),
        state: Mutex::default(),
        tasks: Mutex::new(Some(JoinSet::new())),
        listening: watch::Sender::new(Listening::No),
        end,
    });
    tokio::spawn(run(connection, lines));
    near
}

/// Runs a connection until its link is dropped or it fails.
async fn run(connection: Arc<Connection>, mut lines: FrameReader) {
    let mut lanes = post::Lanes::start(&connection);
    let mut first = connection.channel.clone();
    let ended = connection.end.wait();
    let mut ended = std::pin::pin!(ended);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = &mut ended => break,
        };
        let line = match line {
            Ok(Some(line)) => line.to_vec(),
            // The link is dropped or closed.
            Ok(None) => break,
            Err(error) => {
                connection.fail(RemoteError::Protocol(error.to_string()));
                break;
            }
        };
        let message = Message::outgoing(&line);
        let work = async {
            match connection.identity() {
                None => post::initialize(&connection, &mut first, line, message).await,
                Some(_) => lanes.push(line, message).await,
            }
        };
        tokio::select! {
            () = work => {}
            () = &mut ended => break,
        }
    }
    lanes.finish().await;
    connection.delete(first).await;
    // The tasks hold the connection, and so the writer, until they are dropped.
    let tasks = connection.tasks.lock().take();
    if let Some(mut tasks) = tasks {
        tasks.shutdown().await;
    }
}

impl Connection {
    /// Whether the server keeps the reader of a stream that was cut, which then takes every second
    /// message of the stream that is opened in its place.
    ///
    /// The server of the Python SDK does: its ASGI adapter never receives the disconnect. It is
    /// known by its connection ids, random UUIDs without dashes.
    fn keeps_abandoned_readers(&self) -> bool {
        self.identity().is_some_and(|identity| {
            let id = identity.connection.as_bytes();
            let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            id.len() == 32
                && id.iter().all(is_hex)
                && id.get(12) == Some(&b'4')
                && matches!(id.get(16), Some(b'8' | b'9' | b'a' | b'b'))
        })
    }

    fn identity(&self) -> Option<Identity> {
        self.identity.lock().clone()
    }

    /// Ends the connection for a reason.
    fn fail(&self, reason: RemoteError) {
        tracing::debug!(%reason, "the remote connection ends");
        self.end.reason.lock().get_or_insert(reason);
        self.end.changed.notify_waiters();
    }

    /// Adds the headers of the connection to a request.
    // HTTP-14, HTTP-28
    fn identify(&self, request: Request) -> Request {
        let Some(identity) = self.identity() else { return request };
        let request = request.header("acp-connection-id", identity.connection);
        match identity.version {
            Some(version) => request.header("acp-protocol-version", version.to_string()),
            None => request,
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = &mut *self.tasks.lock() {
            // Finished tasks are removed here, because nothing else waits for them.
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// Passes lines on to the client, in order.
    async fn write(&self, lines: &[Vec<u8>]) {
        if lines.is_empty() {
            return;
        }
        let mut writer = self.writer.lock().await;
        for line in lines {
            writer.feed(line);
        }
        if writer.flush().await.is_err() {
            // The link was dropped, which `run` sees as well.
            self.end.changed.notify_waiters();
        }
    }

    /// Handles a message of the server. Returns it if it is to be passed on at once.
    fn receive(self: &Arc<Self>, line: Vec<u8>, stream: Option<&Arc<Session>>) -> Option<Vec<u8>> {
        match Message::incoming(&line) {
            // HTTP-15: the answer has to name the session.
            Message::Request { id, session, .. } => {
                let session = session.or_else(|| stream.map(|session| session.id.clone()));
                if let Some(session) = session {
                    self.state.lock().received.insert(id, session);
                }
            }
            Message::Response { id, session, is_error } => {
                let sent = self.state.lock().sent.remove(&id);
                return self.receive_response(line, stream, sent?, session, is_error);
            }
            Message::Notification { .. } | Message::Invalid => {}
        }
        Some(line)
    }

    fn receive_response(
        self: &Arc<Self>,
        line: Vec<u8>,
        stream: Option<&Arc<Session>>,
        sent: SentRequest,
        named: Option<String>,
        is_error: bool,
    ) -> Option<Vec<u8>> {
        match (sent.method, is_error) {
            (Method::CreateSession, false) => {
                if let Some(id) = named {
                    session::start(self, &id).retry.notify_one();
                }
            }
            (Method::OpenSession, false) => {
                let id = named.or(sent.session)?;
                let session = session::start(self, &id);
                let begun = session.begun_attempts();
                session.retry.notify_one();
                // The history comes on the session's stream, and nothing orders the two streams.
                if stream.is_none() {
                    let connection = Arc::clone(self);
                    self.spawn(async move {
                        session.wait_history(begun).await;
                        connection.write(&[line]).await;
                    });
                    return None;
                }
            }
            (Method::CloseSession, false) => {
                let mut state = self.state.lock();
                state.closed.extend(sent.session);
                // A stream costs little, and some servers lose a message when its reader leaves. So
                // only the oldest go.
                if state.closed.len() > MAX_CLOSED
                    && let Some(session) = state.closed.pop_front().and_then(|id| state.sessions.remove(&id))
                {
                    session.stop.notify_one();
                }
            }
            _ => {}
        }
        Some(line)
    }

    /// Whether an answer may be under way on the stream of a session, or on that of the connection.
    fn awaits_answer(&self, stream: Option<&Session>) -> bool {
        let state = self.state.lock();
        state.sent.values().any(|sent| match (stream, &sent.session) {
            (Some(stream), Some(session)) => stream.id == *session,
            (Some(_), None) => false,
            (None, None) => true,
            // The server chooses the stream of these answers.
            (None, Some(_)) => matches!(sent.method, Method::OpenSession | Method::CloseSession),
        })
    }

    /// Ends the connection on the server.
    // HTTP-22
    async fn delete(&self, mut channel: Channel) {
        let is_gone = matches!(*self.end.reason.lock(), Some(RemoteError::Gone));
        if is_gone || self.identity().is_none() {
            return;
        }
        let request = Request { method: "DELETE".to_owned(), ..self.identify(self.endpoint.get()) };
        // The server ends it by itself if this fails.
        let _ = tokio::time::timeout(DELETE_TIMEOUT, channel.send(&request)).await;
    }

    fn is_listening(&self) -> bool {
        *self.listening.borrow() == Listening::Yes
    }

    /// Waits while the stream of the connection is broken: the server may not know yet that its
    /// reader is gone.
    async fn wait_listening(&self) {
        let mut listening = self.listening.subscribe();
        let unbroken = listening.wait_for(|listening| *listening != Listening::Broken);
        let _ = tokio::time::timeout(MAX_OPENING, unbroken).await;
    }
}

impl End {
    async fn wait(&self) {
        loop {
            let changed = self.changed.notified();
            if self.reason.lock().is_some() {
                return;
            }
            changed.await;
        }
    }
}
