//! A link that is connected again after a cut.
//!
//! One task passes the lines of both directions on and notes what a new connection needs
//! (`history.rs`). After a cut it answers open requests with an error, connects with growing
//! pauses, initializes, and resumes the sessions: by `session/resume` where the agent has it, else
//! by `session/load` without the replay. A session that the agent does not resume has errors from
//! then on.
//!
//! A hub that announces positions gets the last one that the client has seen, and the open prompts
//! again (`hub.rs`): nothing is lost then.

mod history;
mod hub;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache_conn::rpc::{Frame, Id};
use attache_conn::{FrameReader, FrameWriter, Link};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::super::Backoff;
use super::{Options, RemoteError, connect_once};
use crate::message::DEPTH;
use crate::ws::Close;
use history::{History, Outgoing};
use hub::Hub;

/// Bytes that are collected for one write.
const BATCH: usize = 256 << 10;
/// How long the reason of a cut may come after a failed write.
const LINGER: Duration = Duration::from_secs(1);
/// Time for the response to each request of a new connection.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A connection without a message from the server that does not live this long counts as a failed
/// attempt. It is longer than the short lives of an event stream before its connection ends, and
/// shorter than the patience of any proxy.
const USEFUL_LIFE: Duration = Duration::from_secs(30);

/// Returns a link that survives cuts of `first` and its successors.
// HTTP-41, WS-19: what was under way fails, the rest goes on.
pub(super) fn link(first: Link, url: &str, options: &Options) -> Link {
    let end: End = Arc::default();
    let (near, far) = super::memory::links({
        let end = Arc::clone(&end);
        move || end.lock().take()
    });
    let (from_client, to_client) = far.split();
    let relay = Relay {
        url: url.to_owned(),
        options: options.clone(),
        history: Mutex::default(),
        to_client: AsyncMutex::new(to_client),
        end,
        has_received: AtomicBool::new(false),
    };
    tokio::spawn(relay.run(from_client, first));
    near
}

/// The reason of the end, for the reader of the link.
type End = Arc<Mutex<Option<io::Error>>>;

struct Relay {
    url: String,
    options: Options,
    history: Mutex<History>,
    to_client: AsyncMutex<FrameWriter>,
    end: End,
    /// Whether a line came over the present connection, apart from the responses that made it.
    has_received: AtomicBool,
}

/// The side that ended a connection.
enum Ended {
    Client,
    Server(Option<io::Error>),
}

impl Relay {
    async fn run(self, mut from_client: FrameReader, first: Link) {
        let (mut from_server, mut to_server) = first.split();
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let error = match self.pass(&mut from_client, &mut from_server, &mut to_server).await {
                Ended::Client => {
                    let _ = to_server.close().await;
                    return;
                }
                Ended::Server(None) => return,
                Ended::Server(Some(error)) => error,
            };
            let answers = self.history.lock().cut();
            if !is_cut(&error) || !self.history.lock().is_established() {
                *self.end.lock() = Some(error);
                return;
            }
            tracing::warn!(%error, "the connection was cut");
            if self.write(&answers).await.is_err() {
                return;
            }
            if self.has_received.swap(false, Ordering::Relaxed) || begun.elapsed() > USEFUL_LIFE {
                failures = 0;
            }
            (from_server, to_server) = match self.reconnect(error, failures).await {
                Ok((halves, attempts)) => {
                    failures = attempts;
                    halves
                }
                Err(error) => {
                    *self.end.lock() = Some(error);
                    return;
                }
            };
            tracing::info!("the connection was made again");
        }
    }

    async fn write(&self, lines: &[Vec<u8>]) -> io::Result<()> {
        let mut to_client = self.to_client.lock().await;
        lines.iter().for_each(|line| to_client.feed(line));
        to_client.flush().await
    }

    /// Passes lines on in both directions until one side ends.
    async fn pass(
        &self,
        from_client: &mut FrameReader,
        from_server: &mut FrameReader,
        to_server: &mut FrameWriter,
    ) -> Ended {
        let mut down = std::pin::pin!(self.pass_down(from_server));
        tokio::select! {
            ended = &mut down => ended,
            ended = self.pass_up(from_client, to_server) => match ended {
                // The reader knows better why the server does not take any more.
                Ended::Server(Some(error)) => {
                    let read = tokio::time::timeout(LINGER, down).await;
                    read.unwrap_or(Ended::Server(Some(error)))
                }
                ended => ended,
            },
        }
    }

    async fn pass_up(&self, from: &mut FrameReader, to: &mut FrameWriter) -> Ended {
        loop {
            // The link of the client is in memory: its errors are its end.
            let Ok(Some(line)) = from.next().await else { return Ended::Client };
            let outgoing = self.history.lock().outgoing(line);
            let sent = match outgoing {
                Outgoing::Pass => to.send(line).await,
                Outgoing::Replace(line) => to.send(&line).await,
                Outgoing::Drop => continue,
                Outgoing::Answer(answer) => match self.write(&[answer]).await {
                    Ok(()) => continue,
                    Err(_) => return Ended::Client,
                },
            };
            if let Err(error) = sent {
                return Ended::Server(Some(error));
            }
        }
    }

    async fn pass_down(&self, from: &mut FrameReader) -> Ended {
        loop {
            let mut fed = 0;
            let first = match from.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Ended::Server(None),
                Err(error) => return Ended::Server(Some(error)),
            };
            let mut to_client = self.to_client.lock().await;
            self.has_received.store(true, Ordering::Relaxed);
            let mut feed = |line: &[u8]| {
                if self.history.lock().incoming(line) {
                    to_client.feed(line);
                }
                line.len()
            };
            fed += feed(first);
            let mut ended = None;
            // Lines that are there already go into the same write.
            while fed < BATCH && ended.is_none() {
                tokio::select! {
                    biased;
                    line = from.next() => match line {
                        Ok(Some(line)) => fed += feed(line),
                        Ok(None) => ended = Some(Ended::Server(None)),
                        Err(error) => ended = Some(Ended::Server(Some(error))),
                    },
                    () = std::future::ready(()) => break,
                }
            }
            let flushed = match &ended {
                Some(_) => to_client.flush().await,
                None => tokio::select! {
                    biased;
                    flushed = to_client.flush() => flushed,
                    error = from.keep_alive() => return Ended::Server(Some(error)),
                },
            };
            if flushed.is_err() {
                return Ended::Client;
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Connects again and resumes the sessions, after a number of failed attempts. Returns the
    /// number of all attempts too.
    async fn reconnect(
        &self,
        cut: io::Error,
        failures: u32,
    ) -> io::Result<((FrameReader, FrameWriter), u32)> {
        let backoff = self.options.reconnect;
        let mut last = cut;
        for failures in failures..backoff.attempts {
            tokio::time::sleep(pause(&last, &backoff, failures)).await;
            if Arc::strong_count(&self.end) == 1 {
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the link was dropped"));
            }
            let attempt = async {
                let link = connect_once(&self.url, &self.options).await?;
                let (mut from, mut to) = link.split();
                self.restore(&mut from, &mut to).await?;
                Ok((from, to))
            };
            match attempt.await {
                Ok(halves) => return Ok((halves, failures + 1)),
                Err(error) if is_cut(&error) => {
                    tracing::debug!(%error, "another attempt failed");
                    last = error;
                }
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        let why = format!("the connection was cut, and cannot be made again: {last}");
        Err(io::Error::new(last.kind(), why))
    }

    /// Initializes a new connection and resumes the sessions on it.
    async fn restore(&self, from: &mut FrameReader, to: &mut FrameWriter) -> io::Result<()> {
        let introduction = self.history.lock().introduction();
        let mut initialized = Value::Null;
        for (method, params) in introduction {
            let result = match self.call(from, to, method, &params, |_| false).await? {
                Ok(result) => result,
                // The server of a refused request may be back later. Its link ends with the reason.
                Err(why) => match tokio::time::timeout(LINGER, from.next()).await {
                    Ok(Err(error)) => return Err(error),
                    _ => return Err(io::Error::other(format!("{method}: {why}"))),
                },
            };
            if method == "initialize" {
                initialized = result;
            }
        }
        if !self.history.lock().is_same_version(&initialized) {
            return Err(io::Error::other("the agent speaks another version of the protocol now"));
        }
        let resumption = self.history.lock().resumption(&initialized);
        let sessions = resumption.unwrap_or_else(|why| {
            self.history.lock().lose_all(why);
            Vec::new()
        });
        for session in sessions {
            let is_replay = |line: &[u8]| session.is_replay(line);
            let mut outcome = self.call(from, to, session.method, &session.params, is_replay).await?;
            if let (Err(why), Some(params)) = (&outcome, &session.without_position) {
                tracing::warn!(why, "a session is resumed without what was missed");
                outcome = self.call(from, to, session.method, params, is_replay).await?;
            }
            match outcome {
                Ok(result) => self.history.lock().resumed(&session.session, &result),
                Err(why) => self.history.lock().lose(&session.session, &why),
            }
        }
        let (prompts, failed) = self.history.lock().restored(&initialized);
        self.write(&failed).await?;
        for prompt in prompts {
            to.send(&prompt).await?;
        }
        Ok(())
    }

    /// Sends a request of our own and waits for its response. Other lines go to the client unless
    /// `is_dropped`. The inner error is that of the agent.
    async fn call(
        &self,
        from: &mut FrameReader,
        to: &mut FrameWriter,
        method: &str,
        params: &Value,
        is_dropped: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Result<Value, String>> {
        let (own, line) = self.history.lock().own_request(method, params);
        let exchange = async {
            to.send(&line).await?;
            loop {
                let line = from.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
                if let Some(outcome) = response(&own, line) {
                    return Ok(outcome);
                }
                if !is_dropped(line) && self.history.lock().incoming(line) {
                    self.write(&[line.to_vec()]).await?;
                }
            }
        };
        let timeout = || io::Error::new(io::ErrorKind::TimedOut, format!("no response to {method}"));
        tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or_else(|_| Err(timeout()))
    }
}

/// Whether a response to `initialize` is that of a hub, whose sessions can be resumed without a
/// gap.
pub(super) fn is_hub(response: &[u8]) -> bool {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    Hub::announced(&response["result"], false).is_some()
}

/// Returns the outcome if a line is the response to a request.
fn response(own: &Id, line: &[u8]) -> Option<Result<Value, String>> {
    match Frame::parse(line, DEPTH) {
        Frame::Response { id, outcome } if id == *own => Some(match outcome {
            Ok(result) => Ok(serde_json::from_str(result.get()).unwrap_or_default()),
            Err(error) => Err(error.message.to_string()),
        }),
        _ => None,
    }
}

/// The pause before the next attempt: the one that the server asked for, else that of `backoff`.
fn pause(last: &io::Error, backoff: &Backoff, failures: u32) -> Duration {
    match last.get_ref().and_then(|error| error.downcast_ref::<RemoteError>()) {
        Some(error) => error.pause(backoff, failures),
        None => backoff.pause(failures),
    }
}

/// Whether an error is the loss of a connection, rather than a refusal or the end of the agent.
fn is_cut(error: &io::Error) -> bool {
    let inner = error.get_ref();
    if let Some(close) = inner.and_then(|error| error.downcast_ref::<Close>()) {
        // Going away, no close frame, restart, try again later.
        return matches!(close.code, 1001 | 1006 | 1012 | 1013);
    }
    if let Some(error) = inner.and_then(|error| error.downcast_ref::<RemoteError>()) {
        return error.is_transient();
    }
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown,
        NetworkUnreachable, NotConnected, TimedOut, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
            | TimedOut
            | UnexpectedEof
    )
}
