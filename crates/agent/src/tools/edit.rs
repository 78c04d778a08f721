//! `edit`: replacements in a file, all of them or none.

use std::path::Path;

use attache::agent::diff;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Content, Effect};
use serde_json::json;

use super::patch::{self, Patched, Replace};
use super::{Arguments, Boxed, Cx, Job, Output, Tool, location, spec, text};
use crate::ground::Place;
use crate::model::{Part, ToolSpec};

pub(crate) struct Edit;

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        let edit = json!({
            "type": "object",
            "properties": {
                "old": text("the text to replace, exactly as it is in the file, with enough lines around it to be unique"),
                "new": text("the text to put in its place"),
                "all": super::flag("replace every occurrence"),
            },
            "required": ["old", "new"],
            "additionalProperties": false,
        });
        spec(
            "edit",
            "Replaces pieces of a file. Each `old` must be in the file exactly once (unless `all` is set) and without line \
             numbers; the edits are made one after the other, and all of them or none. Read the file first.",
            &[
                ("path", text("the file"), true),
                ("edits", json!({"type": "array", "minItems": 1, "items": edit}), true),
            ],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Edit
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let place = cx.place(arguments.text("path")?)?;
            let edits = replacements(arguments)?;
            let title = format!("Edit {}", cx.short(&place));
            // A file elsewhere is read only after the user allowed that, and without it there is no change to show.
            if !place.inside && !cx.live.was_read(&place.real) {
                return Err(format!(
                    "{} is outside the project; `read` it before you edit it",
                    cx.short(&place)
                ));
            }
            let (old, patched) = patched(cx, &place, &edits).await?;
            let effects = vec![Effect::Write {
                path: place.path(),
                content: Content::known(Some(&old), &patched.text),
            }];
            let (at, line) = (place.clone(), patched.lines.first().copied());
            let shown = diff(&at.named, Some(old.clone()), patched.text.clone());
            let work = move |cx: Cx, _| async move { edit(&cx, &place, old, patched).await };
            Ok(Job::new(title, ToolKind::Edit, effects, work).at(&at, line).showing(shown))
        })
    }
}

/// The edits; one alone may also stand beside the path.
fn replacements(arguments: &Arguments<'_>) -> Result<Vec<Replace>, String> {
    let one = |edit: &Arguments<'_>| -> Result<Replace, String> {
        Ok(Replace {
            old: edit.text("old")?.to_owned(),
            new: edit.text("new")?.to_owned(),
            all: edit.flag("all")?,
        })
    };
    let edits = match arguments.text_if("old")? {
        Some(_) => vec![one(arguments)?],
        None => arguments.objects("edits")?.iter().map(one).collect::<Result<Vec<_>, _>>()?,
    };
    match edits.is_empty() {
        true => Err("`edits` is empty".to_owned()),
        false => Ok(edits),
    }
}

async fn patched(cx: &Cx, place: &Place, edits: &[Replace]) -> Result<(String, Patched), String> {
    let name = cx.short(place);
    let old = cx.live.ground.whole(&cx.turn, place).await?;
    let old = old.ok_or_else(|| format!("there is no file {name}; make it with `write`"))?;
    let patched = patch::apply(&old, edits).map_err(|why| format!("{name}: {why}"))?;
    Ok((old, patched))
}

/// Writes the text that was shown, if the file is still the one that was shown.
async fn edit(cx: &Cx, place: &Place, old: String, patched: Patched) -> Result<Output, String> {
    expect_unchanged(cx, place, Some(&old)).await?;
    replace(cx, place, &patched.text).await?;
    let name = cx.short(place);
    let mut told = format!("edited {name}, line {}", list(&patched.lines));
    if patched.inexact {
        told.push_str("; the old text differed in blanks, look at the result");
    }
    let locations = patched.lines.first().map(|line| vec![location(place, Some(*line))]);
    Ok(Output {
        parts: vec![Part::Text(told)],
        content: Some(vec![diff(&place.named, Some(old), patched.text)]),
        locations,
        ..Output::default()
    })
}

/// Fails if the file has changed since its change was shown.
pub(super) async fn expect_unchanged(cx: &Cx, place: &Place, shown: Option<&str>) -> Result<(), String> {
    let now = cx.live.ground.whole(&cx.turn, place).await?;
    match now.as_deref() == shown {
        true => Ok(()),
        false => Err(format!("{} has changed meanwhile; read it again", cx.short(place))),
    }
}

fn list(lines: &[u32]) -> String {
    lines.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Writes a file, after what was there is kept for `/undo`.
pub(super) async fn replace(cx: &Cx, place: &Place, text: &str) -> Result<(), String> {
    keep(cx, &place.real, Some(text.as_bytes().to_vec())).await?;
    let written = cx.live.ground.write(&cx.turn, place, text).await;
    let (live, path, meant) = (cx.live.clone(), place.real.clone(), text.to_owned());
    // What is really there counts: clients and the jail keep line ends.
    let noted = tokio::task::spawn_blocking(move || {
        live.store().changed(live.id(), &path, Some(meant.as_bytes())).map_err(|error| error.to_string())
    });
    let noted = noted.await.unwrap_or_else(|error| Err(error.to_string()));
    written.and(noted)
}

/// Keeps a file before it changes. What cannot be kept is not changed.
pub(super) async fn keep(cx: &Cx, path: &Path, after: Option<Vec<u8>>) -> Result<(), String> {
    let (live, path) = (cx.live.clone(), path.to_owned());
    let kept = tokio::task::spawn_blocking(move || {
        live.store().about_to_change(live.id(), &path, after.as_deref()).map_err(|error| error.to_string())
    });
    kept.await.unwrap_or_else(|error| Err(error.to_string()))
}
