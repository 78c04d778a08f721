//! `list`: the entries of a directory.

use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, limited_lines, missing, text};
use crate::blocking;
use crate::workspace::WorkspacePath;

/// The most entries of one list.
const MAX_ENTRIES: usize = 500;

pub(crate) struct List;

impl Tool for List {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Read,
            "list",
            "Lists a directory: directories end with `/`, files come with their size. To find files by name use `glob`.",
            &[("path", text("the directory; default: the working directory"), false)],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let path = cx.resolve(arguments.text_if("path")?.unwrap_or("."))?;
        let title = format!("List {}", cx.short(&path));
        let (shown, effects) = (path.clone(), vec![Effect::Read(path.for_policy())]);
        let work = move |cx: ToolContext, _| async move {
            if !path.real.exists() {
                return Err(missing::error(&cx, &path).await);
            }
            let entries = blocking::run(move || list(&path)).await?;
            let hint = if cx.offers_all_tools() { "use `glob`" } else { "use `search`" };
            Ok(Output::visible(limited_lines(&entries, MAX_ENTRIES, "(empty)", hint)))
        };
        Ok(Job::new(title, effects, work).location(&shown, None))
    }
}

fn list(path: &WorkspacePath) -> Result<Vec<String>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.named.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(&path.real).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are not followed, because their targets may be outside.
        entries.push(match entry.metadata() {
            Ok(meta) if meta.is_dir() => format!("{name}/"),
            Ok(meta) if meta.is_symlink() => {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                format!("{name} -> {}", target.display())
            }
            Ok(meta) => format!("{name} ({} bytes)", meta.len()),
            Err(_) => name,
        });
    }
    entries.sort();
    Ok(entries)
}
