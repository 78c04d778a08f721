//! One turn: from a prompt to its response.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use attache_conn::CancelToken;
use attache_wire::Meta;
use attache_wire::v1::{
    ContentBlock, ContentChunk, Cost, Plan, PlanEntry, SessionId, SessionUpdate, UsageUpdate,
};
use attache_wire::v2::PlanId;

use super::client::ClientHandle;
use super::message::Message;
use super::plan::NamedPlan;
use super::sender::UpdateSender;
use super::tool::ToolBuilder;
use super::turn_state::TurnState;
use super::v2;
use crate::race::{First, race};
use crate::{Error, Prompt, Result};

/// One prompt that is being answered: sends text, plans and tool calls to the client.
///
/// A turn borrows, so it cannot be kept beyond the prompt handler, and nothing is sent after the
/// response:
///
/// ```compile_fail
/// use attache::agent::{AgentSession, Turn};
/// use attache::{Prompt, Result, StopReason};
///
/// struct Late;
/// impl AgentSession for Late {
///     async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
///         tokio::spawn(async move { turn.say("too late").await }); // `turn` does not live long enough
///         Ok(StopReason::EndTurn)
///     }
/// }
/// ```
///
/// Agents that work in background tasks use [`Turn::detach`]:
///
/// ```
/// use attache::agent::{AgentSession, Turn};
/// use attache::{Prompt, Result, StopReason};
///
/// struct Busy;
/// impl AgentSession for Busy {
///     async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
///         let detached = turn.detach();
///         let work = tokio::spawn(async move { detached.turn().say("from the background").await });
///         turn.until_cancelled(work).await?.map_err(attache::Error::internal)??;
///         Ok(StopReason::EndTurn)
///     }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    inner: &'a Arc<TurnState>,
}

/// A turn for background tasks. It does not borrow; instead, everything fails with
/// [`Error::Cancelled`] once the turn has ended.
///
/// Example: [`Turn`].
#[derive(Clone)]
pub struct DetachedTurn {
    inner: Arc<TurnState>,
}

impl Turn<'_> {
    /// Streams text of the answer.
    pub async fn say(&self, text: impl AsRef<str>) -> Result<()> {
        self.inner.chunk("agent_message_chunk", text.as_ref()).await
    }

    /// Streams text of the reasoning.
    pub async fn think(&self, text: impl AsRef<str>) -> Result<()> {
        self.inner.chunk("agent_thought_chunk", text.as_ref()).await
    }

    /// Streams a content block of the answer.
    pub async fn show(&self, block: impl Into<ContentBlock>) -> Result<()> {
        self.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(block))).await
    }

    /// Starts a message of the answer that can be changed later, beside the text of
    /// [`say`](Self::say).
    pub fn message(&self) -> Message {
        Message::answer(UpdateSender::Turn(self.inner.clone()))
    }

    /// Starts a thought that can be changed later, beside the text of [`think`](Self::think).
    pub fn thought(&self) -> Message {
        Message::thought(UpdateSender::Turn(self.inner.clone()))
    }

    /// Reports the plan, which replaces the one before.
    // PLAN-03
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.inner.shared().show_plan(&v2::PLAN.into());
        self.send(SessionUpdate::Plan(Plan::new(entries))).await
    }

    /// One of several plans, chosen by its id.
    pub fn plan_named(&self, id: impl Into<PlanId>) -> NamedPlan {
        NamedPlan::new(self.inner.clone(), id.into())
    }

    /// Reports the used context and the cost of the session.
    pub async fn report_usage(&self, used: u64, size: u64, cost: Option<Cost>) -> Result<()> {
        self.send(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost))).await
    }

    /// Sends any update.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the update needs a capability that the client does not have.
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        let update = self.inner.client().adapt(update)?;
        if self.client().is_v2() && matches!(update, SessionUpdate::CurrentModeUpdate(_)) {
            return Err(Error::Unsupported("modes; use `SessionHandle::set_mode`"));
        }
        self.inner.update(&update).await
    }

    /// Describes a tool call; [`ToolBuilder::start`] reports it.
    ///
    /// Example:
    /// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
    pub fn tool(&self, title: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(self.inner.clone(), title.into())
    }

    /// Waits for the next prompt that the user sends while this turn runs, and inserts it into the
    /// conversation. Dropping the future loses no prompt. A prompt that no turn takes starts a turn
    /// of its own.
    ///
    /// Only agents with [steering](super::Agent::steering) get prompts in this way; otherwise it
    /// waits until the turn is cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the turn is cancelled.
    pub async fn next_prompt(&self) -> Result<Prompt> {
        self.until_cancelled(self.inner.next_prompt()).await
    }

    /// Like [`next_prompt`](Self::next_prompt), but does not wait.
    pub fn take_prompt(&self) -> Option<Prompt> {
        self.inner.take_prompt()
    }

    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        self.inner.session_id()
    }

    /// The client.
    pub fn client(&self) -> &ClientHandle {
        self.inner.client()
    }

    /// `_meta` of the prompt, such as W3C trace context.
    // EXT-10
    pub fn meta(&self) -> Option<&Meta> {
        self.inner.meta()
    }

    /// The cancel token of the turn, for model calls and tools.
    // CANCEL-04
    pub fn cancellation(&self) -> &CancelToken {
        self.inner.token()
    }

    /// Whether the turn was cancelled or has ended.
    pub fn is_cancelled(&self) -> bool {
        self.inner.token().is_cancelled()
    }

    /// Runs a future until it ends or the turn is cancelled.
    pub async fn until_cancelled<F: Future>(&self, future: F) -> Result<F::Output> {
        until_cancelled(self.inner.token(), future).await
    }

    /// Returns a handle for background tasks.
    pub fn detach(&self) -> DetachedTurn {
        DetachedTurn { inner: self.inner.clone() }
    }

    pub(super) fn new(inner: &Arc<TurnState>) -> Turn<'_> {
        Turn { inner }
    }

    pub(super) fn inner(&self) -> &Arc<TurnState> {
        self.inner
    }
}

impl DetachedTurn {
    /// The turn.
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
        f.debug_tuple("DetachedTurn").field(self.inner.session_id()).finish()
    }
}

/// Runs a future until it ends or the token is raised.
pub(super) async fn until_cancelled<F: Future>(token: &CancelToken, future: F) -> Result<F::Output> {
    match race(pin!(future), pin!(token.cancelled())).await {
        First::Left(output) => Ok(output),
        First::Right(()) => Err(Error::Cancelled),
    }
}
