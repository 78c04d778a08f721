//! `delete`: deletes a file.

use attache::Edit;
use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, backup, text};
use crate::workspace::WorkspacePath;

/// The largest file whose text is shown when it is deleted.
const MAX_SHOWN: u64 = 256 << 10;

pub(crate) struct Delete;

impl Tool for Delete {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(ToolKind::Delete, "delete", "Deletes a file.", &[("path", text("the file"), true)])
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let path = cx.resolve(arguments.text("path")?)?;
        refuse_directory(cx, &path)?;
        let title = format!("Delete {}", cx.short(&path));
        let (shown, effects) = (path.clone(), vec![Effect::Delete(path.for_policy())]);
        let work = move |cx: ToolContext, _| async move {
            let bytes = cx.session.workspace.bytes(&path, MAX_SHOWN).await.ok();
            let old = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            backup::store(&cx, &path, None).await?;
            cx.session.workspace.remove(&path).await?;
            let text = format!("deleted {}", cx.short(&path));
            Ok(match old {
                Some(old) => Output::changed(text, Edit::delete(&path.named, old)),
                None => Output::visible(text),
            })
        };
        Ok(Job::new(title, effects, work).location(&shown, None))
    }
}

/// Fails for a directory, whose whole content could not be stored for `/undo`.
pub(super) fn refuse_directory(cx: &ToolContext, path: &WorkspacePath) -> Result<()> {
    match path.is_dir() {
        true => Err(format!("{} is a directory; use `run`", cx.short(path)).into()),
        false => Ok(()),
    }
}
