//! Streams of server-sent events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::super::super::sse::Sse;
use super::super::super::{Backoff, Channel, HttpError, Response};
use super::super::RemoteError;
use super::session::Session;
use super::{Connection, Listening};

/// Pauses before a stream is opened again.
const REOPEN: Backoff =
    Backoff { attempts: 3, first: Duration::from_millis(200), max: Duration::from_secs(5) };
/// Pauses before a session that the server refused is tried again.
const REFUSED: Backoff =
    Backoff { attempts: u32::MAX, first: Duration::from_millis(250), max: Duration::from_secs(8) };
/// A server may take this many attempts to notice that an earlier stream is gone.
const MAX_CONFLICTS: u32 = 10;
/// Time for the head of a response.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Silence of a server that sends comments to keep the stream alive.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// A stream that lived this long was useful even without a byte: a proxy ends silent ones after a
/// minute or so.
const USEFUL_LIFE: Duration = Duration::from_secs(5);
/// The longest event.
const MAX_EVENT: usize = 64 << 20;

/// A stream and its position.
struct EventStream {
    connection: Arc<Connection>,
    session: Option<Arc<Session>>,
    channel: Channel,
    last_id: Option<String>,
    /// Names the run of the server that the position belongs to.
    epoch: Option<String>,
    /// The start of the last attempt.
    begun: Instant,
}

/// The end of a stream.
struct Ended {
    /// Whether anything was received, or the stream lived for a while.
    was_useful: bool,
    /// Why it broke; `None` if the server ended it.
    cut: Option<HttpError>,
}

/// Reads the stream of the connection until the connection ends.
// HTTP-10
pub(super) async fn run_connection(connection: Arc<Connection>) {
    let mut stream = EventStream::new(connection, None);
    let connection = Arc::clone(&stream.connection);
    let (mut failures, mut conflicts) = (0, 0);
    loop {
        let outcome = stream.open().await;
        let error = match outcome {
            Ok(response) if response.status == 200 => {
                connection.listening.send_replace(Listening::Yes);
                let ended = stream.read(response).await;
                connection.listening.send_replace(Listening::Broken);
                if let Some(cut) = stream.lost_answers(&ended) {
                    return connection.fail(cut);
                }
                if ended.was_useful {
                    (failures, conflicts) = (0, 0);
                }
                // HTTP-41: a new connection may do better.
                ended
                    .cut
                    .unwrap_or_else(|| HttpError::broken("the server ends the stream of events at once"))
                    .into()
            }
            Ok(response) => match response.status {
                404 | 410 => return connection.fail(RemoteError::Gone),
                // Our own earlier stream, until the server notices that it is gone.
                409 if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    failures = 0;
                    RemoteError::Refused(409)
                }
                _ => match RemoteError::from_response(&response) {
                    error @ RemoteError::Login(_) => return connection.fail(error),
                    error => error,
                },
            },
            Err(error) => match stream.left_reader(&error) {
                Some(cut) => return connection.fail(cut),
                None => error.into(),
            },
        };
        if failures >= REOPEN.attempts {
            return connection.fail(error);
        }
        tokio::time::sleep(error.pause(&REOPEN, failures.max(conflicts))).await;
        failures += 1;
    }
}

/// Reads the stream of a session until the session or the connection ends.
// HTTP-12
pub(super) async fn run_session(connection: Arc<Connection>, session: Arc<Session>) {
    let mut stream = EventStream::new(connection, Some(Arc::clone(&session)));
    tokio::select! {
        () = session.stop.notified() => {}
        () = stream.keep_open(&session) => {}
    }
}

/// Opens a second stream of a session, whose first one the server may have forgotten. The first one
/// stays, because some servers lose a message when a reader leaves.
pub(super) async fn run_second(connection: Arc<Connection>, session: Arc<Session>) {
    let mut stream = EventStream::new(connection, Some(session));
    // HTTP-21: a server that has not forgotten the first one refuses this.
    while let Ok(response) = stream.open().await
        && response.status == 200
        && stream.read(response).await.was_useful
    {}
}

impl EventStream {
    fn new(connection: Arc<Connection>, session: Option<Arc<Session>>) -> Self {
        let channel = connection.channel.clone();
        EventStream { connection, session, channel, last_id: None, epoch: None, begun: Instant::now() }
    }

    async fn keep_open(&mut self, session: &Session) {
        let (mut failures, mut refusals) = (0, 0);
        loop {
            session.begin_attempt();
            let pause = match self.open().await {
                Ok(response) if response.status == 200 => {
                    session.set_open(true);
                    refusals = 0;
                    let ended = self.read(response).await;
                    session.set_open(false);
                    if let Some(cut) = self.lost_answers(&ended) {
                        return self.connection.fail(cut);
                    }
                    if ended.was_useful {
                        failures = 0;
                    }
                    REOPEN.pause(failures)
                }
                Ok(response) => {
                    match response.status {
                        401 => return self.connection.fail(RemoteError::Login(401)),
                        // HTTP-20, HTTP-43: some servers know a session only after a response that
                        // names it.
                        403 | 404 | 409 => {
                            session.set_refused();
                            refusals += 1;
                            let pause = REFUSED.pause(refusals - 1);
                            let _ = tokio::time::timeout(pause, session.retry.notified()).await;
                            continue;
                        }
                        _ => {
                            session.set_open(false);
                            RemoteError::from_response(&response).pause(&REOPEN, failures)
                        }
                    }
                }
                Err(error) => {
                    session.set_open(false);
                    if let Some(cut) = self.left_reader(&error) {
                        return self.connection.fail(cut);
                    }
                    REOPEN.pause(failures)
                }
            };
            failures += 1;
            tokio::time::sleep(pause).await;
        }
    }

    async fn open(&mut self) -> Result<Response, HttpError> {
        self.begun = Instant::now();
        let endpoint = &self.connection.endpoint;
        let mut request = self.connection.identify(endpoint.get()).header("accept", "text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("acp-session-id", &session.id);
        }
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
            if let Some(epoch) = &self.epoch {
                request = request.header("x-qwen-event-epoch", epoch);
            }
        }
        let response = tokio::time::timeout(OPEN_TIMEOUT, self.channel.send(&request)).await;
        let response = response.unwrap_or_else(|_| Err(HttpError::from_status(504)))?;
        response.header_values("set-cookie").for_each(|cookie| endpoint.cookies.store(cookie));
        Ok(response)
    }

    /// Returns the reason why the connection counts as cut: a stream broke on which an answer may
    /// have been under way. The server does not know what arrived, so without a position that
    /// answer would be waited for in vain.
    fn lost_answers(&self, ended: &Ended) -> Option<RemoteError> {
        let cut = ended.cut.as_ref()?;
        // A hub sends again what a new connection lacks; a new stream of this one would begin with
        // a gap.
        let has_gap = || self.session.is_some() && self.connection.resumes.load(Ordering::Relaxed);
        let awaits_answer = || self.connection.awaits_answer(self.session.as_deref());
        if self.last_id.is_none() && (has_gap() || awaits_answer()) {
            return Some(RemoteError::Http(cut.clone()));
        }
        self.left_reader(cut)
    }

    /// Returns the reason why the connection counts as cut: the server keeps the reader of a stream
    /// that broke, and would lose messages of the next stream too. Its sessions continue over
    /// WebSocket only, so that is tried again.
    fn left_reader(&self, cut: &HttpError) -> Option<RemoteError> {
        let connection = &self.connection;
        if cut.is_unsent() || !connection.keeps_abandoned_readers() {
            return None;
        }
        connection.endpoint.transports.remove(&connection.endpoint.origin);
        Some(RemoteError::Http(cut.clone()))
    }

    /// Reads events until the stream ends.
    async fn read(&mut self, mut response: Response) -> Ended {
        self.epoch = response.header("x-qwen-event-epoch").map(str::to_owned);
        let begun = self.begun;
        let mut sse = Sse::with_limit(MAX_EVENT);
        let mut has_bytes = false;
        let ended = |has_bytes, cut| Ended { was_useful: has_bytes || begun.elapsed() > USEFUL_LIFE, cut };
        loop {
            let chunk = match sse.has_comments() {
                true => match tokio::time::timeout(MAX_SILENCE, response.body.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => {
                        let seconds = MAX_SILENCE.as_secs();
                        Err(HttpError::timeout(format!("the server was silent for {seconds} s")))
                    }
                },
                false => response.body.chunk().await,
            };
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return ended(has_bytes, None),
                Err(error) => return ended(has_bytes, Some(error)),
            };
            has_bytes = true;
            sse.push(&chunk);
            let mut lines = Vec::new();
            loop {
                match sse.next_event() {
                    Ok(Some(event)) => {
                        if event.id.is_some() {
                            self.last_id = event.id;
                        }
                        lines.extend(self.receive(event.data));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(head = error.head.len(), "an event over the limit is skipped");
                    }
                }
            }
            self.connection.write(&lines).await;
            if let Some(session) = &self.session {
                session.note_bytes(!lines.is_empty());
            }
        }
    }

    fn receive(&self, data: String) -> Option<Vec<u8>> {
        let mut line = data.into_bytes();
        // JSON in several `data:` lines is one line for the link.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        if line.trim_ascii().is_empty() {
            return None;
        }
        self.connection.receive(line, self.session.as_ref())
    }
}
