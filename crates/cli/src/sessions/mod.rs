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
use crate::session_store::{Record, Scope, Store};

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
