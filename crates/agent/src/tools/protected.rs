//! Protected files that a sandboxed command has changed: kept only with the user's permission.

use std::path::{Path, PathBuf};

use attache::Edit;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Effect, FilePath};
use attache_host::survey::Survey;
use serde_json::json;

use super::{Result, ToolContext, permission};
use crate::blocking;

/// The most changes that are shown as diffs.
const MAX_DIFFS: usize = 50;

/// Records the protected files before a command runs.
pub(super) async fn survey(cx: &ToolContext) -> Result<Survey> {
    let roots = cx.session.workspace.roots().to_vec();
    Ok(blocking::run(move || Ok::<_, String>(Survey::take(&roots))).await?)
}

/// Asks about protected files that a command has created, changed or removed, and reverts them if
/// the user denies. The sandbox guards those directly below a root, but cannot know all that may
/// appear. Returns a note for the model.
pub(super) async fn keep_or_revert(cx: &ToolContext, before: Survey) -> Option<String> {
    let changes = match tokio::task::spawn_blocking(move || before.changes()).await {
        Ok(changes) if changes.is_empty() => return None,
        Ok(changes) => changes,
        Err(error) => return Some(format!("\n(protected files could not be compared: {error})")),
    };
    let changed: Vec<PathBuf> = changes.paths().map(Path::to_owned).collect();
    let names = changed.iter().map(|path| cx.session.workspace.short(path)).collect::<Vec<_>>().join(", ");
    let effects: Vec<Effect> = changed.iter().map(|path| Effect::Keep(FilePath::from_real(path))).collect();
    let input = attache::Json::from(json!({ "protected": changed }));
    let tool = {
        let turn = cx.turn.turn();
        let mut call = turn.tool(format!("Keep {names}")).kind(ToolKind::Edit).input(input);
        let files = changes.files();
        for file in files.iter().take(MAX_DIFFS) {
            call = match (file.old.clone(), file.new.clone()) {
                (old, Some(new)) => call.edit(Edit::write(&file.path, old, new)),
                (Some(old), None) => call.edit(Edit::delete(&file.path, old)),
                (None, None) => call,
            };
        }
        files.iter().fold(call, |call, file| call.location(file.path.to_string_lossy().into_owned(), None))
    };
    let call = cx.session.reporter.start_tool(tool).await.ok();
    let denied = permission::request(cx, call.as_ref(), &effects).await.is_err();
    let mut problem = String::new();
    if denied && let Err(error) = blocking::run(move || changes.take_back()).await {
        problem = format!("; reverting failed: {error}");
    }
    if let Some(call) = call {
        cx.session.reporter.end_tool(&call, call.change(), denied).await;
    }
    denied.then(|| {
        format!(
            "\n(the user did not allow the changes of {names} that the command made; they were reverted{problem})"
        )
    })
}
