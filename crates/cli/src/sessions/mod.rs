//! `attache sessions …`: start, list, show, move and delete sessions.

mod change;
mod list;
mod show;
mod start;
mod watch;

pub(crate) use change::{close, delete, export, fork, import, prune};
pub(crate) use list::list;
pub(crate) use show::{history, read, show};
pub(crate) use start::{add, ensure, make_unique, new, note};
pub(crate) use watch::watch;

use serde_json::{Map, Value, json};

use crate::agents::AgentSpec;
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::session_store::{Record, Scope, Store, is_meant};

/// The session of exactly this directory, or the one of any directory and agent that an id names.
fn find_any(cx: &Cx, name: Option<&str>, closed_too: bool) -> Result<Record> {
    let missing = match find(cx, &cx.agent()?, name, closed_too) {
        Ok(record) => return Ok(record),
        Err(missing) => missing,
    };
    let Some(wanted) = name else { return Err(missing) };
    by_id(&Store::new(&cx.paths).all()?, wanted)?.cloned().ok_or(missing)
}

/// The record of this id, or of the only id that begins like this.
fn by_id<'a>(records: &'a [Record], wanted: &str) -> Result<Option<&'a Record>> {
    if let Some(record) = records.iter().find(|record| record.id == wanted) {
        return Ok(Some(record));
    }
    let mut meant = records.iter().filter(|record| is_meant(&record.id, wanted));
    match (meant.next(), meant.next()) {
        (Some(_), Some(_)) => Err(Failure::usage(format_args!("several sessions begin with `{wanted}`"))
            .hint("`attache sessions list --local --format quiet` lists the ids in full")),
        (record, _) => Ok(record),
    }
}

/// The session of exactly this directory.
fn find(cx: &Cx, spec: &AgentSpec, name: Option<&str>, closed_too: bool) -> Result<Record> {
    let scope = Scope::new(spec, &cx.cwd, name);
    let found = Store::new(&cx.paths).find(&scope, closed_too)?;
    found.ok_or_else(|| {
        let which = name.map_or_else(|| "no session".to_owned(), |name| format!("no session `{name}`"));
        Failure::runtime(format_args!("{which} for {} with the agent {}", cx.cwd.display(), spec.name))
            .hint("`attache sessions list --local` lists the recorded sessions")
    })
}

/// The result of a command about a session, with which one it was.
fn result(action: &str, record: &Record, more: &[(&str, Value)]) -> Value {
    let mut map = Map::new();
    map.insert("action".to_owned(), json!(action));
    for (key, value) in more {
        if !value.is_null() {
            map.insert((*key).to_owned(), value.clone());
        }
    }
    map.insert("acpxRecordId".to_owned(), json!(record.id));
    map.insert("acpxSessionId".to_owned(), json!(record.session_id));
    if let Some(id) = &record.agent_session {
        map.insert("agentSessionId".to_owned(), json!(id));
    }
    if let Some(name) = &record.name {
        map.insert("name".to_owned(), json!(name));
    }
    Value::Object(map)
}
