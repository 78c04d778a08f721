//! What the client is told, written down before it is sent.
//!
//! Several tools may talk at once. The log and the wire have the same order, because both happen under one lock.

use attache::agent::{SessionHandle, Tool, ToolBuilder, Turn};
use attache::wire::v1::{
    ContentChunk, Notice, NoticeSeverity, SessionUpdate, ToolCallStatus, ToolCallUpdate,
};
use attache::{Error, Result};
use serde::Serialize;

use crate::store::{Entry, Store};

/// A session's line to its client and to its log.
pub(crate) struct Voice {
    store: Store,
    id: String,
    order: tokio::sync::Mutex<()>,
}

impl Voice {
    pub(crate) fn new(store: Store, id: impl Into<String>) -> Self {
        Voice { store, id: id.into(), order: tokio::sync::Mutex::new(()) }
    }

    /// Writes something down that the client does not see.
    pub(crate) fn keep(&self, entries: &[Entry]) -> Result<()> {
        self.store.append(&self.id, entries).map_err(|error| {
            // The client may know this: it is about the user's own disk.
            Error::refuse(
                attache::code::INTERNAL_ERROR,
                format!("the session cannot be written down: {error}"),
            )
        })
    }

    fn note(&self, update: &impl Serialize) -> Result<()> {
        self.keep(&[Entry::Update(serde_json::to_value(update)?)])
    }

    /// Tells an update.
    pub(crate) async fn tell(&self, turn: Turn<'_>, update: impl Into<SessionUpdate>) -> Result<()> {
        let update = update.into();
        let _order = self.order.lock().await;
        self.note(&update)?;
        turn.send(update).await
    }

    /// As [`tell`](Self::tell), for what only some clients understand; others are not told, and this says so.
    pub(crate) async fn tell_if_known(
        &self,
        turn: Turn<'_>,
        update: impl Into<SessionUpdate>,
    ) -> Result<bool> {
        let update = update.into();
        let session = turn.client().capabilities().session.as_ref();
        let known = match &update {
            SessionUpdate::Notice(_) => session.is_some_and(|session| session.notices.is_some()), // NOTE-01
            SessionUpdate::CompactionUpdate(_) => session.is_some_and(|session| session.compaction.is_some()), // NOTE-06
            _ => true,
        };
        if known {
            self.tell(turn, update).await?;
        }
        Ok(known)
    }

    /// As a notice to a client that knows those, else as words in the answer.
    pub(crate) async fn notify(&self, turn: Turn<'_>, severity: NoticeSeverity, title: &str) -> Result<()> {
        let notice = Notice::new(severity, title);
        if !self.tell_if_known(turn, SessionUpdate::Notice(notice)).await? {
            let chunk = ContentChunk::new(format!("*{title}*\n\n"));
            self.tell(turn, SessionUpdate::AgentMessageChunk(chunk)).await?;
        }
        Ok(())
    }

    /// Tells an update of a turn that may have been cancelled, for what must have an end (CANCEL-07). It goes before the turn's
    /// answer, because the turn waits for this.
    pub(crate) async fn tell_after_all(
        &self,
        session: &SessionHandle,
        update: impl Into<SessionUpdate>,
    ) -> Result<()> {
        let update = update.into();
        let _order = self.order.lock().await;
        self.note(&update)?;
        session.send(update).await
    }

    /// Reports a new tool call (TOOL-01).
    pub(crate) async fn start(&self, tool: ToolBuilder) -> Result<Tool> {
        let _order = self.order.lock().await;
        self.note(&SessionUpdate::ToolCall(Box::new(tool.call().clone())))?;
        tool.start().await
    }

    /// Reports a change of a tool call.
    pub(crate) async fn change(&self, tool: &Tool, change: ToolCallUpdate) -> Result<()> {
        let _order = self.order.lock().await;
        self.note(&SessionUpdate::ToolCallUpdate(Box::new(change.clone())))?;
        tool.update(change).await
    }

    /// Reports that a tool call has ended, also in a turn that was cancelled (CANCEL-07).
    pub(crate) async fn end(&self, tool: &Tool, change: ToolCallUpdate, failed: bool) -> Result<()> {
        let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        self.change(tool, change.status(status)).await
    }
}
