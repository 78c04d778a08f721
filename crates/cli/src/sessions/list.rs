//! `sessions list`

use attache::wire::v1::ListSessionsRequest;
use serde_json::{Value, json};

use super::start::{as_json, with_agent};
use crate::cx::{Cx, absolute};
use crate::error::{Failure, Result};
use crate::output::Format;
use crate::run::SessionSetup;
use crate::runtime::runtime;
use crate::session_store::{Record, Scope, Store};

/// Lists sessions: those that the agent knows if it can list them, else those that are recorded
/// here.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let scope = Scope::new(&setup.spec, &cx.cwd, None);
    let filter = cx.flags.sessions.filter_cwd.as_deref().map(|dir| absolute(&cx.cwd, dir)).transpose()?;
    let cursor = cx.flags.sessions.cursor.clone();
    let store = Store::new(&cx.paths);
    if cx.flags.sessions.local {
        if cursor.is_some() {
            return Err(Failure::usage("--cursor is for the agent's list, not for --local"));
        }
        let mut records = store.of_agent(&scope)?;
        records.retain(|record| filter.as_ref().is_none_or(|dir| record.cwd == *dir));
        print_records(cx, &records);
        return Ok(());
    }
    let request = {
        let mut request = ListSessionsRequest::new();
        request.cwd = filter.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        request.cursor = cursor.clone();
        request
    };
    let filtered = filter.is_some() || cursor.is_some();
    let answer = runtime(async {
        with_agent(cx, setup, async |connection, _| {
            if connection.agent.lister().is_none() {
                return Ok(None);
            }
            Ok(Some(connection.agent.request(&request).await.map_err(Failure::from)?))
        })
        .await
    });
    match answer {
        Ok(Some(page)) => print_page(cx, &json!(page), cursor, filter.map(|dir| json!(dir))),
        Ok(None) if filtered => {
            return Err(Failure::runtime(
                "this agent cannot list its sessions, so there is nothing to filter",
            )
            .hint("`attache sessions list --local` lists the recorded sessions"));
        }
        Ok(None) => print_records(cx, &store.of_agent(&scope)?),
        // An agent that is not installed any more has records all the same.
        Err(failure) if failure.detail.as_deref().is_some_and(|detail| detail.starts_with("AGENT_SPAWN")) => {
            cx.output.note(format_args!("{failure}; these are the records"));
            print_records(cx, &store.of_agent(&scope)?);
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

fn print_records(cx: &Cx, records: &[Record]) {
    let mark = |record: &Record| if record.is_closed() { " [closed]" } else { "" };
    match cx.output.format {
        Format::Json => cx.output.json(&records.iter().map(as_json).collect()),
        Format::Quiet => {
            for record in records {
                cx.output.row(format_args!("{}{}", record.id, mark(record)));
            }
        }
        Format::Text if records.is_empty() => cx.output.line("No sessions"),
        Format::Text => {
            for record in records {
                let (name, cwd) = (record.name.as_deref().unwrap_or("-"), record.cwd.display());
                let (id, used) = (&record.id, &record.last_used_at);
                cx.output.row(format_args!("{id}{}\t{name}\t{cwd}\t{used}", mark(record)));
            }
        }
    }
}

fn print_page(cx: &Cx, page: &Value, cursor: Option<String>, cwd: Option<Value>) {
    let sessions = page.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default();
    let next = page.get("nextCursor").and_then(Value::as_str);
    let text =
        |session: &Value, key: &str| session.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
    match cx.output.format {
        Format::Json => {
            let mut value = json!({ "source": "agent", "sessions": sessions });
            if let Some(object) = value.as_object_mut() {
                let meta = page.get("_meta").cloned();
                let more = [
                    ("cursor", cursor.map(Value::from)),
                    ("cwd", cwd),
                    ("nextCursor", next.map(Value::from)),
                    ("_meta", meta),
                ];
                for (key, value) in more {
                    object.extend(value.map(|value| (key.to_owned(), value)));
                }
            }
            cx.output.json(&value);
        }
        Format::Quiet => sessions.iter().for_each(|session| cx.output.row(text(session, "sessionId"))),
        Format::Text => {
            if sessions.is_empty() {
                cx.output.line("No sessions");
            }
            for session in &sessions {
                let meta = session.get("_meta").map_or_else(|| "-".to_owned(), Value::to_string);
                let [id, title, cwd, at] =
                    ["sessionId", "title", "cwd", "updatedAt"].map(|key| text(session, key));
                cx.output.row(format_args!("{id}\t{title}\t{cwd}\t{at}\t{meta}"));
            }
            if let Some(next) = next {
                cx.output.line(format_args!("Next cursor: {next}"));
            }
        }
    }
}
