//! `move`: moves or renames a file.

use attache::Edit;
use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;

use super::delete::refuse_directory;
use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, backup, text};

/// The largest file that is moved: its content is stored for `/undo`.
const MAX_BYTES: u64 = 64 << 20;

pub(crate) struct Move;

impl Tool for Move {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Move,
            "move",
            "Moves or renames a file. Nothing may exist at the new path; missing directories are created.",
            &[("from", text("the file"), true), ("to", text("its new path"), true)],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let (from, to) = (cx.resolve(arguments.text("from")?)?, cx.resolve(arguments.text("to")?)?);
        refuse_directory(cx, &from)?;
        let title = format!("Move {} to {}", cx.short(&from), cx.short(&to));
        let effects = vec![Effect::Rename { from: from.for_policy(), to: to.for_policy() }];
        let (old, new) = (from.clone(), to.clone());
        let work = move |cx: ToolContext, _| async move {
            let bytes = cx.session.workspace.bytes(&from, MAX_BYTES).await?;
            backup::store(&cx, &from, None).await?;
            backup::store(&cx, &to, Some(bytes)).await?;
            cx.session.workspace.rename(&from, &to).await?;
            let text = format!("moved {} to {}", cx.short(&from), cx.short(&to));
            // The content is the same, so the change has no text.
            Ok(Output::changed(text, Edit::rename(&from.named, &to.named, "", "")))
        };
        Ok(Job::new(title, effects, work).location(&old, None).location(&new, None))
    }
}
