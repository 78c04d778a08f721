//! One turn: from a prompt to its answer.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use attache_conn::{CancelToken, Responder};
use attache_wire::v1::{
    ContentBlock, ContentChunk, Cost, Plan, PlanEntry, PromptResponse, SessionId, SessionUpdate, StopReason,
    ToolCallId, ToolCallStatus, ToolCallUpdate, Usage, UsageUpdate,
};
use serde::Serialize;
use tokio::sync::Notify;

use super::client::{Client, Outgoing, TextChunk};
use super::table::{Entry, Running, lock};
use super::tool::ToolBuilder;
use crate::race::{First, race};
use crate::{Error, Prompt, Result};

/// The turn that a prompt opened: the way to say something to the client.
///
/// It borrows, so it cannot be kept beyond the prompt handler, and nothing can be sent after the turn's answer:
///
/// ```compile_fail
/// use attache::agent::{Session, Turn};
/// use attache::{Prompt, Result, StopReason};
///
/// struct Late;
/// impl Session for Late {
///     async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
///         tokio::spawn(async move { turn.say("too late").await }); // `turn` does not live long enough
///         Ok(StopReason::EndTurn)
///     }
/// }
/// ```
///
/// Agents that work in background tasks use [`Turn::detach`].
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    inner: &'a Arc<Inner>,
}

/// A turn for background tasks. It does not borrow; instead everything it sends fails once the turn has ended.
#[derive(Clone)]
pub struct DetachedTurn {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    client: Client,
    entry: Arc<Entry>,
    token: CancelToken,
    /// Set when the handler has returned; from then on nothing may be sent.
    ended: AtomicBool,
    /// Updates that are being sent right now. The answer waits for them.
    sending: AtomicUsize,
    sent: Notify,
    tools: Mutex<Vec<ToolCallId>>,
    next_tool: AtomicU64,
    usage: Mutex<Option<Usage>>,
}

impl Turn<'_> {
    /// Streams a piece of the answer.
    pub async fn say(&self, text: impl AsRef<str>) -> Result<()> {
        self.inner.chunk("agent_message_chunk", text.as_ref()).await
    }

    /// Streams a piece of reasoning.
    pub async fn think(&self, text: impl AsRef<str>) -> Result<()> {
        self.inner.chunk("agent_thought_chunk", text.as_ref()).await
    }

    /// Streams any block of content as part of the answer.
    pub async fn show(&self, block: impl Into<ContentBlock>) -> Result<()> {
        self.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(block))).await
    }

    /// Reports the plan: all entries, each time (PLAN-03).
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.send(SessionUpdate::Plan(Plan::new(entries))).await
    }

    /// Reports how full the context is, and what the session cost so far.
    pub async fn report_usage(&self, used: u64, size: u64, cost: Option<Cost>) -> Result<()> {
        self.send(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost))).await
    }

    /// Token counts to be added to the turn's answer (PROMPT-19).
    pub fn set_usage(&self, usage: Usage) {
        *lock(&self.inner.usage) = Some(usage);
    }

    /// Sends any update. Those that need a capability of the client are refused without it.
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        self.inner.client.takes(&update)?;
        self.inner.update(&update).await
    }

    /// Begins to describe a tool call; [`ToolBuilder::start`] reports it.
    pub fn tool(&self, title: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(self.inner.clone(), title.into())
    }

    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        &self.inner.entry.id
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The turn's cancel token, to hand to model calls and tools (CANCEL-04).
    pub fn cancellation(&self) -> &CancelToken {
        &self.inner.token
    }

    /// Whether the user has cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// Runs a future until it ends or the user cancels.
    pub async fn until_cancelled<F: Future>(&self, future: F) -> Result<F::Output> {
        match race(future, self.inner.token.cancelled()).await {
            First::Left(output) => Ok(output),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// A handle for background tasks that dies with the turn.
    pub fn detach(&self) -> DetachedTurn {
        DetachedTurn { inner: self.inner.clone() }
    }
}

impl DetachedTurn {
    /// The turn, as long as it runs; what is sent after its end fails with [`Error::Cancelled`].
    pub fn turn(&self) -> Turn<'_> {
        Turn { inner: &self.inner }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(self.session_id()).finish()
    }
}

impl fmt::Debug for DetachedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedTurn").field(&self.inner.entry.id).finish()
    }
}

impl Inner {
    /// TOOL-02: an id that no other tool call of the session has.
    pub(super) fn fresh_tool_id(&self) -> ToolCallId {
        let count = self.next_tool.fetch_add(1, Ordering::Relaxed);
        ToolCallId::from(format!(
            "call-{}-{count}",
            super::table::fresh_id().as_str().trim_start_matches("sess-")
        ))
    }

    async fn chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        self.update(&TextChunk { kind, text }).await
    }

    /// Sends while the turn runs and is not cancelled. CANCEL-04: a handler that uses `?` stops here.
    pub(super) async fn update<U: Serialize>(&self, update: &U) -> Result<()> {
        if self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let _sending = self.begin_sending()?;
        let outgoing = Outgoing { session: &self.entry.id, update };
        match race(self.client.peer.notify("session/update", &outgoing), self.token.cancelled()).await {
            First::Left(sent) => Ok(sent?),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// Sends also when the turn is cancelled: how a tool call ended (CANCEL-07, CANCEL-08).
    pub(super) async fn last_words<U: Serialize>(&self, update: &U) -> Result<()> {
        let _sending = self.begin_sending()?;
        let outgoing = Outgoing { session: &self.entry.id, update };
        Ok(self.client.peer.notify("session/update", &outgoing).await?)
    }

    /// Notes that an update is on its way. The count goes up before the look at `ended`, and the end looks at the count
    /// after it has set `ended`, so one of the two sees the other.
    fn begin_sending(&self) -> Result<Sending<'_>> {
        self.sending.fetch_add(1, Ordering::SeqCst);
        let sending = Sending(self);
        if self.ended.load(Ordering::SeqCst) { Err(Error::Cancelled) } else { Ok(sending) }
    }

    pub(super) fn tool_started(&self, id: &ToolCallId) {
        lock(&self.tools).push(id.clone());
    }

    pub(super) fn tool_ended(&self, id: &ToolCallId) {
        lock(&self.tools).retain(|open| open != id);
    }

    /// Ends the turn: nothing more is sent, and what is being sent is waited for.
    async fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        loop {
            let sent = self.sent.notified();
            if self.sending.load(Ordering::SeqCst) == 0 {
                break;
            }
            sent.await;
        }
        // TOOL-10: no tool call is left without an end.
        for id in lock(&self.tools).drain(..) {
            let update = SessionUpdate::ToolCallUpdate(Box::new(
                ToolCallUpdate::new(id).status(ToolCallStatus::Failed),
            ));
            self.client.peer.notify_now("session/update", &Outgoing { session: &self.entry.id, update });
        }
    }
}

struct Sending<'a>(&'a Inner);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if self.0.sending.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.ended.load(Ordering::SeqCst) {
            self.0.sent.notify_waiters();
        }
    }
}

/// A prompt on its way to its handler.
pub(super) struct Prompted {
    pub(super) client: Client,
    pub(super) entry: Arc<Entry>,
    pub(super) running: Running,
    pub(super) responder: Responder,
    pub(super) prompt: Prompt,
    /// How long a handler that does not look at its token may go on after a cancel.
    pub(super) grace: Duration,
}

/// Runs a prompt handler and answers for it.
pub(super) async fn run(prompted: Prompted) {
    let Prompted { client, entry, running, responder, prompt, grace } = prompted;
    let token = responder.cancellation();
    let inner = Arc::new(Inner {
        client,
        entry: entry.clone(),
        token: token.clone(),
        ended: AtomicBool::new(false),
        sending: AtomicUsize::new(0),
        sent: Notify::new(),
        tools: Mutex::new(Vec::new()),
        next_tool: AtomicU64::new(0),
        usage: Mutex::new(None),
    });
    let handler = entry.session.prompt(Turn { inner: &inner }, prompt);
    let given_up = async {
        token.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    let outcome = match race(handler, given_up).await {
        First::Left(outcome) => outcome,
        First::Right(()) => Err(Error::Cancelled),
    };
    inner.end().await;
    let usage = lock(&inner.usage).take();
    // CANCEL-05, CANCEL-06, CANCEL-23: the token decides, not what the handler made of it. PROMPT-20: any other failure
    // is an error, never a made-up stop reason.
    let outcome = if token.is_cancelled() { Ok(StopReason::Cancelled) } else { outcome };
    running.finish(|| match outcome {
        Ok(stop_reason) => responder.ok(&PromptResponse::new(stop_reason).usage(usage)),
        Err(error) => responder.err(error.to_wire()),
    });
}
