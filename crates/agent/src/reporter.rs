//! Updates for the client, each logged before it is sent.
//!
//! Several tools may report at once. One lock covers the log and the connection, so both have the
//! same order.

use attache::agent::{SessionHandle, Tool, ToolBuilder, ToolChange, ToolStatus, Turn};
use attache::wire::v1::{ContentChunk, Notice, NoticeSeverity, SessionUpdate};
use attache::{Error, Result};
use serde::Serialize;

use crate::store::{Entry, Store};

/// Sends a session's updates to its client and its log.
pub(crate) struct Reporter {
    store: Store,
    id: String,
    order: tokio::sync::Mutex<()>,
}

impl Reporter {
    pub(crate) fn new(store: Store, id: impl Into<String>) -> Self {
        Reporter { store, id: id.into(), order: tokio::sync::Mutex::new(()) }
    }

    /// Logs entries that the client does not see.
    pub(crate) fn log(&self, entries: &[Entry]) -> Result<()> {
        self.store.append(&self.id, entries).map_err(Error::from)
    }

    fn log_update(&self, update: &impl Serialize) -> Result<()> {
        self.log(&[Entry::Update(serde_json::to_value(update)?)])
    }

    /// Sends an update. Fails if the turn is cancelled.
    pub(crate) async fn send(&self, turn: Turn<'_>, update: impl Into<SessionUpdate>) -> Result<()> {
        let update = update.into();
        let _order = self.order.lock().await;
        self.log_update(&update)?;
        turn.send(update).await
    }

    /// Sends an update that only some clients support. Returns whether this one does.
    pub(crate) async fn send_if_supported(&self, turn: Turn<'_>, update: SessionUpdate) -> Result<bool> {
        let session = turn.client().capabilities().session.as_ref();
        let supported = match &update {
            SessionUpdate::Notice(_) => session.is_some_and(|session| session.notices.is_some()), // NOTE-01
            SessionUpdate::CompactionUpdate(_) => session.is_some_and(|session| session.compaction.is_some()), // NOTE-06
            SessionUpdate::SubagentUpdate(_) => turn.client().capabilities().subagents.is_some(), // SUBA-01
            _ => true,
        };
        if supported {
            self.send(turn, update).await?;
        }
        Ok(supported)
    }

    /// Sends a notice, or text to a client without support for notices.
    pub(crate) async fn notify(&self, turn: Turn<'_>, severity: NoticeSeverity, title: &str) -> Result<()> {
        let notice = Notice::new(severity, title);
        if !self.send_if_supported(turn, SessionUpdate::Notice(notice)).await? {
            let chunk = ContentChunk::new(format!("*{title}*\n\n"));
            self.send(turn, SessionUpdate::AgentMessageChunk(chunk)).await?;
        }
        Ok(())
    }

    /// Sends the end of something that must have one, even in a cancelled turn. The
    /// turn's response comes later, because the turn waits for this.
    // CANCEL-07
    pub(crate) async fn send_despite_cancel(
        &self,
        session: &SessionHandle,
        update: impl Into<SessionUpdate>,
    ) -> Result<()> {
        let update = update.into();
        let _order = self.order.lock().await;
        self.log_update(&update)?;
        session.send(update).await
    }

    /// Reports a new tool call.
    // TOOL-01
    pub(crate) async fn start_tool(&self, tool: ToolBuilder) -> Result<Tool> {
        let _order = self.order.lock().await;
        self.log_update(&SessionUpdate::ToolCall(Box::new(tool.call())))?;
        tool.start().await
    }

    /// Reports a change of a tool call.
    pub(crate) async fn update_tool(&self, tool: &Tool, change: ToolChange) -> Result<()> {
        self.update_tool_as(tool, change.clone(), change).await
    }

    async fn update_tool_as(&self, tool: &Tool, stored: ToolChange, shown: ToolChange) -> Result<()> {
        let _order = self.order.lock().await;
        let update = stored.to_v1(tool.id().clone());
        self.log_update(&SessionUpdate::ToolCallUpdate(Box::new(update)))?;
        tool.update(shown).await
    }

    /// Reports the end of a tool call, even in a cancelled turn. A client that has gone
    /// is noticed elsewhere.
    // CANCEL-07
    pub(crate) async fn end_tool(&self, tool: &Tool, change: ToolChange, failed: bool) {
        self.end_tool_as(tool, change.clone(), change, failed).await;
    }

    /// Like `end_tool`, with another form for the log, which both versions can show.
    pub(crate) async fn end_tool_as(&self, tool: &Tool, stored: ToolChange, shown: ToolChange, failed: bool) {
        let status = if failed { ToolStatus::Failed } else { ToolStatus::Completed };
        let _ = self.update_tool_as(tool, stored.status(status.clone()), shown.status(status)).await;
    }
}
