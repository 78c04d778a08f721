//! A session as one file, for another machine.

use std::path::{Path, PathBuf};

use attache_conn::private;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{HistoryLine, Record, Scope, Store};
use crate::error::{Context as _, Failure, Result};
use crate::paths::home;
use crate::time::now;

const FORMAT: &str = "attache-session";

/// An archive of this program.
#[derive(Deserialize)]
struct Archive {
    format: String,
    #[serde(default)]
    session: Value,
    #[serde(default)]
    history: Vec<Value>,
}

/// An archive of acpx, version 1.
#[derive(Deserialize)]
struct AcpxArchive {
    format_version: u64,
    session: AcpxSession,
    history: Vec<Value>,
}

#[derive(Deserialize)]
struct AcpxSession {
    /// The name of an agent or its command.
    agent: Option<String>,
    /// Relative to the home directory, unless the session was elsewhere.
    cwd_relative: Option<String>,
    state: Value,
}

#[derive(Deserialize)]
struct AcpxState {
    acpx_record_id: String,
    acp_session_id: String,
    agent_session_id: Option<String>,
    agent_command: String,
    cwd: PathBuf,
    name: Option<String>,
    title: Option<String>,
    created_at: String,
    last_used_at: String,
    last_prompt_at: Option<String>,
    #[serde(default)]
    acpx: AcpxSettings,
}

#[derive(Default, Deserialize)]
struct AcpxSettings {
    desired_mode_id: Option<String>,
    desired_model_id: Option<String>,
    desired_config_options: Option<Map<String, Value>>,
}

/// A session to be imported.
struct Imported {
    /// `None` if the record is incomplete.
    record: Option<Record>,
    cwd_from_home: Option<String>,
    history: Vec<Value>,
}

impl Imported {
    /// Reads an archive of either program; `None` if it is not one.
    fn read(archive: &Value) -> Option<Imported> {
        match AcpxArchive::deserialize(archive) {
            Ok(acpx) if acpx.format_version == 1 => return Some(Imported::from_acpx(acpx)),
            _ => {}
        }
        let Archive { format, mut session, history } = Archive::deserialize(archive).ok()?;
        if format != FORMAT {
            return None;
        }
        let relative = session.as_object_mut().and_then(|map| map.remove("cwdFromHome"));
        let cwd_from_home = relative.and_then(|relative| relative.as_str().map(str::to_owned));
        Some(Imported { record: Record::from_json(session), cwd_from_home, history })
    }

    fn from_acpx(archive: AcpxArchive) -> Imported {
        let AcpxArchive { session, mut history, .. } = archive;
        let turns = history.iter_mut().map(stamp).filter(|is_prompt| *is_prompt).count();
        let is_name = |name: &String| !name.contains(|letter: char| letter.is_whitespace() || letter == '/');
        let record = AcpxState::deserialize(session.state).ok().map(|state| Record {
            id: state.acpx_record_id,
            session_id: state.acp_session_id,
            agent_session: state.agent_session_id,
            agent: session.agent.filter(is_name),
            agent_command: state.agent_command,
            cwd: state.cwd,
            name: state.name,
            title: state.title,
            created_at: state.created_at,
            last_used_at: state.last_used_at,
            last_prompt_at: state.last_prompt_at,
            turns: turns as u64,
            mode: state.acpx.desired_mode_id,
            model: state.acpx.desired_model_id,
            options: state.acpx.desired_config_options.unwrap_or_default(),
            ..Record::default()
        });
        let cwd_from_home = session.cwd_relative.filter(|cwd| !cwd.starts_with('/'));
        Imported { record, cwd_from_home, history }
    }
}

/// Marks a prompt and its response, whose times acpx does not record. Returns whether the line is a
/// prompt.
fn stamp(line: &mut Value) -> bool {
    let read = HistoryLine::deserialize(&*line).unwrap_or_default();
    let is_prompt = read.method.as_deref() == Some("session/prompt");
    if let Some(map) = line.as_object_mut().filter(|_| is_prompt || read.stop_reason().is_some()) {
        map.entry("at").or_insert(Value::Null);
    }
    is_prompt
}

/// Writes a session to a file, even while it is in use. The directory is written relative to the
/// user's home, so that it fits another machine.
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

/// Imports a session from a file.
pub(crate) fn import(
    store: &Store,
    archive: &Path,
    scope: &Scope,
    name: Option<&str>,
    cwd: Option<PathBuf>,
) -> Result<Record> {
    let text = std::fs::read(archive).context(archive.display())?;
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| Failure::usage(format_args!("{} is not an archive: {error}", archive.display())))?;
    let Some(Imported { record, cwd_from_home, history }) = Imported::read(&value) else {
        return Err(Failure::usage(format_args!("{} is not an archive of a session", archive.display())));
    };
    let Some(mut record) = record else {
        return Err(Failure::usage(format_args!("the session in {} is incomplete", archive.display())));
    };
    if let Some(cwd) = cwd {
        record.cwd = cwd;
    } else if let Some(relative) = cwd_from_home {
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
    // The history first: a session must not be found before it is complete.
    store.history(&record.id).write(&history, &store.mask()).context("the history")?;
    store.add(&record, &scope, &now)?;
    Ok(record)
}
