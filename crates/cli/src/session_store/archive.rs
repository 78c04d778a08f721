//! A session as one file, to be taken up on another machine.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Record, Scope, Store};
use crate::error::{Context as _, Failure, Result};
use crate::paths::{home, replace};
use crate::time::now;

const FORMAT: &str = "attache-session";

/// Writes a session to a file, also while it is in use: what was said so far. The directory is written relative to the user's home, so that it fits another machine.
pub(crate) fn export(store: &Store, record: &Record, output: &Path) -> Result<()> {
    let history = store.history(&record.id).lines().context("the history")?;
    let mut copy = record.to_json();
    if let Some(map) = copy.as_object_mut() {
        for gone in ["pid", "agentStartedAt", "lastAgentExitCode", "lastAgentExitSignal", "lastAgentExitAt"] {
            map.remove(gone);
        }
        let relative = record.cwd.strip_prefix(home()).ok().map(|path| path.to_string_lossy().into_owned());
        map.insert("cwdFromHome".to_owned(), json!(relative));
    }
    let archive = json!({
        "format": FORMAT,
        "version": 1,
        "exportedAt": now(),
        "session": copy,
        "history": history,
    });
    replace(output, format!("{archive:#}\n").as_bytes()).context(output.display())
}

/// Takes a session over from a file.
pub(crate) fn import(
    store: &Store,
    archive: &Path,
    scope: &Scope,
    name: Option<&str>,
    cwd: Option<PathBuf>,
) -> Result<Record> {
    let text = std::fs::read(archive).context(archive.display())?;
    let mut value: Value = serde_json::from_slice(&text)
        .map_err(|error| Failure::usage(format_args!("{} is not an archive: {error}", archive.display())))?;
    if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(Failure::usage(format_args!("{} is not an archive of a session", archive.display())));
    }
    let mut session = value.get_mut("session").map(Value::take).unwrap_or_default();
    let relative = session.as_object_mut().and_then(|map| map.remove("cwdFromHome"));
    let history = match value.get_mut("history").map(Value::take) {
        Some(Value::Array(history)) => history,
        _ => Vec::new(),
    };
    let Some(mut record) = Record::from_json(session) else {
        return Err(Failure::usage(format_args!("the session in {} is incomplete", archive.display())));
    };
    if let Some(cwd) = cwd {
        record.cwd = cwd;
    } else if let Some(relative) = relative.as_ref().and_then(Value::as_str) {
        record.cwd = home().join(relative);
    }
    if let Some(name) = name {
        record.name = Some(name.to_owned());
    }
    let now = now();
    record.closed_at = None;
    record.imported = true;
    record.last_used_at.clone_from(&now);
    if store.all()?.iter().any(|known| known.id == record.id || known.session_id == record.session_id) {
        return Err(Failure::usage(format_args!("the session {} is here already", record.id))
            .hint("delete or prune it first: attache sessions delete"));
    }
    let scope = Scope { cwd: record.cwd.clone(), name: record.name.clone(), ..scope.clone() };
    if store.find(&scope, false)?.is_some() {
        return Err(Failure::usage(format_args!(
            "there is an open session `{}` for {}",
            record.label(),
            record.cwd.display()
        ))
        .hint("give another name with --name, or another directory with --cwd"));
    }
    // The history first: a session is found when all of it is there.
    store.history(&record.id).write(&history).context("the history")?;
    store.add(&record, &scope, &now)?;
    Ok(record)
}
