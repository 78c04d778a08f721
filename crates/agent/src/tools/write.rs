//! `write`: creates a file or replaces the whole of one.

use attache::Edit;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Content, Effect};

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, backup, text};
use crate::model::Part;

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
        let new = arguments.text("content")?.to_owned();
        if path.is_dir() {
            return Err(format!("{} is a directory", cx.short(&path)).into());
        }
        let title = format!("Write {}", cx.short(&path));
        // A file outside is read only after the user allowed that; otherwise its whole new text
        // is shown.
        let can_read = cx.session.workspace.can_read(&path);
        let old = match can_read {
            // A binary file has no text to show.
            true => cx.session.workspace.read_for_edit(&cx.turn, &path).await.ok().flatten(),
            false => None,
        };
        if let Some(refusal) = old.as_ref().and_then(|old| backup::refuse_unseen(cx, &title, &path, old)) {
            return Ok(refusal);
        }
        let content = Content::known(old.as_deref(), &new);
        let effects = vec![Effect::Write { path: path.for_policy(), content }];
        let change = Edit::write(&path.named, old.clone(), new.clone());
        let shown = path.clone();
        let work = move |cx: ToolContext, _| async move {
            let now = match can_read {
                true => cx.session.workspace.read_for_edit(&cx.turn, &path).await.ok().flatten(),
                false => None,
            };
            if now != old {
                return Err(backup::changed(&cx, &path));
            }
            backup::write(&cx, &path, &new).await?;
            let verb = if old.is_some() { "replaced" } else { "created" };
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
