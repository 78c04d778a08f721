//! A proxy between a client and an agent, which forwards their messages and edits some of them.
//!
//! ```no_run
//! use attache::Link;
//! use attache::proxy::Relay;
//! use attache::wire::v1::PromptRequest;
//!
//! # async fn run() -> attache::Result<()> {
//! let (editor, agent) = (Link::stdio(), Link::spawn("my-agent")?);
//! Relay::new(editor, agent)
//!     .edit(|request: &mut PromptRequest| request.prompt.push("Answer in French.".into()))
//!     .run()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! A frame without an edit passes byte for byte, with unknown members, `_meta`, its id and its
//! blanks; so do lines that are not messages. Only methods with an edit are decoded, and only the
//! members that changed are written again.
//! [`examples/proxy.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/proxy.rs)
//! is a complete program.

// EXT-13. `splice.rs` replaces one member of a line; this file moves lines.

mod splice;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Limits, Link};
pub use attache_rpc::{Fault, Frame, Id, Malformed};
use attache_wire::{Notification, Request};
use serde_json::value::RawValue;

use crate::race::{First, race};
use crate::task::lock;
use crate::{Error, Result};

/// Bytes that are gathered for one write.
const BATCH: usize = 256 << 10;
/// Open requests whose responses are edited.
const REMEMBERED: usize = 4096;
/// Time for the agent to finish after the client has left.
const GRACE: Duration = Duration::from_secs(5);

/// The direction of a frame.
///
/// Example:
/// [`examples/proxy.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/proxy.rs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the agent.
    ToAgent,
    /// From the agent to the client.
    ToClient,
}

impl Direction {
    fn back(self) -> Self {
        match self {
            Direction::ToAgent => Direction::ToClient,
            Direction::ToClient => Direction::ToAgent,
        }
    }
}

/// Changes params or a result; returns `None` to leave them.
type Edit = Box<dyn FnMut(Option<&RawValue>) -> Option<String> + Send>;
type Observer = Box<dyn FnMut(Direction, &Frame<'_>, &[u8]) + Send>;

/// A relay between two links.
///
/// Example:
/// [`examples/proxy.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/proxy.rs).
pub struct Relay {
    client: Link,
    agent: Link,
    frame_limit: usize,
    grace: Duration,
    filters: Filters,
}

/// Edits and observers of frames.
struct Filters {
    depth: usize,
    requests: HashMap<&'static str, Vec<Edit>>,
    notifications: HashMap<&'static str, Vec<Edit>>,
    responses: HashMap<&'static str, Vec<Edit>>,
    observers: Vec<Observer>,
    /// Open requests whose responses are edited, by the direction of the response.
    open: HashMap<(Direction, Id), &'static str>,
}

impl Relay {
    /// A relay that forwards everything unchanged.
    pub fn new(client: Link, agent: Link) -> Self {
        let limits = Limits::default();
        Relay {
            client,
            agent,
            frame_limit: limits.frame,
            grace: GRACE,
            filters: Filters {
                depth: limits.depth,
                requests: HashMap::new(),
                notifications: HashMap::new(),
                responses: HashMap::new(),
                observers: Vec::new(),
                open: HashMap::new(),
            },
        }
    }

    /// Edits the params of a request of either side. Params that do not fit the type pass
    /// unchanged.
    pub fn edit<R: Request>(mut self, edit: impl FnMut(&mut R) + Send + 'static) -> Self {
        self.filters.requests.entry(R::METHOD).or_default().push(typed(edit));
        self
    }

    /// Edits the params of a notification of either side.
    pub fn edit_notification<N: Notification>(mut self, edit: impl FnMut(&mut N) + Send + 'static) -> Self {
        self.filters.notifications.entry(N::METHOD).or_default().push(typed(edit));
        self
    }

    /// Edits the result of a request. Errors pass unchanged.
    pub fn edit_response<R: Request>(mut self, edit: impl FnMut(&mut R::Response) + Send + 'static) -> Self {
        self.filters.responses.entry(R::METHOD).or_default().push(typed(edit));
        self
    }

    /// Observes every frame before it is edited, parsed and as bytes. Runs between reading and
    /// writing; it must not block.
    pub fn observe(mut self, observer: impl FnMut(Direction, &Frame<'_>, &[u8]) + Send + 'static) -> Self {
        self.filters.observers.push(Box::new(observer));
        self
    }

    /// Sets the longest line that is forwarded; longer ones are dropped.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Sets the time for the agent to finish after the client has left; five seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Forwards frames until one side ends. Each direction reads only as fast as the other side
    /// takes, so neither can flood the other. Must be called within a tokio runtime.
    ///
    /// When the agent ends, its last frames are written and the client's link is closed. When the
    /// client ends, the agent's input is closed and it may finish.
    ///
    /// # Errors
    /// When reading from a link fails.
    pub async fn run(self) -> Result<RelayEnd> {
        let (from_client, to_client) = self.client.split();
        let (from_agent, to_agent) = self.agent.split();
        let filters = Mutex::new(Some(Box::new(self.filters)));
        let limit = self.frame_limit;
        let mut up = Pump::new(Direction::ToAgent, from_client.with_limit(limit), to_agent, &filters);
        let mut down = Pump::new(Direction::ToClient, from_agent.with_limit(limit), to_client, &filters);
        let (first, outcome) = {
            let mut agent_ends = pin!(down.run());
            match race(&mut agent_ends, up.run()).await {
                First::Left(agent_ended) => (Direction::ToClient, agent_ended),
                // The agent's input is closed now. It may have answers to give, and it may never
                // end.
                First::Right(client_ended) => match race(agent_ends, tokio::time::sleep(self.grace)).await {
                    First::Left(agent_ended) => (Direction::ToAgent, client_ended.and(agent_ended)),
                    First::Right(()) => (Direction::ToAgent, client_ended),
                },
            }
        };
        outcome?;
        let mut end = RelayEnd { first, exit: None, stderr_tail: String::new() };
        if let Some(child) = down.reader.child() {
            // An agent that ended its output is about to exit; one that is still busy is not waited
            // for.
            if let First::Left(exit) = race(child.wait(), tokio::time::sleep(self.grace)).await {
                end.exit = Some(exit);
            }
            end.stderr_tail = child.stderr_tail();
        }
        Ok(end)
    }
}

/// How a [`Relay`] ended.
///
/// Example:
/// [`examples/proxy.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/proxy.rs).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayEnd {
    /// The direction that ended first: [`ToClient`](Direction::ToClient) if the agent closed its
    /// output.
    pub first: Direction,
    /// The exit status of the agent, if it is a child process and has exited.
    pub exit: Option<ExitStatus>,
    /// The end of the agent's stderr, if it was captured.
    pub stderr_tail: String,
}

impl RelayEnd {
    /// Whether the agent ended first and with a failure, so that the client should learn the
    /// reason.
    pub fn agent_failed(&self) -> bool {
        self.first == Direction::ToClient && self.exit.is_some_and(|exit| !exit.success())
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay")
            .field("client", &self.client)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// Turns an edit of a value into an edit of its text.
fn typed<T>(mut edit: impl FnMut(&mut T) + Send + 'static) -> Edit
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    Box::new(move |raw| {
        let mut value: T = attache_wire::decode(raw).ok()?;
        let before = serde_json::to_string(&value).ok()?;
        edit(&mut value);
        let after = serde_json::to_string(&value).ok()?;
        splice::changed(raw.map(RawValue::get), &before, &after)
    })
}

impl Filters {
    fn are_idle(&self) -> bool {
        self.observers.is_empty()
            && self.requests.is_empty()
            && self.notifications.is_empty()
            && self.responses.is_empty()
    }

    /// The line to send instead, or `None` to send the original.
    fn handle(&mut self, direction: Direction, line: &[u8]) -> Option<Vec<u8>> {
        if self.are_idle() {
            return None;
        }
        let frame = Frame::parse(line, self.depth);
        for observer in &mut self.observers {
            observer(direction, &frame, line);
        }
        match &frame {
            Frame::Request { id, method, params } => {
                if let Some((method, _)) = self.responses.get_key_value(&**method)
                    && self.open.len() < REMEMBERED
                {
                    self.open.insert((direction.back(), id.clone()), method);
                }
                let edits = self.requests.get_mut(&**method)?;
                splice::apply(line, *params, edits, |out, params| {
                    attache_rpc::encode::request(out, id, method, params)
                })
            }
            Frame::Notification { method, params } => {
                let edits = self.notifications.get_mut(&**method)?;
                splice::apply(line, *params, edits, |out, params| {
                    attache_rpc::encode::notification(out, method, params)
                })
            }
            Frame::Response { id, outcome } => {
                if self.open.is_empty() {
                    return None;
                }
                let method = self.open.remove(&(direction, id.clone()))?;
                let edits = self.responses.get_mut(method)?;
                let result = outcome.as_ref().ok()?;
                splice::apply(line, Some(result), edits, |out, result| {
                    attache_rpc::encode::result(out, id, result)
                })
            }
            _ => None,
        }
    }
}

/// Moves the frames of one direction.
struct Pump<'a> {
    direction: Direction,
    reader: FrameReader,
    writer: FrameWriter,
    filters: &'a Mutex<Option<Box<Filters>>>,
    gathered: usize,
}

/// Outcome of an attempt to move a line.
enum Step {
    Moved,
    Ended(Result<()>),
}

impl<'a> Pump<'a> {
    fn new(
        direction: Direction,
        reader: FrameReader,
        writer: FrameWriter,
        filters: &'a Mutex<Option<Box<Filters>>>,
    ) -> Self {
        Pump { direction, reader, writer, filters, gathered: 0 }
    }

    async fn run(&mut self) -> Result<()> {
        let mut end = None;
        while end.is_none() {
            if let Step::Ended(result) = poll_fn(|cx| self.poll_step(cx)).await {
                end = Some(result);
            }
            // Lines that are available go into the same write.
            while end.is_none() && self.gathered < BATCH {
                match poll_fn(|cx| Poll::Ready(self.poll_step(cx))).await {
                    Poll::Ready(Step::Moved) => {}
                    Poll::Ready(Step::Ended(result)) => end = Some(result),
                    Poll::Pending => break,
                }
            }
            self.gathered = 0;
            // A side that closed its input has ended; that is no failure of the relay.
            if self.writer.flush().await.is_err() {
                return Ok(());
            }
        }
        let _ = self.writer.close().await;
        end.unwrap_or(Ok(()))
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let next = pin!(self.reader.next());
        let line = match std::task::ready!(next.poll(cx)) {
            Ok(Some(line)) => line,
            Ok(None) => return Poll::Ready(Step::Ended(Ok(()))),
            // A line that is too long was passed over.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Poll::Ready(Step::Moved),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Poll::Ready(Step::Ended(Ok(())));
            }
            Err(error) => return Poll::Ready(Step::Ended(Err(Error::from(error)))),
        };
        // Edits are user code: they run outside of the lock, which no other pump can need
        // meanwhile.
        let mut filters = lock(self.filters).take();
        let edited = filters.as_mut().and_then(|filters| filters.handle(self.direction, line));
        *lock(self.filters) = filters;
        let line = edited.as_deref().unwrap_or(line);
        self.gathered += line.len();
        self.writer.feed(line);
        Poll::Ready(Step::Moved)
    }
}
