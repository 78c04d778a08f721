//! Tool calls: reported when they start, while they run, and when they end.

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

/// Describes a tool call before it is reported. Made by [`Turn::tool`](super::Turn::tool).
#[must_use = "nothing is reported before `start`"]
pub struct ToolBuilder {
    turn: Arc<Inner>,
    call: ToolCall,
}

impl ToolBuilder {
    pub(super) fn new(turn: Arc<Inner>, title: String) -> Self {
        // TOOL-02: an id that no other tool call of the session has, also if it is loaded once more.
        let call = ToolCall::new(unique_id("call"), title).status(ToolCallStatus::Pending);
        ToolBuilder { turn, call }
    }

    /// Uses the model's own id for the call; it must be unique within the session (TOOL-02).
    pub fn id(mut self, id: impl Into<ToolCallId>) -> Self {
        self.call.tool_call_id = id.into();
        self
    }

    /// What sort of tool it is, so that clients can choose an icon.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.call.kind = Some(kind);
        self
    }

    /// The tool's name, as the model knows it (TOOL-20).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.call.name = Some(name.into());
        self
    }

    /// What the tool was called with.
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.call.raw_input = Some(input.into());
        self
    }

    /// A file it touches (TOOL-18: absolute, the line counted from 1), for clients that follow along.
    pub fn location(mut self, path: impl Into<PathBuf>, line: Option<u32>) -> Self {
        let location = ToolCallLocation::new(text(path.into())).line(line.map(|line| line.max(1)));
        self.call.locations.get_or_insert_default().push(location);
        self
    }

    /// A piece of content.
    pub fn content(mut self, content: impl Into<ToolCallContent>) -> Self {
        self.call.content.get_or_insert_default().push(content.into());
        self
    }

    /// A change to a file; `old` is `None` for a new one (TOOL-15).
    pub fn diff(self, path: impl AsRef<Path>, old: Option<String>, new: impl Into<String>) -> Self {
        self.content(diff(path, old, new))
    }

    /// The call as it will be reported, for agents that write down first what they say.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Reports the call (TOOL-01). Paths that are not absolute are refused here, not by the client (ROOT-04).
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

/// A call that the client does not know; the end of the turn has nothing to say about it.
struct Unreported<'a> {
    turn: &'a Inner,
    id: &'a ToolCallId,
}

impl Drop for Unreported<'_> {
    fn drop(&mut self) {
        self.turn.tool_forgotten(self.id);
    }
}

/// A tool call that was reported. Unless it is [`complete`](Tool::complete)d or [`fail`](Tool::fail)ed, the end of the
/// turn reports it as failed (TOOL-10).
pub struct Tool {
    id: ToolCallId,
    /// What the client knows about the call by now.
    call: Mutex<ToolCall>,
    turn: Arc<Inner>,
    span: tracing::Span,
}

impl Tool {
    /// The call's id.
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Reports that the tool runs now (TOOL-08).
    pub async fn run(&self) -> Result<()> {
        self.update(self.change().status(ToolCallStatus::InProgress)).await
    }

    /// Replaces the call's content (TOOL-06).
    pub async fn show(&self, content: impl IntoIterator<Item = ToolCallContent>) -> Result<()> {
        self.update(self.change().content(content.into_iter().collect::<Vec<_>>())).await
    }

    /// Adds the live output of one of the client's terminals to the call (TOOL-16).
    pub async fn show_terminal(&self, terminal: &super::ClientTerminal) -> Result<()> {
        let mut content = lock(&self.call).content.clone().unwrap_or_default();
        content.push(terminal_content(terminal.id()));
        self.show(content).await
    }

    /// The tool did its work. Without content the call keeps what it shows.
    pub async fn complete(self, content: impl IntoIterator<Item = ToolCallContent>) -> Result<()> {
        let content: Vec<_> = content.into_iter().collect();
        let change = self.change().status(ToolCallStatus::Completed);
        self.update(if content.is_empty() { change } else { change.content(content) }).await
    }

    /// The tool failed, or was not allowed to run (PERM-10); `why` is shown to the user.
    pub async fn fail(self, why: impl Into<String>) -> Result<()> {
        let change = self.change().status(ToolCallStatus::Failed).content(vec![block(why.into())]);
        self.update(change).await
    }

    /// An update of this call, to be filled and sent.
    pub fn change(&self) -> ToolCallUpdate {
        ToolCallUpdate::new(self.id.clone())
    }

    /// Sends any update of this call. One that ends the call is sent also when the turn was cancelled (CANCEL-07).
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

    /// TOOL-05, TOOL-06: what an update mentions replaces what was there.
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

    /// The whole call as a permission request shows it.
    pub(super) fn for_permission(&self) -> ToolCallUpdate {
        ToolCallUpdate::from(lock(&self.call).clone())
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.id).finish()
    }
}

/// A change to a file as content of a tool call; `old` is `None` for a new file.
pub fn diff(path: impl AsRef<Path>, old: Option<String>, new: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(text(path.as_ref().to_owned()), new.into()).old_text(old))
}

/// A block of content as content of a tool call.
pub fn block(block: impl Into<ContentBlock>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(block))
}

fn terminal_content(id: &TerminalId) -> ToolCallContent {
    ToolCallContent::Terminal(TerminalContent::new(id.clone()))
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// ROOT-04, TOOL-15, TOOL-18: paths are absolute.
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
