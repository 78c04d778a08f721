//! The stream of events in which a model answers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::error::ModelError;
use super::message::ToolCall;

/// One event of a response.
///
/// Calls carry an `index`, since some providers stream several at once. An [`Event::Signature`]
/// belongs to the thought directly before it, or to an empty one; [`Response`](super::Response)
/// assembles them.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of text.
    Text(String),
    /// A piece of thought.
    Thought(String),
    /// The provider's signature of the thought that ends here.
    Signature(Value),
    /// A call begins; its arguments are still to come.
    CallBegins {
        /// Counted from 0 within the answer.
        index: usize,
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON text that may be cut anywhere.
    CallGrows {
        /// Which call.
        index: usize,
        /// The piece.
        json: String,
    },
    /// A call is complete, or invalid.
    CallEnds {
        /// Which call.
        index: usize,
        /// The call.
        call: Result<ToolCall, InvalidCall>,
    },
    /// Tokens of this response so far; a later count replaces an earlier one.
    Usage(Usage),
    /// The request failed and is repeated after this time. Comes before all other events.
    Retry {
        /// The pause.
        after: Duration,
        /// What went wrong.
        why: String,
    },
    /// The end; nothing follows.
    End(Stop),
}

/// A call whose arguments are not a JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as they came.
    pub raw: String,
    /// What is wrong, for the model.
    pub why: String,
}

/// Why a response ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The model is done.
    Done,
    /// It waits for the results of its calls.
    Calls,
    /// The response reached its token limit.
    MaxTokens,
    /// The model or the provider refused.
    Refused,
    /// Another reason, in the provider's word.
    Other(String),
}

/// Tokens of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Input that was not in a cache.
    pub input: u64,
    /// Output, with thoughts.
    pub output: u64,
    /// Input from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// How much of `output` was thought, if the provider reports it.
    pub thought: u64,
}

impl Usage {
    /// All input: the window's fill level without the output.
    pub fn context(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.thought += other.thought;
    }
}

/// The sender of a [`Stream`].
pub struct Events(mpsc::Sender<Event>);

impl Events {
    /// Sends an event; waits while the reader is behind.
    pub async fn send(&self, event: Event) {
        // The stream owns both ends, so the receiver exists.
        let _ = self.0.send(event).await;
    }
}

type Work = Pin<Box<dyn Future<Output = Result<(), ModelError>> + Send>>;

/// A response as it arrives.
///
/// There is no task behind it: the work runs while the reader waits for events. So dropping it
/// closes the connection at once, and a slow reader slows the provider down.
pub struct Stream {
    work: Option<Work>,
    events: mpsc::Receiver<Event>,
    failure: Option<ModelError>,
}

impl Stream {
    /// A stream of the events that `work` sends. An error of `work` is its last item.
    pub fn new<F, W>(work: F) -> Self
    where
        F: FnOnce(Events) -> W,
        W: Future<Output = Result<(), ModelError>> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(16);
        Stream { work: Some(Box::pin(work(Events(sender)))), events, failure: None }
    }

    /// A stream that only fails.
    pub fn failed(error: ModelError) -> Self {
        Stream::new(|_| async move { Err(error) })
    }

    /// The next event; `None` after [`Event::End`] or an error. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Event, ModelError>> {
        loop {
            let Stream { work, events, failure } = self;
            let Some(running) = work else {
                return match events.recv().await {
                    Some(event) => Some(Ok(event)),
                    None => failure.take().map(Err),
                };
            };
            tokio::select! {
                biased;
                Some(event) = events.recv() => return Some(Ok(event)),
                end = running => {
                    *work = None;
                    *failure = end.err();
                }
            }
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("working", &self.work.is_some()).finish_non_exhaustive()
    }
}
