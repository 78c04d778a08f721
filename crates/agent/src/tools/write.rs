//! `write`: a whole file.

use attache::agent::diff;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Content, Effect};

use super::edit::replace;
use super::{Arguments, Boxed, Cx, Job, Output, Tool, spec, text};
use crate::ground::{Ground, Place};
use crate::model::{Part, ToolSpec};

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
            // A file elsewhere is read only after the user allowed that; otherwise its new text is shown as a whole.
            let can_read = place.inside || cx.live.was_read(&place.real);
            let old = if can_read { before(cx, &place).await } else { None };
            let effects =
                vec![Effect::Write { path: place.path(), content: Content::known(old.as_deref(), &content) }];
            let shown = diff(&place.named, old.clone(), content.clone());
            let at = place.clone();
            let work = move |cx: Cx, _| async move { write(&cx, &place, old, can_read, content).await };
            Ok(Job::new(title, ToolKind::Edit, effects, work).at(&at, None).showing(shown))
        })
    }
}

/// The text before; what is no text is not shown.
async fn before(cx: &Cx, place: &Place) -> Option<String> {
    cx.live.ground.whole(&cx.turn, place).await.ok().flatten()
}

async fn write(
    cx: &Cx,
    place: &Place,
    old: Option<String>,
    can_read: bool,
    content: String,
) -> Result<Output, String> {
    if can_read && before(cx, place).await != old {
        return Err(format!("{} has changed meanwhile; read it again", cx.short(place)));
    }
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
