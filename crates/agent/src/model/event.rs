//! What comes back from a model while it answers.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::error::ModelError;
use super::message::ToolCall;

/// One event of an answer.
///
/// Calls carry an `index`, since some providers stream several at once. A [`Event::Seal`] belongs to the thoughts that
/// came directly before it, and to an empty thought if there were none; see [`Answer`](super::Answer), which puts all
/// of it together.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of text.
    Text(String),
    /// A piece of thought.
    Thought(String),
    /// The provider's signature for the thought that ends here.
    Seal(Value),
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
    /// A call is complete, or turned out to be none.
    CallEnds {
        /// Which call.
        index: usize,
        /// The call.
        call: Result<ToolCall, BadCall>,
    },
    /// What has been used for this answer so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The provider did not answer; it is asked again after this time. Comes before everything else only.
    Retry {
        /// How long from now.
        after: Duration,
        /// What went wrong.
        why: String,
    },
    /// The end; nothing follows.
    End(Stop),
}

/// A call whose arguments are no JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct BadCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as they came.
    pub raw: String,
    /// What is wrong with them, in words that help the model.
    pub why: String,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The model is done.
    Done,
    /// It waits for the results of its calls.
    Calls,
    /// The answer reached its limit of tokens.
    MaxTokens,
    /// The model or the provider would not answer this.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// What was read and not found in a cache.
    pub input: u64,
    /// What was written, thoughts included.
    pub output: u64,
    /// What was read from a cache.
    pub cache_read: u64,
    /// What was written to a cache.
    pub cache_write: u64,
    /// How much of `output` was thought, where the provider says so.
    pub thought: u64,
}

impl Usage {
    /// All that the model read: what the next request will fill its window with, apart from the answer.
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

/// Where a model puts its events; see [`Stream::new`].
pub struct Events(mpsc::Sender<Event>);

impl Events {
    /// Hands out one event; waits while the reader is behind.
    pub async fn send(&self, event: Event) {
        // The reader and the work live and die together, so there is nobody to tell if it is gone.
        let _ = self.0.send(event).await;
    }
}

type Work = Pin<Box<dyn Future<Output = Result<(), ModelError>> + Send>>;

/// An answer as it comes in.
///
/// There is no task behind it: the work is done while the reader waits for events. So dropping it closes the
/// connection at once, and a reader that waits for something else leaves the provider waiting too.
pub struct Stream {
    work: Option<Work>,
    events: mpsc::Receiver<Event>,
    failure: Option<ModelError>,
}

impl Stream {
    /// A stream of what `work` sends. An error of `work` is its last item.
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

    /// The next event; `None` after [`Event::End`] or an error. Giving up the wait loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event, ModelError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, ModelError>>> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(work) = &mut self.work
            && let Poll::Ready(end) = work.as_mut().poll(cx)
        {
            self.work = None;
            self.failure = end.err();
        }
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(Some(Ok(event))),
            Poll::Ready(None) => Poll::Ready(self.failure.take().map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("working", &self.work.is_some()).finish_non_exhaustive()
    }
}
