//! A session as one file, to be taken up on another machine.

use std::path::{Path, PathBuf};

use attache_conn::private;
use serde_json::{Map, Value, json};

use super::{Record, Scope, Store};
use crate::error::{Context as _, Failure, Result};
use crate::paths::home;
use crate::time::now;

const FORMAT: &str = "attache-session";

/// An archive that acpx wrote, in the shape of ours: the same members by other names.
fn from_acpx(archive: &Value) -> Option<Value> {
    if archive.get("format_version")?.as_u64()? != 1 {
        return None;
    }
    let session = archive.get("session")?;
    let state = session.get("state")?;
    let mut record = Map::new();
    let mut put = |ours: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            record.insert(ours.to_owned(), value.clone());
        }
    };
    for (ours, theirs) in [
        ("acpxRecordId", "/acpx_record_id"),
        ("acpSessionId", "/acp_session_id"),
        ("agentSessionId", "/agent_session_id"),
        ("agentCommand", "/agent_command"),
        ("cwd", "/cwd"),
        ("name", "/name"),
        ("title", "/title"),
        ("createdAt", "/created_at"),
        ("lastUsedAt", "/last_used_at"),
        ("lastPromptAt", "/last_prompt_at"),
        ("desiredModeId", "/acpx/desired_mode_id"),
        ("desiredModelId", "/acpx/desired_model_id"),
        ("desiredConfigOptions", "/acpx/desired_config_options"),
    ] {
        put(ours, state.pointer(theirs));
    }
    // A word is the name of an agent, anything else its command.
    let agent = session.get("agent").and_then(Value::as_str);
    let known = agent.filter(|name| !name.contains(|letter: char| letter.is_whitespace() || letter == '/'));
    put("agentName", known.map(Value::from).as_ref());
    // Relative to the home directory, unless the session was elsewhere.
    let relative =
        session.get("cwd_relative").filter(|cwd| cwd.as_str().is_some_and(|cwd| !cwd.starts_with('/')));
    put("cwdFromHome", relative);
    let history: Vec<Value> = archive.get("history")?.as_array()?.iter().map(stamped).collect();
    let turns = history.iter().filter(|line| line.get("method") == Some(&json!("session/prompt"))).count();
    record.insert("turns".to_owned(), json!(turns));
    Some(json!({ "format": FORMAT, "session": record, "history": history }))
}

/// Our histories mark a prompt and its answer by when they were sent; acpx does not say.
fn stamped(line: &Value) -> Value {
    let mut line = line.clone();
    let ends =
        line.get("method") == Some(&json!("session/prompt")) || line.pointer("/result/stopReason").is_some();
    if let Some(map) = line.as_object_mut().filter(|_| ends) {
        map.entry("at").or_insert(Value::Null);
    }
    line
}

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
    private::write(output, format!("{archive:#}\n").as_bytes()).context("the archive")
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
    if let Some(theirs) = from_acpx(&value) {
        value = theirs;
    }
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
    store.history(&record.id).write(&history, &store.mask()).context("the history")?;
    store.add(&record, &scope, &now)?;
    Ok(record)
}
