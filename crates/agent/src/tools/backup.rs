//! File changes that `/undo` can revert: the old content is stored first.

use attache_host::policy::Effect;

use super::read::numbered;
use super::{Job, Result, ToolContext, ToolError};
use crate::blocking;
use crate::workspace::{Seen, WorkspacePath};

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
    cx.session.workspace.mark_seen(path, Some(text));
    let (session, path, text) = (cx.session.clone(), path.real.clone(), text.to_owned());
    // The client and the jail may keep other line ends, so the content on disk is recorded.
    let recorded =
        blocking::run(move || session.store().changed(session.id(), &path, Some(text.as_bytes()))).await;
    Ok(written.and(recorded)?)
}

/// A job that changes nothing and returns the file's text, if the model does not know the text as
/// it is now.
pub(super) fn refuse_unseen(cx: &ToolContext, title: &str, path: &WorkspacePath, now: &str) -> Option<Job> {
    let why = match cx.session.workspace.has_seen(path, now) {
        Seen::Current => return None,
        _ if now.is_empty() => return None,
        Seen::Never => "you have not read it",
        Seen::Outdated => "it has changed since you read it",
    };
    let (path, now) = (path.clone(), now.to_owned());
    let effects = vec![Effect::Read(path.for_policy())];
    let shown = path.clone();
    let work = move |cx: ToolContext, _| async move {
        let (text, more) = numbered(&now, 1, u32::MAX, cx.result_limit);
        cx.session.workspace.mark_seen(&path, more.is_none().then_some(now.as_str()));
        let more =
            more.map(|line| format!("(there is more; read on with line={line})\n")).unwrap_or_default();
        let name = cx.short(&path);
        Err(ToolError::Again(format!(
            "{name} was not changed, because {why}. This is its text now:\n{text}{more}Check the change and make it again."
        )))
    };
    Some(Job::new(title, effects, work).location(&shown, None))
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
