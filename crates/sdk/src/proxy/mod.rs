//! A proxy: stands between a client and an agent and passes on what they say.
//!
//! ```no_run
//! use attache::Link;
//! use attache::proxy::{PushText, Relay};
//! use attache::wire::v1::PromptRequest;
//!
//! # async fn run() -> attache::Result<()> {
//! let (editor, agent) = (Link::stdio(), Link::spawn("my-agent")?);
//! Relay::new(editor, agent)
//!     .edit(|request: &mut PromptRequest| request.prompt.push_text("Answer in French."))
//!     .run()
//!     .await
//! # }
//! ```
//!
//! EXT-13: a frame that nobody asked to edit passes as the bytes it came in, with every unknown member, every `_meta`, its id and its
//! blanks; lines that are not messages at all pass too. Only the named methods are decoded, and of an edited frame only the
//! members that changed are written anew.
//!
//! For readers of the code: `splice.rs` changes one member of a line and leaves the rest of it alone; this file moves lines.

mod splice;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Limits, Link};
pub use attache_rpc::Frame;
use attache_rpc::Id;
use attache_wire::v1::ContentBlock;
use attache_wire::{Notification, Request};
use serde_json::value::RawValue;

use crate::race::{First, race};
use crate::{Error, Result};

/// How many bytes are gathered before they are written: what is there goes out in one piece, and no more than this is held.
const BATCH: usize = 256 << 10;
/// How many requests are remembered whose answers somebody wants to edit.
const REMEMBERED: usize = 4096;
/// How long the agent may still talk after the client has gone.
const GRACE: Duration = Duration::from_secs(5);

/// Which way a frame goes.
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

/// Changes params or a result; `None` if nothing is to change.
type Edit = Box<dyn FnMut(Option<&RawValue>) -> Option<String> + Send>;
type Observer = Box<dyn FnMut(Direction, &Frame<'_>, &[u8]) + Send>;

/// A relay between two links.
pub struct Relay {
    client: Link,
    agent: Link,
    frame_limit: usize,
    grace: Duration,
    tools: Tools,
}

/// What is done to frames on their way.
struct Tools {
    depth: usize,
    requests: HashMap<&'static str, Vec<Edit>>,
    notifications: HashMap<&'static str, Vec<Edit>>,
    responses: HashMap<&'static str, Vec<Edit>>,
    observers: Vec<Observer>,
    /// Open requests whose answers are edited, by the direction of the answer.
    open: HashMap<(Direction, Id), &'static str>,
}

impl Relay {
    /// A relay that passes everything on.
    pub fn new(client: Link, agent: Link) -> Self {
        let limits = Limits::default();
        Relay {
            client,
            agent,
            frame_limit: limits.frame,
            grace: GRACE,
            tools: Tools {
                depth: limits.depth,
                requests: HashMap::new(),
                notifications: HashMap::new(),
                responses: HashMap::new(),
                observers: Vec::new(),
                open: HashMap::new(),
            },
        }
    }

    /// Edits the params of a request, whichever side sends it. Params that do not fit the type pass unchanged.
    pub fn edit<R: Request>(mut self, edit: impl FnMut(&mut R) + Send + 'static) -> Self {
        self.tools.requests.entry(R::METHOD).or_default().push(typed(edit));
        self
    }

    /// Edits the params of a notification, whichever side sends it.
    pub fn edit_notification<N: Notification>(mut self, edit: impl FnMut(&mut N) + Send + 'static) -> Self {
        self.tools.notifications.entry(N::METHOD).or_default().push(typed(edit));
        self
    }

    /// Edits the result of a request. Errors pass unchanged.
    pub fn edit_response<R: Request>(mut self, edit: impl FnMut(&mut R::Response) + Send + 'static) -> Self {
        self.tools.responses.entry(R::METHOD).or_default().push(typed(edit));
        self
    }

    /// Sees every frame as it came, before any edit: opened, and as bytes. Runs between reading and writing; it must not block.
    pub fn observe(mut self, observer: impl FnMut(Direction, &Frame<'_>, &[u8]) + Send + 'static) -> Self {
        self.tools.observers.push(Box::new(observer));
        self
    }

    /// The longest line that is passed on; longer ones are dropped.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// How long the agent may still talk after the client has gone; five seconds if nothing is said.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Passes frames on until one side ends. Each direction reads only as fast as the other side takes, so neither can flood the
    /// other. Must be called within a tokio runtime.
    ///
    /// When the agent ends, what it said is written and the client's link closed. When the client ends, the agent's input is closed and
    /// it may finish what it has to say.
    ///
    /// # Errors
    /// When reading from a link fails.
    pub async fn run(self) -> Result<()> {
        let (from_client, to_client) = self.client.split();
        let (from_agent, to_agent) = self.agent.split();
        let tools = Mutex::new(self.tools);
        let limit = self.frame_limit;
        let up = Pump::new(Direction::ToAgent, from_client.with_limit(limit), to_agent, &tools).run();
        let down = Pump::new(Direction::ToClient, from_agent.with_limit(limit), to_client, &tools).run();
        let mut down = pin!(down);
        let client_ended = match race(&mut down, up).await {
            First::Left(agent_ended) => return agent_ended,
            First::Right(ended) => ended,
        };
        // The agent's input is closed now. It may have answers to give, and it may never end.
        match race(down, tokio::time::sleep(self.grace)).await {
            First::Left(agent_ended) => client_ended.and(agent_ended),
            First::Right(()) => client_ended,
        }
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

/// An edit of a type becomes an edit of text.
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

impl Tools {
    fn are_idle(&self) -> bool {
        self.observers.is_empty()
            && self.requests.is_empty()
            && self.notifications.is_empty()
            && self.responses.is_empty()
    }

    /// What is to be sent instead of a line; `None` to send the line itself.
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
            Frame::Malformed(_) => None,
        }
    }
}

/// One direction.
struct Pump<'a> {
    direction: Direction,
    reader: FrameReader,
    writer: FrameWriter,
    tools: &'a Mutex<Tools>,
    gathered: usize,
}

/// What became of an attempt to move a line.
enum Step {
    Moved,
    Ended(Result<()>),
}

impl<'a> Pump<'a> {
    fn new(direction: Direction, reader: FrameReader, writer: FrameWriter, tools: &'a Mutex<Tools>) -> Self {
        Pump { direction, reader, writer, tools, gathered: 0 }
    }

    async fn run(mut self) -> Result<()> {
        let mut end = None;
        while end.is_none() {
            if let Step::Ended(result) = poll_fn(|cx| self.poll_step(cx)).await {
                end = Some(result);
            }
            // What is there already goes into the same write.
            while end.is_none() && self.gathered < BATCH {
                match poll_fn(|cx| Poll::Ready(self.poll_step(cx))).await {
                    Poll::Ready(Step::Moved) => {}
                    Poll::Ready(Step::Ended(result)) => end = Some(result),
                    Poll::Pending => break,
                }
            }
            self.gathered = 0;
            // A side that takes nothing any more has ended; that is no failure of the relay.
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
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        match tools.handle(self.direction, line) {
            None => {
                self.gathered += line.len();
                self.writer.feed(line);
            }
            Some(edited) => {
                self.gathered += edited.len();
                self.writer.feed(&edited);
            }
        }
        Poll::Ready(Step::Moved)
    }
}

/// Adds text to a prompt.
pub trait PushText {
    /// Adds a text block.
    fn push_text(&mut self, text: impl Into<String>);
}

impl PushText for Vec<ContentBlock> {
    fn push_text(&mut self, text: impl Into<String>) {
        self.push(text.into().into());
    }
}
