//! Tool calls and their updates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache_wire::Json;
use attache_wire::v1::{
    Content, ContentBlock, Diff, SessionUpdate, Terminal as TerminalContent, TerminalId, ToolCall,
    ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::turn::Inner;
use crate::id::unique_id;
use crate::task::lock;
use crate::{Error, Result};

/// A tool call before it is reported. Made by [`Turn::tool`](super::Turn::tool).
///
/// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
#[must_use = "nothing is reported before `start`"]
pub struct ToolBuilder {
    turn: Arc<Inner>,
    call: ToolCall,
}

impl ToolBuilder {
    pub(super) fn new(turn: Arc<Inner>, title: String) -> Self {
        // TOOL-02: unique within the session, even after it was loaded again.
        let call = ToolCall::new(unique_id::<ToolCallId>("call"), title).status(ToolCallStatus::Pending);
        ToolBuilder { turn, call }
    }

    /// Sets the id, which must be unique within the session.
    // TOOL-02
    pub fn id(mut self, id: impl Into<ToolCallId>) -> Self {
        self.call.tool_call_id = id.into();
        self
    }

    /// Sets the kind of tool, which decides about icons.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.call.kind = Some(kind);
        self
    }

    /// Sets the name by which the model calls the tool.
    // TOOL-20
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.call.name = Some(name.into());
        self
    }

    /// Sets the input of the tool.
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.call.raw_input = Some(input.into());
        self
    }

    /// Adds a file that the tool touches: an absolute path, and a line counted from 1.
    // TOOL-18
    pub fn location(mut self, path: impl Into<PathBuf>, line: Option<u32>) -> Self {
        let location = ToolCallLocation::new(text(path.into())).line(line.map(|line| line.max(1)));
        self.call.locations.get_or_insert_default().push(location);
        self
    }

    /// Adds content.
    pub fn content(mut self, content: impl Into<ToolCallContent>) -> Self {
        self.call.content.get_or_insert_default().push(content.into());
        self
    }

    /// Adds a change to a file; `old` is `None` for a new file.
    // TOOL-15
    pub fn diff(self, path: impl AsRef<Path>, old: Option<String>, new: impl Into<String>) -> Self {
        self.content(diff(path, old, new))
    }

    /// The call as it will be reported.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Reports the call.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a path is not absolute.
    // TOOL-01, ROOT-04
    pub async fn start(self) -> Result<Tool> {
        check_paths(self.call.locations.as_deref(), self.call.content.as_deref())?;
        let ToolBuilder { turn, call } = self;
        let span = tracing::debug_span!("tool_call", id = %call.tool_call_id, title = call.title);
        let id = call.tool_call_id.clone();
        turn.tool_starts(&id);
        let unreported = Unreported { turn: &turn, id: &id };
        let update = SessionUpdate::ToolCall(Box::new(call));
        turn.update(&update).await?;
        std::mem::forget(unreported);
        let SessionUpdate::ToolCall(call) = update else { return Err(Error::internal("no tool call")) };
        Ok(Tool { id, call: Mutex::new(*call), turn, span })
    }
}

/// Unregisters a call that could not be reported.
struct Unreported<'a> {
    turn: &'a Inner,
    id: &'a ToolCallId,
}

impl Drop for Unreported<'_> {
    fn drop(&mut self) {
        self.turn.tool_forgotten(self.id);
    }
}

/// A reported tool call. End it with [`complete`](Tool::complete) or [`fail`](Tool::fail); otherwise the end of the turn
/// reports it as failed.
///
/// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
// TOOL-10
pub struct Tool {
    id: ToolCallId,
    /// The call as the client knows it.
    call: Mutex<ToolCall>,
    turn: Arc<Inner>,
    span: tracing::Span,
}

impl Tool {
    /// The call's id.
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Reports that the tool is running.
    // TOOL-08
    pub async fn run(&self) -> Result<()> {
        self.update(self.change().status(ToolCallStatus::InProgress)).await
    }

    /// Replaces the content.
    // TOOL-06
    pub async fn show(&self, content: impl IntoIterator<Item = ToolCallContent>) -> Result<()> {
        self.update(self.change().content(content.into_iter().collect::<Vec<_>>())).await
    }

    /// Shows the live output of a terminal of the client.
    // TOOL-16
    pub async fn show_terminal(&self, terminal: &super::ClientTerminal) -> Result<()> {
        let mut content = lock(&self.call).content.clone().unwrap_or_default();
        content.push(terminal_content(terminal.id()));
        self.show(content).await
    }

    /// Reports success. Without content the call keeps its present content.
    pub async fn complete(self, content: impl IntoIterator<Item = ToolCallContent>) -> Result<()> {
        let content: Vec<_> = content.into_iter().collect();
        let change = self.change().status(ToolCallStatus::Completed);
        self.update(if content.is_empty() { change } else { change.content(content) }).await
    }

    /// Reports a failure or a denied permission; `why` is shown to the user.
    // PERM-10
    pub async fn fail(self, why: impl Into<String>) -> Result<()> {
        let change = self.change().status(ToolCallStatus::Failed).content(vec![block(why.into())]);
        self.update(change).await
    }

    /// An empty update of this call, for [`update`](Self::update).
    pub fn change(&self) -> ToolCallUpdate {
        ToolCallUpdate::new(self.id.clone())
    }

    /// Sends an update of this call. One that ends the call is sent even if the turn was cancelled.
    // CANCEL-07
    pub async fn update(&self, mut change: ToolCallUpdate) -> Result<()> {
        change.tool_call_id = self.id.clone();
        check_paths(change.locations.as_deref(), change.content.as_deref())?;
        self.remember(&change);
        if let Some(status) = &change.status {
            tracing::debug!(parent: &self.span, ?status, "tool call");
        }
        match change.status {
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => self.turn.tool_ends(change).await,
            _ => self.turn.update(&SessionUpdate::ToolCallUpdate(Box::new(change))).await,
        }
    }

    // TOOL-05, TOOL-06: members of an update replace the known ones.
    fn remember(&self, change: &ToolCallUpdate) {
        fn put<T: Clone>(known: &mut Option<T>, new: &Option<T>) {
            if new.is_some() {
                known.clone_from(new);
            }
        }
        let mut call = lock(&self.call);
        if let Some(title) = &change.title {
            call.title.clone_from(title);
        }
        put(&mut call.name, &change.name);
        put(&mut call.kind, &change.kind);
        put(&mut call.status, &change.status);
        put(&mut call.content, &change.content);
        put(&mut call.locations, &change.locations);
        put(&mut call.raw_input, &change.raw_input);
        put(&mut call.raw_output, &change.raw_output);
    }

    /// The call as a permission request shows it.
    pub(super) fn for_permission(&self) -> ToolCallUpdate {
        ToolCallUpdate::from(lock(&self.call).clone())
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.id).finish()
    }
}

/// A change to a file as tool call content; `old` is `None` for a new file.
///
/// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
pub fn diff(path: impl AsRef<Path>, old: Option<String>, new: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(text(path.as_ref().to_owned()), new.into()).old_text(old))
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
pub fn block(block: impl Into<ContentBlock>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(block))
}

fn terminal_content(id: &TerminalId) -> ToolCallContent {
    ToolCallContent::Terminal(TerminalContent::new(id.clone()))
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

// ROOT-04, TOOL-15, TOOL-18: paths are absolute.
fn check_paths(locations: Option<&[ToolCallLocation]>, content: Option<&[ToolCallContent]>) -> Result<()> {
    let locations = locations.into_iter().flatten().map(|location| location.path.as_str());
    let diffs = content.into_iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path.as_str()),
        _ => None,
    });
    match locations.chain(diffs).find(|path| !Path::new(path).is_absolute()) {
        Some(path) => Err(Error::Invalid(format!("not an absolute path: `{path}`"))),
        None => Ok(()),
    }
}
