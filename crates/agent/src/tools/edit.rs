//! `edit`: replacements in a file, all of them or none.

use attache::Edit as FileEdit;
use attache::wire::v1::ToolKind;
use attache_host::policy::{Content, Effect};
use serde_json::json;

use super::patch::{self, Patched, Replacement};
use super::{
    Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, backup, flag, location, missing, object,
    text,
};
use crate::model::Part;
use crate::workspace::WorkspacePath;

pub(crate) struct Edit;

impl Tool for Edit {
    fn info(&self) -> ToolInfo {
        let old =
            "the text to replace, exactly as it is in the file, with enough lines around it to be unique";
        let edit = object(&[
            ("old", text(old), true),
            ("new", text("the text to put in its place"), true),
            ("all", flag("replace every occurrence"), false),
        ]);
        ToolInfo::new(
            ToolKind::Edit,
            "edit",
            "Replaces pieces of a file. Each `old` must be in the file exactly once (unless `all` is set) and without line \
             numbers; the edits are made in order, and all of them or none. Read the file first.",
            &[
                ("path", text("the file"), true),
                ("edits", json!({"type": "array", "minItems": 1, "items": edit}), true),
            ],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let path = cx.resolve(arguments.text("path")?)?;
        let edits = replacements(arguments)?;
        let name = cx.short(&path);
        // A file outside is read only after the user allowed that, and without it there is no
        // diff to show.
        if !cx.session.workspace.can_read(&path) {
            return Err(format!("{name} is outside the project; `read` it before you edit it").into());
        }
        let old = cx.session.workspace.read_for_edit(&cx.turn, &path).await?;
        let Some(old) = old else { return Err(missing::error(cx, &path).await) };
        let title = format!("Edit {name}");
        if let Some(refusal) = backup::refuse_unseen(cx, &title, &path, &old) {
            return Ok(refusal);
        }
        let patched = patch::apply(&old, &edits).map_err(|why| format!("{name}: {why}"))?;
        let content = Content::known(Some(&old), &patched.text);
        let effects = vec![Effect::Write { path: path.for_policy(), content }];
        let (shown, line) = (path.clone(), patched.lines.first().copied());
        let change = FileEdit::modify(&path.named, old.clone(), patched.text.clone());
        let work = move |cx: ToolContext, _| async move { edit(&cx, &path, old, patched).await };
        Ok(Job::new(title, effects, work).location(&shown, line).content(change))
    }
}

fn replacements(arguments: &Arguments<'_>) -> Result<Vec<Replacement>, String> {
    let one = |edit: &Arguments<'_>| -> Result<Replacement, String> {
        Ok(Replacement {
            old: edit.text("old")?.to_owned(),
            new: edit.text("new")?.to_owned(),
            all: edit.flag("all")?,
        })
    };
    let edits = arguments.objects("edits")?.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    match edits.is_empty() {
        true => Err("`edits` is empty".to_owned()),
        false => Ok(edits),
    }
}

/// Writes the text that was shown, if the file is still the one that was shown.
async fn edit(cx: &ToolContext, path: &WorkspacePath, old: String, patched: Patched) -> Result<Output> {
    backup::check_unchanged(cx, path, Some(&old)).await?;
    backup::write(cx, path, &patched.text).await?;
    let lines = patched.lines.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!("edited {}, line {lines}", cx.short(path));
    if patched.inexact {
        text.push_str("; the old text differed in whitespace, check the result");
    }
    Ok(Output {
        parts: vec![Part::Text(text)],
        content: Some(vec![FileEdit::modify(&path.named, old, patched.text).into()]),
        locations: patched.lines.first().map(|line| vec![location(path, Some(*line))]),
        ..Output::default()
    })
}
