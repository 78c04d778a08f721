//! Tool calls and their updates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache_conn::CancelToken;
use attache_wire::v1::{
    ContentBlock, Terminal as TerminalContent, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation,
    ToolKind,
};
use attache_wire::v2::ToolCallStatus as ToolStatus;
use attache_wire::{Json, Meta, Patch};

use super::background::BackgroundTool;
use super::content::ToolContent;
use super::own_terminal::OwnTerminalBuilder;
use super::sender::UpdateSender;
use super::shared::CancelKey;
use super::tool_state::{ToolAppend, ToolChange, ToolStart, ToolState, ToolUpdate};
use super::turn_state::TurnState;
use crate::id::unique_id;
use crate::task::lock;
use crate::{Edit, Error, Result};

/// A tool call before it is reported. Made by [`Turn::tool`](super::Turn::tool).
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
#[must_use = "nothing is reported before `start`"]
pub struct ToolBuilder {
    turn: Arc<TurnState>,
    id: ToolCallId,
    state: ToolState,
}

impl ToolBuilder {
    pub(super) fn new(turn: Arc<TurnState>, title: String) -> Self {
        // TOOL-02: unique within the session, even after it was loaded again.
        ToolBuilder { turn, id: unique_id("call"), state: ToolState { title, ..ToolState::default() } }
    }

    /// Sets the id, which must be unique within the session.
    // TOOL-02
    pub fn id(mut self, id: impl Into<ToolCallId>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the kind of tool, which decides about icons.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.state.kind = Some(kind);
        self
    }

    /// Sets the name by which the model calls the tool.
    // TOOL-20
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.state.name = Some(name.into());
        self
    }

    /// Sets the input of the tool.
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.state.raw_input = Some(input.into());
        self
    }

    /// Sets `_meta`.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.state.meta = Some(meta);
        self
    }

    /// Adds a file that the tool touches: an absolute path, and a line counted from 1.
    // TOOL-18
    pub fn location(mut self, path: impl Into<PathBuf>, line: Option<u32>) -> Self {
        let path = path.into().to_string_lossy().into_owned();
        let location = ToolCallLocation::new(path).line(line.map(|line| line.max(1)));
        self.state.locations.get_or_insert_default().push(location);
        self
    }

    /// Adds content.
    pub fn content(mut self, content: impl Into<ToolContent>) -> Self {
        self.state.content.get_or_insert_default().push(content.into());
        self
    }

    /// Adds a change of a file.
    // TOOL-15
    pub fn edit(self, edit: Edit) -> Self {
        self.content(edit)
    }

    /// Lets the client cancel this call alone: then [`Tool::cancellation`] is raised, and the agent
    /// ends the call. Version 1 can only cancel the turn, which raises it too.
    // V2-30
    pub fn cancellable(mut self) -> Self {
        self.state.cancellable = true;
        self
    }

    /// The call as it will be reported, in the form of version 1.
    pub fn call(&self) -> ToolCall {
        self.state.clone().into_v1(self.id.clone())
    }

    /// Reports the call.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a path is not absolute.
    // TOOL-01, ROOT-04
    pub async fn start(self) -> Result<Tool> {
        check_paths(self.state.locations.as_deref(), self.state.content.as_deref())?;
        let ToolBuilder { turn, id, state } = self;
        let shared = Arc::new(ToolShared {
            span: tracing::debug_span!("tool_call", id = %id, title = state.title),
            id,
            state: Mutex::default(),
            sender: Mutex::new(UpdateSender::Turn(turn.clone())),
            token: CancelToken::new(),
            cancellable: state.cancellable,
        });
        let tool = Arc::downgrade(&shared);
        turn.token().on_cancel(move || {
            // Background work continues (V2-15).
            if let Some(tool) = tool.upgrade().filter(|tool| tool.is_in_turn()) {
                tool.token.cancel();
            }
        });
        turn.tool_starts(shared.clone());
        let unreported = Unreported { turn: &turn, tool: &shared };
        turn.update(&ToolStart { id: &shared.id, state: &state }).await?;
        std::mem::forget(unreported);
        *lock(&shared.state) = state;
        Ok(Tool { shared })
    }
}

/// Unregisters a call that could not be reported.
struct Unreported<'a> {
    turn: &'a TurnState,
    tool: &'a ToolShared,
}

impl Drop for Unreported<'_> {
    fn drop(&mut self) {
        self.turn.tool_forgotten(&self.tool.id);
        self.tool.ended();
    }
}

/// State of a call that its handles, its terminals and its turn share.
pub(super) struct ToolShared {
    pub(super) id: ToolCallId,
    state: Mutex<ToolState>,
    sender: Mutex<UpdateSender>,
    /// Raised with that of the turn, as long as the call belongs to it.
    pub(super) token: CancelToken,
    pub(super) cancellable: bool,
    span: tracing::Span,
}

impl ToolShared {
    pub(super) fn sender(&self) -> UpdateSender {
        lock(&self.sender).clone()
    }

    fn is_in_turn(&self) -> bool {
        matches!(*lock(&self.sender), UpdateSender::Turn(_))
    }

    /// Sends further updates independently of the turn.
    pub(super) fn detach(&self, sender: UpdateSender) {
        *lock(&self.sender) = sender;
    }

    fn key(&self) -> CancelKey {
        CancelKey::Tool(self.id.clone())
    }

    /// Makes the call known to the client's cancel requests.
    pub(super) fn register(&self, turn: &TurnState) {
        if self.cancellable {
            turn.shared().add_cancellable(self.key(), self.token.clone());
        }
    }

    /// Forgets a call whose end was reported.
    pub(super) fn ended(&self) {
        let sender = self.sender();
        if self.cancellable {
            sender.shared().remove_cancellable(&self.key());
        }
        if let UpdateSender::Session(client, shared) = &sender {
            shared.background_ends(client, &self.id);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.state).status.as_ref().is_some_and(ToolStatus::is_final)
    }

    /// Applies a change. Returns the whole `_meta` if it changed, and content that is to be
    /// recorded.
    fn apply(&self, change: &ToolChange) -> (Option<Meta>, Option<Vec<ToolContent>>) {
        let mut state = lock(&self.state);
        state.apply(change);
        let meta = if change.meta.is_keep() { None } else { state.meta.clone() };
        let unrecorded = std::mem::take(&mut state.unrecorded).then(|| state.content.clone()).flatten();
        (meta, unrecorded)
    }

    async fn update(&self, change: ToolChange) -> Result<()> {
        let locations = if let Patch::Set(locations) = &change.locations { Some(&**locations) } else { None };
        let content = if let Patch::Set(content) = &change.content { Some(&**content) } else { None };
        check_paths(locations, content)?;
        if let Some(status) = &change.status {
            tracing::debug!(parent: &self.span, ?status, "tool call");
        }
        let (meta, unrecorded) = self.apply(&change);
        let update = ToolUpdate { id: &self.id, change: &change, meta: meta.as_ref(), unrecorded };
        let sender = self.sender();
        if !change.status.as_ref().is_some_and(ToolStatus::is_final) {
            return sender.send(&update).await;
        }
        match &sender {
            UpdateSender::Turn(turn) => turn.tool_ends(self, &update).await,
            UpdateSender::Session(..) => {
                let sent = sender.send_now(&update);
                self.ended();
                if sent { Ok(()) } else { Err(super::handle::session_over()) }
            }
        }
    }

    /// Reports the end of background work that its owner has left open.
    pub(super) fn abandon(&self, cancelled: bool) {
        self.abandon_with(cancelled, |update| {
            self.sender().send_now(update);
        });
    }

    /// Reports the end of a call that its owner has left open.
    // TOOL-10: no tool call is left without an end.
    pub(super) fn abandon_with(&self, cancelled: bool, send: impl FnOnce(&ToolUpdate<'_>)) {
        let cancelled = cancelled || self.token.is_cancelled();
        let status = if cancelled { ToolStatus::Cancelled } else { ToolStatus::Failed };
        let change = ToolChange::new().status(status);
        let (_, unrecorded) = self.apply(&change);
        send(&ToolUpdate { id: &self.id, change: &change, meta: None, unrecorded });
        self.ended();
    }

    pub(super) async fn append(&self, item: ToolContent) -> Result<()> {
        check_paths(None, Some(std::slice::from_ref(&item)))?;
        let sender = self.sender();
        let content = {
            let mut state = lock(&self.state);
            state.append(item.clone());
            state.content.clone().filter(|_| !sender.is_v2()).unwrap_or_default()
        };
        sender.send(&ToolAppend { id: &self.id, item: &item, content }).await
    }

    /// The whole content, of which a part has changed without a new item.
    pub(super) fn touched_content(&self, wanted: bool) -> Option<Vec<ToolContent>> {
        let mut state = lock(&self.state);
        state.unrecorded = true;
        wanted.then(|| state.content.clone().unwrap_or_default())
    }

    pub(super) fn title(&self) -> String {
        lock(&self.state).title.clone()
    }

    pub(super) fn snapshot(&self) -> ToolState {
        lock(&self.state).clone()
    }
}

/// A reported tool call. End it with [`complete`](Tool::complete), [`fail`](Tool::fail) or
/// [`cancel`](Tool::cancel); otherwise the end of the turn reports it as failed, or as cancelled if
/// it was.
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
// TOOL-10
pub struct Tool {
    pub(super) shared: Arc<ToolShared>,
}

impl Tool {
    /// The call's id.
    pub fn id(&self) -> &ToolCallId {
        &self.shared.id
    }

    /// Reports that the tool is running.
    // TOOL-08
    pub async fn run(&self) -> Result<()> {
        self.update(ToolChange::new().status(ToolStatus::InProgress)).await
    }

    /// Reports that the tool is interrupted and may continue; [`run`](Self::run) does. Version 1
    /// shows it as running.
    pub async fn pause(&self) -> Result<()> {
        self.update(ToolChange::new().status(ToolStatus::Paused)).await
    }

    /// Replaces the content.
    // TOOL-06
    pub async fn show(&self, content: impl IntoIterator<Item = ToolContent>) -> Result<()> {
        self.update(ToolChange::new().content(content)).await
    }

    /// Appends content. Version 1 gets the whole content so far, of which the SDK keeps the last
    /// mebibyte.
    // V2-17
    pub async fn append(&self, content: impl Into<ToolContent>) -> Result<()> {
        self.shared.append(content.into()).await
    }

    /// Reports a change of a file, beside the present content.
    // TOOL-15, V2-33
    pub async fn edit(&self, edit: Edit) -> Result<()> {
        self.append(edit).await
    }

    /// Describes a terminal of the agent, whose output the call shows;
    /// [`OwnTerminalBuilder::start`] reports it.
    pub fn terminal(&self, command: impl Into<String>) -> OwnTerminalBuilder {
        OwnTerminalBuilder::new(self.shared.clone(), command.into())
    }

    /// Shows the live output of a terminal of the client.
    // TOOL-16
    pub async fn show_terminal(&self, terminal: &super::ClientTerminal) -> Result<()> {
        let mut content = self.shared.snapshot().content.unwrap_or_default();
        let terminal = TerminalContent::new(terminal.id().clone());
        content.push(ToolCallContent::Terminal(terminal).into());
        self.show(content).await
    }

    /// Reports success. Without content the call keeps its present content.
    pub async fn complete(self, content: impl IntoIterator<Item = ToolContent>) -> Result<()> {
        let content: Vec<_> = content.into_iter().collect();
        let change = ToolChange::new().status(ToolStatus::Completed);
        self.update(if content.is_empty() { change } else { change.content(content) }).await
    }

    /// Reports a failure or a denied permission; `why` is shown to the user.
    // PERM-10
    pub async fn fail(self, why: impl Into<String>) -> Result<()> {
        self.update(ToolChange::new().status(ToolStatus::Failed).content([why.into().into()])).await
    }

    /// Reports that the call was cancelled. Version 1 shows it as failed.
    pub async fn cancel(self) -> Result<()> {
        self.update(ToolChange::new().status(ToolStatus::Cancelled)).await
    }

    /// The token that is raised when the user cancels the turn, or this call alone if it is
    /// [cancellable](ToolBuilder::cancellable).
    pub fn cancellation(&self) -> &CancelToken {
        &self.shared.token
    }

    /// Runs a future until it ends or the call is cancelled.
    pub async fn until_cancelled<F: Future>(&self, future: F) -> Result<F::Output> {
        super::turn::until_cancelled(&self.shared.token, future).await
    }

    /// Continues the call in the background, where it outlives its turn. See [`BackgroundTool`].
    pub fn into_background(self) -> Result<BackgroundTool> {
        BackgroundTool::new(self)
    }

    /// An empty change, for [`update`](Self::update).
    pub fn change(&self) -> ToolChange {
        ToolChange::new()
    }

    /// Sends a change of this call. One that ends the call is sent even if the turn was cancelled.
    // CANCEL-07
    pub async fn update(&self, change: impl Into<ToolChange>) -> Result<()> {
        self.shared.update(change.into()).await
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.shared.id).finish()
    }
}

/// A content block as tool call content.
///
/// ```
/// use attache::agent::{Tool, block};
///
/// async fn finish(tool: Tool) -> attache::Result<()> {
///     tool.complete([block("3 files changed")]).await
/// }
/// ```
pub fn block(block: impl Into<ContentBlock>) -> ToolContent {
    block.into().into()
}

// ROOT-04, TOOL-15, TOOL-18, V2-33: paths are absolute.
fn check_paths(locations: Option<&[ToolCallLocation]>, content: Option<&[ToolContent]>) -> Result<()> {
    let locations = locations.into_iter().flatten().map(|location| location.path.as_str());
    let edits = content.into_iter().flatten().filter_map(ToolContent::edit).flat_map(Edit::paths);
    match locations.chain(edits).find(|path| !Path::new(path).is_absolute()) {
        Some(path) => Err(Error::Invalid(format!("not an absolute path: `{path}`"))),
        None => Ok(()),
    }
}
