//! State of a running turn.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use attache_conn::{CancelToken, PeerUnless, Responder};
use attache_wire::v1::{MessageId, PromptResponse, SessionId, ToolCallId};
use attache_wire::v2::{
    PromptResponse as PromptResponseV2, RequiresActionStateUpdate, RunningStateUpdate, StateUpdate,
};
use attache_wire::{Meta, Request};
use serde::Serialize;
use tokio::sync::{Notify, oneshot};

use super::client::{self, ClientHandle, Outgoing, Recordable, TextChunk};
use super::sender::UpdateSender;
use super::shared::SessionShared;
use super::steering::Steering;
use super::tool::ToolShared;
use super::tool_state::ToolUpdate;
use super::v2;
use crate::id::unique_id;
use crate::race::{First, race};
use crate::task::lock;
use crate::{Error, Prompt, Result};

/// State that all handles of a turn share. It does not hold the session, so a session may keep a
/// handle.
pub(super) struct TurnState {
    client: ClientHandle,
    shared: Arc<SessionShared>,
    /// Raised when the user cancels and when the turn ends.
    token: CancelToken,
    /// Set when the handler has returned; nothing is sent afterwards.
    over: AtomicBool,
    /// Questions to the user that are open.
    questions: AtomicUsize,
    /// Tool calls that have not ended. Locked before the connection.
    tools: Mutex<Vec<Arc<ToolShared>>>,
    /// Background work that keeps the turn open in version 1.
    holds: AtomicUsize,
    released: Notify,
    /// The response so far; its stop reason is set at the end.
    pub(super) response: Mutex<PromptResponse>,
    meta: Option<Meta>,
    /// Later prompts that the turn may take.
    steering: Option<Steering>,
}

impl TurnState {
    pub(super) fn new(
        client: ClientHandle,
        shared: Arc<SessionShared>,
        token: CancelToken,
        meta: Option<Meta>,
        steering: Option<Steering>,
    ) -> Arc<Self> {
        Arc::new(TurnState {
            client,
            shared,
            token,
            over: AtomicBool::new(false),
            questions: AtomicUsize::new(0),
            tools: Mutex::new(Vec::new()),
            holds: AtomicUsize::new(0),
            released: Notify::new(),
            response: Mutex::new(PromptResponse::new(attache_wire::v1::StopReason::EndTurn)),
            meta,
            steering,
        })
    }

    pub(super) fn token(&self) -> &CancelToken {
        &self.token
    }

    pub(super) fn shared(&self) -> &Arc<SessionShared> {
        &self.shared
    }

    pub(super) fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    pub(super) fn steering(&self) -> Option<&Steering> {
        self.steering.as_ref()
    }

    // Inlined, because otherwise its future is copied twice.
    #[inline]
    pub(super) async fn chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        self.update(&TextChunk { kind, text }).await
    }

    /// Sends while the turn runs and is not cancelled.
    // CANCEL-04: a handler that uses `?` stops here.
    #[inline]
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

    /// Like [`request`](Self::request), but never cancels the request, because its effect has to be
    /// undone: if the caller no longer waits, the value that `make` returns is dropped.
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
        &self.shared.id
    }

    /// The client, for messages that must not be sent after the turn.
    #[inline]
    fn peer(&self) -> PeerUnless<'_> {
        self.client.peer().unless(&self.over)
    }

    fn outgoing<U>(&self, update: U) -> Outgoing<'_, U> {
        self.client.outgoing(&self.shared.id, &self.shared.ids, update)
    }

    // V2-13: reports that the turn waits for the user, until the returned value is dropped.
    pub(super) fn question(&self) -> OpenQuestion<'_> {
        if self.questions.fetch_add(1, Ordering::AcqRel) == 0 {
            self.send_state(RequiresActionStateUpdate::new().into());
        }
        OpenQuestion(self)
    }

    /// Reports a state unless the turn is over or cancelled.
    fn send_state(&self, state: StateUpdate) {
        if !self.token.is_cancelled() && !self.is_over() {
            self.shared.send_state(&self.client, state);
        }
    }

    fn record_prompt(&self, prompt: &Prompt) {
        if let Some(recorder) = self.client.recorder() {
            recorder.push_prompt(&self.shared.id, prompt);
        }
    }

    /// Inserts a prompt into the conversation. In version 2 that answers it. The caller flushes the
    /// records.
    // V2-08, V2-10
    pub(super) fn insert_prompt(&self, responder: &mut Option<Responder>, prompt: &mut Prompt) {
        let Some(ids) = &self.shared.ids else { return self.record_prompt(prompt) };
        let Some(responder) = responder.take() else { return };
        lock(ids).end_message();
        let id: MessageId = unique_id("msg");
        let message = v2::UserMessage { id: &id, content: prompt.blocks() };
        self.client
            .peer()
            .notify_now("session/update", &v2::Params { session: &self.shared.id, update: message });
        prompt.set_message_id(id.clone());
        self.record_prompt(prompt);
        responder.ok(&PromptResponseV2::new(id));
    }

    /// Reports that the work begins.
    // V2-11
    pub(super) fn begins(&self) {
        self.shared.send_state(&self.client, RunningStateUpdate::new());
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Registers a tool call that is about to be reported, so that the end of the turn finds it.
    pub(super) fn tool_starts(&self, tool: Arc<ToolShared>) {
        tool.register(self);
        lock(&self.tools).push(tool);
    }

    pub(super) fn tool_forgotten(&self, id: &ToolCallId) {
        lock(&self.tools).retain(|open| open.id != *id);
    }

    /// Reports the end of a tool call, even if the turn is cancelled, but not if it is over. Does
    /// not wait for room, so that it happens in one step with the check and cannot cross the end of
    /// the turn.
    // CANCEL-07, CANCEL-08
    pub(super) async fn tool_ends(&self, tool: &ToolShared, update: &ToolUpdate<'_>) -> Result<()> {
        let peer = self.client.peer();
        let sent = {
            let mut open = lock(&self.tools);
            if self.is_over() {
                return Err(Error::Cancelled);
            }
            open.retain(|open| open.id != tool.id);
            self.peer().notify_now("session/update", &self.outgoing(update))
        };
        tool.ended();
        self.client.flush_records();
        match sent {
            true => Ok(()),
            false if peer.is_closed() => Err(peer.closed().await.into()),
            false => Err(Error::internal("the update of a tool call could not be sent")),
        }
    }

    /// Lets a tool call outlive the turn.
    pub(super) fn tool_detaches(&self, tool: &ToolShared) -> Result<()> {
        let mut open = lock(&self.tools);
        if self.is_over() || self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        open.retain(|open| open.id != tool.id);
        tool.detach(UpdateSender::Session(self.client.clone(), self.shared.clone()));
        Ok(())
    }

    /// Sends an update that ends something, unless the turn is over.
    pub(super) fn update_now<U: Recordable>(&self, update: &U) -> bool {
        let sent = self.peer().notify_now("session/update", &self.outgoing(update));
        self.client.flush_records();
        sent
    }

    /// Keeps the turn open until the returned value is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> Result<Hold> {
        if self.is_over() || self.token.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.holds.fetch_add(1, Ordering::AcqRel);
        Ok(Hold(self.clone()))
    }

    /// Waits until nothing keeps the turn open.
    pub(super) async fn until_released(&self) {
        loop {
            let released = self.released.notified();
            if self.holds.load(Ordering::Acquire) == 0 {
                return;
            }
            released.await;
        }
    }

    /// Ends the turn: nothing more is sent, and all waits end.
    fn end(&self) {
        if let Some(steering) = &self.steering {
            steering.close();
        }
        let open = {
            let mut tools = lock(&self.tools);
            self.over.store(true, Ordering::SeqCst);
            std::mem::take(&mut *tools)
        };
        // TOOL-10: no tool call is left without an end.
        for tool in open {
            tool.abandon_with(self.token.is_cancelled(), |update| {
                self.client.peer().notify_now("session/update", &self.outgoing(update));
            });
        }
        self.client.flush_records();
        self.token.cancel();
    }
}

/// Keeps a turn open.
pub(super) struct Hold(Arc<TurnState>);

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.holds.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.released.notify_waiters();
        }
    }
}

/// An open question to the user.
pub(super) struct OpenQuestion<'a>(&'a TurnState);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.0.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.send_state(RunningStateUpdate::new().into());
        }
    }
}

/// Ends a turn even if its task is dropped.
pub(super) struct Ending<'a>(pub(super) &'a TurnState);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
