//! Work that continues beside the turns of a session.

use std::fmt;
use std::ops::Deref;

use attache_wire::v2::ToolCallStatus as ToolStatus;

use super::content::ToolContent;
use super::message::Message;
use super::sender::UpdateSender;
use super::tool::Tool;
use super::tool_state::ToolChange;
use super::turn_state::Hold;
use crate::{Error, Result};

/// A tool call that outlives its turn. Made by [`Tool::into_background`]; dropped without an end,
/// it is reported as failed, or as cancelled if it was.
///
/// In version 2 the turn ends meanwhile. The call is listed in every state of the session until its
/// end is reported, continues when the user cancels a turn, and ends when the session is closed,
/// which raises its [token](Tool::cancellation). It may [speak](BackgroundTool::message) while no
/// turn runs.
///
/// Version 1 knows no work outside of turns: there the turn stays open until its background work
/// has ended, and a cancel of the turn cancels it.
///
/// ```
/// use attache::agent::{Tool, Turn};
///
/// async fn watch(turn: Turn<'_>) -> attache::Result<()> {
///     let work = turn.tool("Watch the build").start().await?.into_background()?;
///     tokio::spawn(async move {
///         work.until_cancelled(std::future::ready("built")).await?; // here: the build
///         work.message().say("The build is done.").await?;
///         work.complete([]).await
///     });
///     Ok(())
/// }
/// ```
// V2-36
pub struct BackgroundTool {
    tool: Tool,
    /// Keeps the turn open in version 1.
    _hold: Option<Hold>,
}

impl BackgroundTool {
    pub(super) fn new(tool: Tool) -> Result<Self> {
        let UpdateSender::Turn(turn) = tool.shared.sender() else {
            return Err(Error::Invalid("the tool call is in the background already".to_owned()));
        };
        if !turn.client().is_v2() {
            return Ok(BackgroundTool { _hold: Some(turn.hold()?), tool });
        }
        turn.tool_detaches(&tool.shared)?;
        turn.shared().background_starts(turn.client(), tool.shared.clone());
        Ok(BackgroundTool { tool, _hold: None })
    }

    /// Starts a message of the agent, also while no turn runs.
    pub fn message(&self) -> Message {
        Message::answer(self.tool.shared.sender())
    }

    /// Reports success. Without content the call keeps its present content.
    pub async fn complete(self, content: impl IntoIterator<Item = ToolContent>) -> Result<()> {
        let content: Vec<_> = content.into_iter().collect();
        let change = ToolChange::new().status(ToolStatus::Completed);
        self.tool.update(if content.is_empty() { change } else { change.content(content) }).await
    }

    /// Reports a failure; `why` is shown to the user.
    pub async fn fail(self, why: impl Into<String>) -> Result<()> {
        self.tool.update(ToolChange::new().status(ToolStatus::Failed).content([why.into().into()])).await
    }

    /// Reports that the work was cancelled.
    pub async fn cancel(self) -> Result<()> {
        self.tool.update(ToolChange::new().status(ToolStatus::Cancelled)).await
    }
}

/// Gives the updates and the token of the call.
impl Deref for BackgroundTool {
    type Target = Tool;

    fn deref(&self) -> &Tool {
        &self.tool
    }
}

impl Drop for BackgroundTool {
    fn drop(&mut self) {
        let tool = &self.tool.shared;
        // In version 1 the end of the turn reports it.
        if matches!(tool.sender(), UpdateSender::Session(..)) && !tool.has_ended() {
            tool.abandon(false);
        }
    }
}

impl fmt::Debug for BackgroundTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackgroundTool").field(self.tool.id()).finish()
    }
}
