//! `write`: creates a file or replaces the whole of one.

use attache::Edit;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Content, Effect};

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, backup, text};
use crate::model::Part;
use crate::workspace::WorkspacePath;

pub(crate) struct Write;

impl Tool for Write {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Edit,
            "write",
            "Creates a file, or replaces the whole of one. Missing directories are created. To change a part of a file use `edit`.",
            &[("path", text("the file"), true), ("content", text("the whole text of the file"), true)],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let path = cx.resolve(arguments.text("path")?)?;
        let new = arguments.file_text("content")?;
        if path.is_dir() {
            return Err(format!("{} is a directory", cx.short(&path)).into());
        }
        let title = format!("Write {}", cx.short(&path));
        // A file outside is read only after the user allowed that; otherwise its whole new text
        // is shown.
        let can_read = cx.session.workspace.can_read(&path);
        let old = match can_read {
            true => current(cx, &path).await?,
            false => None,
        };
        let is_new = old.is_none() && !path.real.exists();
        if let Some(refusal) = old.as_ref().and_then(|old| backup::refuse_unseen(cx, &title, &path, old)) {
            return Ok(refusal);
        }
        let content = Content::known(old.as_deref(), &new);
        let effects = vec![Effect::Write { path: path.for_policy(), content }];
        let change = Edit::write(&path.named, old.clone(), new.clone());
        let shown = path.clone();
        let work = move |cx: ToolContext, _| async move {
            let now = match can_read {
                true => current(&cx, &path).await?,
                false => None,
            };
            if now != old {
                return Err(backup::changed(&cx, &path));
            }
            backup::write(&cx, &path, &new).await?;
            let verb = if is_new { "created" } else { "replaced" };
            let text = format!("{verb} {}, {} lines", cx.short(&path), new.lines().count());
            Ok(Output {
                parts: vec![Part::Text(text)],
                content: Some(vec![Edit::write(&path.named, old, new).into()]),
                ..Output::default()
            })
        };
        Ok(Job::new(title, effects, work).location(&shown, None).content(change))
    }
}

/// The text of a file that is to be replaced; `None` if there is none. A file that is no text has
/// nothing to show to the user, and no model has seen what would be lost.
async fn current(cx: &ToolContext, path: &WorkspacePath) -> Result<Option<String>> {
    let text = cx.session.workspace.read_for_edit(&cx.turn, path).await;
    text.map_err(|why| {
        format!("{} was not replaced: {why}; write to another file, or ask the user", cx.short(path)).into()
    })
}
