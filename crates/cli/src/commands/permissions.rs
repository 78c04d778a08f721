//! `attache permissions`: the permissions answered with "always" in this project.

use std::path::{Path, PathBuf};

use attache_host::policy::Memory;
use serde_json::{Value, json};

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

/// Lists the permissions.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let projects: Vec<PathBuf> = match cx.flags.all {
        true => Memory::projects(&cx.paths.state),
        false => vec![project(cx).to_owned()],
    };
    let mut rows: Vec<Value> = Vec::new();
    for project in &projects {
        for answer in memory(cx, project)?.list() {
            rows.push(json!({
                "number": answer.id,
                "project": project,
                "agent": answer.agent,
                "allow": answer.allow,
                "scope": answer.scope.describe(project),
                "at": answer.since,
            }));
        }
    }
    match cx.output.format {
        Format::Json => cx.output.json(&Value::Array(rows)),
        _ if rows.is_empty() && cx.output.format == Format::Text => {
            cx.output.line("no permissions are remembered")
        }
        _ => {
            let text =
                |row: &Value, key: &str| row.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
            for row in &rows {
                let number = row.get("number").cloned().unwrap_or_default();
                let effect = if row.get("allow") == Some(&json!(true)) { "always" } else { "never" };
                let place = if cx.flags.all { format!("\t{}", text(row, "project")) } else { String::new() };
                let [scope, agent, at] = ["scope", "agent", "at"].map(|key| text(row, key));
                cx.output.line(format_args!("{number}\t{effect}: {scope}\t{agent}\t{at}{place}"));
            }
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
