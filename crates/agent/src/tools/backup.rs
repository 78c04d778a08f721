//! File changes that `/undo` can revert: the old content is stored first.

use super::{Result, ToolContext, ToolError};
use crate::blocking;
use crate::workspace::WorkspacePath;

/// Stores a file's content before it becomes `after`, or is deleted. A file that cannot be stored
/// must not be changed.
pub(super) async fn store(cx: &ToolContext, path: &WorkspacePath, after: Option<Vec<u8>>) -> Result<()> {
    let (session, path) = (cx.session.clone(), path.real.clone());
    let stored = move || session.store().about_to_change(session.id(), &path, after.as_deref());
    Ok(blocking::run(stored).await?)
}

/// Writes a file after its old content was stored.
pub(super) async fn write(cx: &ToolContext, path: &WorkspacePath, text: &str) -> Result<()> {
    store(cx, path, Some(text.as_bytes().to_vec())).await?;
    let written = cx.session.workspace.write(&cx.turn, path, text).await;
    let (session, path, text) = (cx.session.clone(), path.real.clone(), text.to_owned());
    // The client and the jail may keep other line ends, so the content on disk is recorded.
    let recorded =
        blocking::run(move || session.store().changed(session.id(), &path, Some(text.as_bytes()))).await;
    Ok(written.and(recorded)?)
}

/// Fails if a file has changed since its change was shown to the user.
pub(super) async fn check_unchanged(
    cx: &ToolContext,
    path: &WorkspacePath,
    shown: Option<&str>,
) -> Result<()> {
    let now = cx.session.workspace.read_for_edit(&cx.turn, path).await?;
    if now.as_deref() == shown { Ok(()) } else { Err(changed(cx, path)) }
}

/// The error for a file that has changed since its change was shown to the user.
pub(super) fn changed(cx: &ToolContext, path: &WorkspacePath) -> ToolError {
    format!("{} has changed in the meantime; read it again", cx.short(path)).into()
}
