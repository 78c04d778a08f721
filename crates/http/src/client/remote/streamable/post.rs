//! Messages to the server: one POST at a time in each of two lanes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use attache_conn::rpc::ErrorObject;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::super::super::{Backoff, Channel, ErrorKind, HttpError, Request, Response};
use super::super::{RemoteError, Transport, reconnect};
use super::message::{Message, Method, error_of, error_response, protocol_version};
use super::{Connection, Identity, SentRequest, session, stream};
use crate::message::make_one_line;

/// Bytes of one lane; its sender waits for room. A longer message takes all of it.
const LANE: usize = 8 << 20;
/// Messages of one lane.
const LANE_MESSAGES: usize = 4096;
/// Time for the response to a message, which the server accepts at once.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Pauses before a message is sent again.
const RETRY: Backoff =
    Backoff { attempts: 3, first: Duration::from_millis(200), max: Duration::from_secs(5) };
/// The longest response.
const MAX_BODY: usize = 64 << 20;
/// The longest body of a refused message that is read.
const MAX_REFUSAL: usize = 64 << 10;
/// Time to send the last messages after the link is closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The two lanes. An answer never waits for a request before it.
// HTTP-44
pub(super) struct Lanes {
    calls: Lane,
    responses: Lane,
}

struct Lane {
    // Bounded in bytes by `room` as well. `None` after the last message.
    jobs: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    task: JoinHandle<()>,
}

/// A message that is to be posted.
struct Job {
    line: Vec<u8>,
    message: Message,
    _room: OwnedSemaphorePermit,
}

impl Lanes {
    pub(super) fn start(connection: &Arc<Connection>) -> Self {
        Lanes { calls: Lane::start(connection), responses: Lane::start(connection) }
    }

    /// Queues a message. Waits for room in its lane.
    pub(super) async fn push(&mut self, line: Vec<u8>, message: Message) {
        let lane = match message {
            Message::Response { .. } => &self.responses,
            _ => &self.calls,
        };
        lane.push(line, message).await;
    }

    /// Sends what is queued, for a limited time.
    pub(super) async fn finish(self) {
        let Lanes { mut calls, mut responses } = self;
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, async {
            tokio::join!(calls.finish(), responses.finish());
        })
        .await;
    }
}

impl Lane {
    fn start(connection: &Arc<Connection>) -> Self {
        let (jobs, queue) = channel(LANE_MESSAGES);
        let task = tokio::spawn(run(Arc::clone(connection), queue));
        Lane { jobs: Some(jobs), room: Arc::new(Semaphore::new(LANE)), task }
    }

    async fn push(&self, line: Vec<u8>, message: Message) {
        let bytes = u32::try_from(line.len().clamp(1, LANE)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await else { return };
        // The lane ends only with the connection.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(Job { line, message, _room: room }).await;
        }
    }

    async fn finish(&mut self) {
        self.jobs = None;
        let _ = (&mut self.task).await;
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(connection: Arc<Connection>, mut queue: Receiver<Job>) {
    let mut channel = connection.channel.clone();
    let ended = Arc::clone(&connection.end);
    let work = async {
        while let Some(job) = queue.recv().await {
            post(&connection, &mut channel, job).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = ended.wait() => {}
    }
}

/// Posts `initialize` and starts the stream of the connection. Every other message is too early.
// HTTP-05
pub(super) async fn initialize(
    connection: &Arc<Connection>,
    channel: &mut Channel,
    line: Vec<u8>,
    message: Message,
) {
    let id = match message {
        Message::Request { id, method: Method::Initialize, .. } => id,
        Message::Request { id, .. } => {
            return connection
                .write(&[error_response(&id, &ErrorObject::internal("`initialize` has to come first"))])
                .await;
        }
        _ => return,
    };
    match post_initialize(connection, channel, line).await {
        Ok(response) => connection.write(&[response]).await,
        Err(error) => {
            // The caller may be waiting for a response rather than for the end of the link.
            connection.write(&[error_response(&id, &ErrorObject::internal(error.to_string()))]).await;
            connection.fail(error);
        }
    }
}

async fn post_initialize(
    connection: &Arc<Connection>,
    channel: &mut Channel,
    line: Vec<u8>,
) -> Result<Vec<u8>, RemoteError> {
    let request = connection.endpoint.request(json(connection, line));
    // The agent may have to be installed first, so the caller decides how long this may take.
    let mut response = send(connection, channel, &request, true, None).await?;
    if response.status != 200 {
        return Err(RemoteError::from_response(&response));
    }
    let id = response.header("acp-connection-id").map(str::to_owned);
    let mut body = response.body.bytes(MAX_BODY).await?;
    make_one_line(&mut body);
    let version = match Message::incoming(&body) {
        Message::Response { is_error: false, .. } => protocol_version(&body),
        // HTTP-29: some servers keep a connection after an error; the client may try again with
        // another version.
        Message::Response { .. } => return Ok(body),
        _ => {
            return Err(RemoteError::Protocol(
                "the server does not speak ACP over HTTP at this URL".to_owned(),
            ));
        }
    };
    // HTTP-06
    let Some(id) = id else {
        return Err(RemoteError::Protocol(
            "the server's response lacks the header Acp-Connection-Id".to_owned(),
        ));
    };
    *connection.identity.lock() = Some(Identity { connection: id, version });
    let endpoint = &connection.endpoint;
    let resumes = endpoint.reconnects && reconnect::is_hub(&body);
    connection.resumes.store(resumes, Ordering::Relaxed);
    endpoint.transports.insert(&endpoint.origin, Transport::StreamableHttp);
    connection.spawn(stream::run_connection(Arc::clone(connection)));
    Ok(body)
}

fn json(connection: &Connection, line: Vec<u8>) -> Request {
    Request::post(&connection.endpoint.url, line)
        .header("content-type", "application/json")
        .header("accept", "application/json")
}

/// Posts one message. A request that cannot be delivered gets an error response.
async fn post(connection: &Arc<Connection>, channel: &mut Channel, job: Job) {
    let Job { line, message, _room } = job;
    let is_opening = matches!(message, Message::Request { method: Method::OpenSession, .. });
    let (request, session, is_repeatable) = match message {
        Message::Request { id, method, session } => {
            if let (Method::OpenSession, Some(session)) = (method, &session) {
                session::reopen(connection, session);
            }
            let is_repeatable = matches!(method, Method::Initialize | Method::Repeatable);
            let sent = SentRequest { method, session: session.clone() };
            connection.state.lock().sent.insert(id.clone(), sent);
            (Some(id), session, is_repeatable)
        }
        Message::Notification { session } => (None, session, false),
        Message::Invalid => (None, None, false),
        // The id leads to the session of the request. The server ignores a second response.
        Message::Response { id, .. } => (None, connection.state.lock().received.remove(&id), true),
    };
    if let Some(session) = &session {
        session::open(connection, session).await;
    }
    if request.is_some() {
        connection.wait_listening().await;
    }
    let mut message = connection.identify(connection.endpoint.request(json(connection, line)));
    let unnamed = is_opening.then(|| message.clone());
    // HTTP-15
    if let Some(session) = &session {
        message = message.header("acp-session-id", session);
    }
    let mut outcome = send(connection, channel, &message, is_repeatable, Some(TIMEOUT)).await;
    // Some servers know a session only after a response that names it, and refuse its header
    // before.
    if let (Some(unnamed), Ok(response)) = (unnamed, &mut outcome)
        && response.status == 404
    {
        // Over HTTP/1.1 the refusal has to be read before the connection takes another request.
        let _ = response.body.bytes(MAX_REFUSAL).await;
        outcome = send(connection, channel, &unnamed, is_repeatable, Some(TIMEOUT)).await;
    }
    let error = match outcome {
        Ok(response) if response.is_success() => return accept(connection, response).await,
        Ok(response) => match response.status {
            403 if session.is_some() && connection.is_listening() => {
                ErrorObject::internal("the server denies access to this session (HTTP status 403)")
            }
            401 | 403 => return connection.fail(RemoteError::Login(response.status)),
            404 | 410 if session.is_none() || !connection.is_listening() => {
                return connection.fail(RemoteError::Gone);
            }
            404 | 410 => {
                ErrorObject::resource_not_found("the server does not know this session (HTTP status 404)")
            }
            409 => ErrorObject::internal("the session is in use by another connection (HTTP status 409)"),
            413 => ErrorObject::internal("the message is too large for the server (HTTP status 413)"),
            429 | 503 => ErrorObject::internal(RemoteError::from_response(&response).to_string()),
            _ => refusal(response).await,
        },
        Err(error) => ErrorObject::internal(error.to_string()),
    };
    match request {
        Some(id) if connection.state.lock().sent.remove(&id).is_some() => {
            connection.write(&[error_response(&id, &error)]).await;
        }
        _ => tracing::warn!(%error, "a message was not delivered"),
    }
}

/// The error for a message that the server refused: the one in the body, if there is one.
async fn refusal(mut response: Response) -> ErrorObject {
    let body = response.body.bytes(MAX_REFUSAL).await.unwrap_or_default();
    error_of(&body).unwrap_or_else(|| {
        ErrorObject::internal(format!("the server refused the message (HTTP status {})", response.status))
    })
}

/// Reads the response to an accepted message. Some servers put the answer into it.
// HTTP-08
async fn accept(connection: &Arc<Connection>, mut response: Response) {
    let Ok(mut body) = response.body.bytes(MAX_BODY).await else { return };
    if response.status != 200 || body.trim_ascii().is_empty() {
        return;
    }
    make_one_line(&mut body);
    if !matches!(Message::incoming(&body), Message::Invalid)
        && let Some(line) = connection.receive(body, None)
    {
        connection.write(&[line]).await;
    }
}

/// Sends a message, and again if it did not arrive: it was not sent, the server refused it for now,
/// or it may arrive twice.
async fn send(
    connection: &Connection,
    channel: &mut Channel,
    request: &Request,
    is_repeatable: bool,
    limit: Option<Duration>,
) -> Result<Response, HttpError> {
    let mut failures = 0;
    loop {
        let sending = channel.send(request);
        let outcome = match limit {
            Some(limit) => match tokio::time::timeout(limit, sending).await {
                Ok(outcome) => outcome,
                Err(_) => return Err(HttpError::from_status(504)),
            },
            None => sending.await,
        };
        if let Ok(response) = &outcome {
            response.header_values("set-cookie").for_each(|cookie| connection.endpoint.cookies.store(cookie));
        }
        let pause = match &outcome {
            Ok(response) if matches!(response.status, 429 | 503) => {
                RemoteError::from_response(response).pause(&RETRY, failures)
            }
            Err(error) if error.kind() == ErrorKind::Invalid => return outcome,
            Err(error) if error.is_unsent() || is_repeatable => RETRY.pause(failures),
            _ => return outcome,
        };
        if failures == RETRY.attempts {
            return outcome;
        }
        failures += 1;
        tokio::time::sleep(pause).await;
    }
}
