//! `write`: a whole file.

use attache::agent::diff;
use attache::wire::v1::ToolKind;

use super::edit::replace;
use super::{Arguments, Boxed, Cx, Job, Output, Tool, spec, text};
use crate::ground::{Ground, Place};
use crate::model::{Part, ToolSpec};
use crate::permits::Action;

pub(crate) struct Write;

impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        spec(
            "write",
            "Makes a file, or replaces the whole of one. Missing directories are made. To change a part of a file use `edit`.",
            &[("path", text("the file"), true), ("content", text("the whole text of the file"), true)],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Edit
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let place = cx.place(arguments.text("path")?)?;
            let content = arguments.text("content")?.to_owned();
            if Ground::is_dir(&place) {
                return Err(format!("{} is a directory", cx.short(&place)));
            }
            let title = format!("Write {}", cx.short(&place));
            let (at, action) = (place.clone(), Action::Edit(place.clone()));
            // What is outside is not read before somebody allowed it, and shows as a new file.
            let old = if place.inside { before(cx, &place).await } else { None };
            let shown = diff(&place.named, old, content.clone());
            let work = move |cx: Cx, _| async move { write(&cx, &place, content).await };
            Ok(Job::new(title, ToolKind::Edit, action, work).at(&at, None).showing(shown))
        })
    }
}

/// The text before; what is no text is not shown.
async fn before(cx: &Cx, place: &Place) -> Option<String> {
    cx.live.ground.whole(&cx.turn, place).await.ok().flatten()
}

async fn write(cx: &Cx, place: &Place, content: String) -> Result<Output, String> {
    let old = before(cx, place).await;
    replace(cx, place, &content).await?;
    let (name, lines) = (cx.short(place), content.lines().count());
    let told = match old {
        Some(_) => format!("replaced {name}, now {lines} lines"),
        None => format!("made {name}, {lines} lines"),
    };
    Ok(Output {
        parts: vec![Part::Text(told)],
        content: Some(vec![diff(&place.named, old, content)]),
        ..Output::default()
    })
}
