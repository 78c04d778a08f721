//! `list`, `move` and `delete`: what is done with places and not with what is in them.

use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;

use super::edit::keep;
use super::{Arguments, Boxed, Cx, Job, Output, Tool, spec, text};
use crate::ground::{Ground, Place};
use crate::model::ToolSpec;

/// The most entries of one list.
const MOST: usize = 500;
/// The largest file that is moved with its bytes kept for `/undo`.
const KEPT: u64 = 64 << 20;

pub(crate) struct List;

impl Tool for List {
    fn spec(&self) -> ToolSpec {
        spec(
            "list",
            "Lists a directory: directories end with `/`, files come with their size. To look for files by name use `glob`.",
            &[("path", text("the directory; the working directory unless given"), false)],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Read
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let place = cx.place(arguments.text_if("path")?.unwrap_or("."))?;
            let title = format!("List {}", cx.short(&place));
            let (at, effects) = (place.clone(), vec![Effect::Read(place.path())]);
            let work = move |_, _| async move {
                let listed = tokio::task::spawn_blocking(move || list(&place)).await;
                listed.unwrap_or_else(|error| Err(error.to_string()))
            };
            Ok(Job::new(title, ToolKind::Read, effects, work).at(&at, None))
        })
    }
}

fn list(place: &Place) -> Result<Output, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", place.named.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(&place.real).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are not followed: what they lead to may be outside.
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
    let count = entries.len();
    entries.truncate(MOST);
    let mut told = match entries.is_empty() {
        true => "(empty)".to_owned(),
        false => entries.join("\n"),
    };
    if count > MOST {
        told.push_str(&format!("\n(and {} more; use `glob`)", count - MOST));
    }
    Ok(Output::shown(told))
}

pub(crate) struct Move;

impl Tool for Move {
    fn spec(&self) -> ToolSpec {
        spec(
            "move",
            "Moves or renames a file. There must be nothing at the new place; missing directories are made.",
            &[("from", text("the file"), true), ("to", text("its new path"), true)],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Move
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let (from, to) = (cx.place(arguments.text("from")?)?, cx.place(arguments.text("to")?)?);
            expect_no_directory(cx, &from)?;
            let title = format!("Move {} to {}", cx.short(&from), cx.short(&to));
            let effects = vec![Effect::Rename { from: from.path(), to: to.path() }];
            let (start, end) = (from.clone(), to.clone());
            let work = move |cx: Cx, _| async move {
                let bytes = cx.live.ground.bytes(&from, KEPT).await?;
                keep(&cx, &from.real, None).await?;
                keep(&cx, &to.real, Some(bytes)).await?;
                cx.live.ground.rename(&from, &to).await?;
                Ok(Output::shown(format!("moved {} to {}", cx.short(&from), cx.short(&to))))
            };
            Ok(Job::new(title, ToolKind::Move, effects, work).at(&start, None).at(&end, None))
        })
    }
}

/// What a directory holds could not all be kept for `/undo`.
fn expect_no_directory(cx: &Cx, place: &Place) -> Result<(), String> {
    match Ground::is_dir(place) {
        true => Err(format!("{} is a directory; use `run`", cx.short(place))),
        false => Ok(()),
    }
}

pub(crate) struct Delete;

impl Tool for Delete {
    fn spec(&self) -> ToolSpec {
        spec("delete", "Deletes a file.", &[("path", text("the file"), true)])
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Delete
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let place = cx.place(arguments.text("path")?)?;
            expect_no_directory(cx, &place)?;
            let title = format!("Delete {}", cx.short(&place));
            let (at, effects) = (place.clone(), vec![Effect::Delete(place.path())]);
            let work = move |cx: Cx, _| async move {
                keep(&cx, &place.real, None).await?;
                cx.live.ground.remove(&place).await?;
                Ok(Output::shown(format!("deleted {}", cx.short(&place))))
            };
            Ok(Job::new(title, ToolKind::Delete, effects, work).at(&at, None))
        })
    }
}
