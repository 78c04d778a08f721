//! `attache permissions`: the permissions answered with "always" in this project.

use std::path::{Path, PathBuf};

use attache_host::policy::Memory;
use serde::Serialize;
use serde_json::json;

use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Format;
use crate::paths::repository;

/// The project that a directory belongs to.
fn project(cx: &Cx) -> &Path {
    repository(&cx.cwd).unwrap_or(&cx.cwd)
}

fn memory(cx: &Cx, project: &Path) -> Result<Memory> {
    Memory::open(&cx.paths.state, project).context("what is always allowed")
}

/// A remembered answer.
#[derive(Serialize)]
struct Row<'a> {
    number: u64,
    project: &'a Path,
    agent: String,
    allow: bool,
    scope: String,
    at: String,
}

/// Lists the permissions.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let projects: Vec<PathBuf> = match cx.flags.all {
        true => Memory::projects(&cx.paths.state),
        false => vec![project(cx).to_owned()],
    };
    let mut rows = Vec::new();
    for project in &projects {
        for answer in memory(cx, project)?.list() {
            rows.push(Row {
                number: answer.id,
                project,
                agent: answer.agent,
                allow: answer.allow,
                scope: answer.scope.describe(project),
                at: answer.since,
            });
        }
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!(rows)),
        _ if rows.is_empty() && cx.output.format == Format::Text => {
            cx.output.line("no permissions are remembered")
        }
        _ => {
            let cells = |row: &Row<'_>| {
                let effect = if row.allow { "always" } else { "never" };
                let (scope, at) = (format!("{effect}: {}", row.scope), cx.output.when(&row.at));
                let mut cells = vec![row.number.to_string(), scope, row.agent.clone(), at];
                cells.extend(cx.flags.all.then(|| row.project.display().to_string()));
                cells
            };
            cx.output.columns(&rows.iter().map(cells).collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// Revokes one permission.
pub(crate) fn revoke(cx: &Cx) -> Result<()> {
    let text = cx.args.word(0).unwrap_or_default();
    let number = text
        .parse::<u64>()
        .map_err(|_| Failure::usage(format_args!("`{text}` is not a number in the list")))?;
    let gone = memory(cx, project(cx))?.revoke(number).context("what is always allowed")?;
    if !gone {
        return Err(Failure::runtime(format_args!("no permission {number} in this project"))
            .hint("`attache permissions` lists them"));
    }
    cx.output.line(format_args!("revoked {number}"));
    Ok(())
}

/// Revokes all permissions of the project.
pub(crate) fn clear(cx: &Cx) -> Result<()> {
    memory(cx, project(cx))?.clear().context("what is always allowed")?;
    cx.output.line("all permissions of this project are revoked");
    Ok(())
}
