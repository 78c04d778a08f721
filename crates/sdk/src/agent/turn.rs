//! One turn: from a prompt to its response.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_conn::{CancelToken, PeerUnless, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Meta;
use attache_wire::Request;
use attache_wire::v1::{
    ContentBlock, ContentChunk, Cost, MessageId, Plan, PlanEntry, PromptRequest, PromptResponse, SessionId,
    SessionUpdate, StopReason, ToolCallId, ToolCallStatus, ToolCallUpdate, UsageUpdate,
};
use attache_wire::v2::{
    IdleStateUpdate, PromptResponse as PromptResponseV2, RequiresActionStateUpdate, RunningStateUpdate,
    StateUpdate,
};
use serde::Serialize;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::client::{self, CancelledCall, ClientHandle, Outgoing, Recordable, SharedIds, TextChunk};
use super::table::TurnSlot;
use super::tool::ToolBuilder;
use super::v2;
use crate::id::unique_id;
use crate::race::{First, race};
use crate::report::ErrorReporter;
use crate::task::catch;
use crate::task::lock;
use crate::{Error, Prompt, Result};

/// One prompt that is being answered: sends text, plans and tool calls to the client.
///
/// A turn borrows, so it cannot be kept beyond the prompt handler, and nothing is sent after the response:
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
    inner: &'a Arc<Inner>,
}

/// A turn for background tasks. It does not borrow; instead, everything fails with [`Error::Cancelled`] once the turn has
/// ended.
///
/// Example: [`Turn`].
#[derive(Clone)]
pub struct DetachedTurn {
    inner: Arc<Inner>,
}

/// State that all handles of a turn share. It does not hold the session, so a session may keep a handle.
pub(super) struct Inner {
    client: ClientHandle,
    session: SessionId,
    /// Raised when the user cancels and when the turn ends.
    token: CancelToken,
    /// Set when the handler has returned; nothing is sent afterwards.
    over: AtomicBool,
    ids: SharedIds,
    /// Questions to the user that are open.
    questions: AtomicUsize,
    /// Tool calls that have not ended. Locked before the connection.
    tools: Mutex<Vec<ToolCallId>>,
    /// The response so far; its stop reason is set at the end.
    pub(super) response: Mutex<PromptResponse>,
    meta: Option<Meta>,
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

    /// Reports the plan, which replaces the one before.
    // PLAN-03
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.send(SessionUpdate::Plan(Plan::new(entries))).await
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
        let update = self.inner.client.adapt(update)?;
        if self.client().is_v2() && matches!(update, SessionUpdate::CurrentModeUpdate(_)) {
            return Err(Error::Unsupported("modes; use `SessionHandle::set_mode`"));
        }
        self.inner.update(&update).await
    }

    /// Describes a tool call; [`ToolBuilder::start`] reports it.
    ///
    /// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
    pub fn tool(&self, title: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(self.inner.clone(), title.into())
    }

    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        &self.inner.session
    }

    /// The client.
    pub fn client(&self) -> &ClientHandle {
        &self.inner.client
    }

    /// `_meta` of the prompt, such as W3C trace context.
    // EXT-10
    pub fn meta(&self) -> Option<&Meta> {
        self.inner.meta.as_ref()
    }

    /// The cancel token of the turn, for model calls and tools.
    // CANCEL-04
    pub fn cancellation(&self) -> &CancelToken {
        &self.inner.token
    }

    /// Whether the turn was cancelled or has ended.
    pub fn is_cancelled(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// Runs a future until it ends or the turn is cancelled.
    pub async fn until_cancelled<F: Future>(&self, future: F) -> Result<F::Output> {
        match race(pin!(future), pin!(self.inner.token.cancelled())).await {
            First::Left(output) => Ok(output),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// Returns a handle for background tasks.
    pub fn detach(&self) -> DetachedTurn {
        DetachedTurn { inner: self.inner.clone() }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
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
        f.debug_tuple("DetachedTurn").field(&self.inner.session).finish()
    }
}

impl Inner {
    async fn chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        self.update(&TextChunk { kind, text }).await
    }

    /// Sends while the turn runs and is not cancelled.
    // CANCEL-04: a handler that uses `?` stops here.
    pub(super) async fn update<U: Recordable>(&self, update: &U) -> Result<()> {
        if self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let params = self.outgoing(update);
        let sending = pin!(self.peer().notify("session/update", &params));
        let sent = race(sending, pin!(self.token.cancelled())).await;
        self.client.flush_records();
        match sent {
            First::Left(sent) => Ok(sent?),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// Sends a request; when the turn is cancelled or ends, the request is cancelled too.
    pub(super) async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        self.request_as::<R>(request).await
    }

    /// Sends a request in another form; its response is the same.
    pub(super) async fn request_as<R: Request>(&self, request: &impl Serialize) -> Result<R::Response> {
        if self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let asking = pin!(self.peer().call(R::METHOD, request));
        match race(asking, pin!(self.token.cancelled())).await {
            First::Left(Ok(raw)) => client::decode::<R>(&raw),
            First::Left(Err(error)) => Err(error.into()),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// Like [`request`](Self::request), but never cancels the request, because its effect has to be undone: if the caller no
    /// longer waits, the value that `make` returns is dropped.
    pub(super) async fn request_without_cancel<R: Request, T: Send + 'static>(
        &self,
        request: &R,
        make: impl FnOnce(R::Response) -> T + Send + 'static,
    ) -> Result<T> {
        if self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (sender, made) = oneshot::channel();
        self.peer().call_with(R::METHOD, request, |answer| {
            let answer = answer.map(|raw| client::decode::<R>(raw).map(make));
            let _ = sender.send(answer);
        });
        match race(made, pin!(self.token.cancelled())).await {
            First::Left(Ok(Ok(made))) => made,
            First::Left(Ok(Err(error))) => Err(error.into()),
            First::Left(Err(_)) => Err(Error::internal("the request was not answered")),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    pub(super) fn client(&self) -> &ClientHandle {
        &self.client
    }

    pub(super) fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// The client, for messages that must not be sent after the turn.
    fn peer(&self) -> PeerUnless<'_> {
        self.client.peer().unless(&self.over)
    }

    fn outgoing<U>(&self, update: U) -> Outgoing<'_, U> {
        self.client.outgoing(&self.session, &self.ids, update)
    }

    // V2-13: reports that the turn waits for the user, until the returned value is dropped.
    pub(super) fn question(&self) -> Question<'_> {
        if self.questions.fetch_add(1, Ordering::AcqRel) == 0 {
            self.send_state(RequiresActionStateUpdate::new().into());
        }
        Question(self)
    }

    /// Reports a state unless the turn is over or cancelled.
    fn send_state(&self, state: StateUpdate) {
        if !self.token.is_cancelled() && !self.is_over() {
            self.client.send_state(&self.session, state);
        }
    }

    fn record_prompt(&self, prompt: &Prompt) {
        if let Some(recorder) = self.client.recorder() {
            recorder.prompt(&self.session, prompt);
        }
    }

    /// Takes the prompt over in version 2: answers it, echoes the message and reports that work begins.
    // V2-08, V2-10, V2-11
    fn insert_prompt(&self, responder: &mut Option<Responder>, prompt: &Prompt) {
        let Some(ids) = &self.ids else { return };
        let Some(responder) = responder.take() else { return };
        lock(ids).end_message();
        let id: MessageId = unique_id("msg");
        let message = v2::UserMessage { id: &id, content: prompt.blocks() };
        self.client
            .peer()
            .notify_now("session/update", &v2::Params { session: &self.session, update: message });
        self.record_prompt(prompt);
        responder.ok(&PromptResponseV2::new(id));
        self.client.send_state(&self.session, RunningStateUpdate::new().into());
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Registers a tool call that is about to be reported, so that the end of the turn finds it.
    pub(super) fn tool_starts(&self, id: &ToolCallId) {
        lock(&self.tools).push(id.clone());
    }

    pub(super) fn tool_forgotten(&self, id: &ToolCallId) {
        lock(&self.tools).retain(|open| open != id);
    }

    /// Reports the end of a tool call, even if the turn is cancelled, but not if it is over. Does
    /// not wait for room, so that it happens in one step with the check and cannot cross the end of
    /// the turn.
    // CANCEL-07, CANCEL-08
    pub(super) async fn tool_ends(&self, change: ToolCallUpdate) -> Result<()> {
        let peer = self.client.peer();
        let sent = {
            let mut open = lock(&self.tools);
            if self.is_over() {
                return Err(Error::Cancelled);
            }
            open.retain(|open| *open != change.tool_call_id);
            let update = SessionUpdate::ToolCallUpdate(Box::new(change));
            self.peer().notify_now("session/update", &self.outgoing(update))
        };
        self.client.flush_records();
        match sent {
            true => Ok(()),
            false if peer.is_closed() => Err(peer.closed().await.into()),
            false => Err(Error::internal("the update of a tool call could not be sent")),
        }
    }

    /// Ends the turn: nothing more is sent, and all waits end.
    fn end(&self) {
        let open = {
            let mut tools = lock(&self.tools);
            self.over.store(true, Ordering::SeqCst);
            std::mem::take(&mut *tools)
        };
        // TOOL-10: no tool call is left without an end.
        for id in open {
            let update = ToolCallUpdate::new(id).status(ToolCallStatus::Failed);
            let update = SessionUpdate::ToolCallUpdate(Box::new(update));
            match self.token.is_cancelled() {
                true => {
                    self.client.peer().notify_now("session/update", &self.outgoing(CancelledCall(update)))
                }
                false => self.client.peer().notify_now("session/update", &self.outgoing(update)),
            };
        }
        self.client.flush_records();
        self.token.cancel();
    }
}

/// An open question to the user.
pub(super) struct Question<'a>(&'a Inner);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.0.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.send_state(RunningStateUpdate::new().into());
        }
    }
}

/// Ends a turn even if its task is dropped.
struct Ending<'a>(&'a Inner);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A prompt and everything that its task needs.
pub(super) struct TurnTask {
    pub(super) client: ClientHandle,
    pub(super) errors: ErrorReporter,
    pub(super) running: TurnSlot,
    /// An earlier change of modes or options; the turn starts after it.
    pub(super) changing: Option<CancelToken>,
    pub(super) responder: Responder,
    pub(super) prompt: Prompt,
    pub(super) meta: Option<Meta>,
    /// Time for the handler to end after a cancel.
    pub(super) grace: Duration,
}

/// Runs a prompt handler and sends the response.
pub(super) async fn run(task: TurnTask) {
    let TurnTask { client, errors, running, changing, responder, prompt, meta, grace } = task;
    let token = responder.cancellation();
    let inner = Arc::new(Inner {
        client,
        session: running.entry().id.clone(),
        token: token.clone(),
        over: AtomicBool::new(false),
        ids: running.entry().ids.clone(),
        questions: AtomicUsize::new(0),
        tools: Mutex::new(Vec::new()),
        response: Mutex::new(PromptResponse::new(StopReason::EndTurn)),
        meta,
    });
    let span = tracing::debug_span!(parent: &running.entry().span, "turn", session = %inner.session);
    let in_v2 = inner.client.is_v2();
    if !in_v2 {
        inner.record_prompt(&prompt);
    }
    let turn = Turn { inner: &inner };
    let ending = Ending(&inner);
    let mut responder = Some(responder);
    let outcome = {
        // CANCEL-06: a panic is caught like any other failure, so that a cancelled turn ends as one.
        let handler = async {
            if in_v2 {
                turn.until_cancelled(running.wait_turn()).await?; // V2-15
            } else {
                running.wait_turn().await;
            }
            if let Some(change) = changing {
                turn.until_cancelled(change.cancelled()).await?;
            }
            inner.insert_prompt(&mut responder, &prompt);
            running.entry().session.prompt(turn, prompt).await
        };
        let handler = pin!(catch(handler.instrument(span.clone())));
        let given_up = pin!(async {
            token.cancelled().await;
            tokio::time::sleep(grace).await;
        });
        match race(handler, given_up).await {
            First::Left(outcome) => outcome.unwrap_or_else(Err),
            First::Right(()) => Err(Error::Cancelled),
        }
        // The handler is dropped here, which releases its terminals (TERM-05).
    };
    // CANCEL-05, CANCEL-06, CANCEL-23: the token decides, not the result of the handler. PROMPT-20: any other failure is an
    // error, never an invented stop reason.
    let outcome = if token.is_cancelled() { Ok(StopReason::Cancelled) } else { outcome };
    drop(ending);
    tracing::debug!(parent: &span, ok = outcome.is_ok(), "turn ended");
    let error = |error: &Error| errors.respond(PromptRequest::METHOD, Some(&inner.session), error);
    running.finish(|| match (responder, outcome) {
        // V2-15: the prompt was cancelled before it was inserted.
        (Some(responder), Ok(StopReason::Cancelled)) if in_v2 => responder.err(ErrorObject::cancelled()),
        (Some(responder), Ok(stop_reason)) => {
            let mut response = lock(&inner.response);
            response.stop_reason = stop_reason;
            responder.ok(&*response);
        }
        (Some(responder), Err(failed)) => responder.err(error(&failed)),
        // V2-09, V2-11, V2-12, V2-14
        (None, outcome) => {
            let reason = v2::stop_reason(outcome.map_err(|failed| error(&failed)));
            let idle = IdleStateUpdate::new(reason);
            #[cfg(feature = "unstable")]
            let idle = idle.usage(lock(&inner.response).usage.take());
            inner.client.send_state(&inner.session, idle.into());
        }
    });
}
