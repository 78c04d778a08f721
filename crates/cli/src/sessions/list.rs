//! `sessions list`

use std::path::PathBuf;

use attache::Meta;
use attache::wire::v1::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use serde::Serialize;
use serde_json::json;

use super::start::{as_json, with_agent};
use crate::cx::{Cx, absolute};
use crate::error::{DetailCode, Failure, Result};
use crate::output::Format;
use crate::run::SessionSetup;
use crate::runtime::runtime;
use crate::session_store::{Record, Scope, Store, short};

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
    // A person wants to find a conversation; scripts get what they always got.
    let is_named = cx.args.agent.is_some() || cx.flags.agent.is_some();
    if cx.output.format == Format::Text
        && cx.output.stdout.terminal
        && !is_named
        && filter.is_none()
        && cursor.is_none()
    {
        print_conversations(cx, store.all()?);
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
        Ok(Some(page)) => print_page(cx, &page, cursor, filter),
        Ok(None) if filtered => {
            return Err(Failure::runtime(
                "this agent cannot list its sessions, so there is nothing to filter",
            )
            .hint("`attache sessions list --local` lists the recorded sessions"));
        }
        Ok(None) => print_records(cx, &store.of_agent(&scope)?),
        // An agent that is not installed any more still has records.
        Err(failure)
            if matches!(
                failure.detail,
                Some(DetailCode::AgentSpawnEnoent | DetailCode::AgentSpawnFailed)
            ) =>
        {
            cx.output.note(format_args!("{failure}; these are the records"));
            print_records(cx, &store.of_agent(&scope)?);
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Lists the conversations with all agents for a person: short ids, titles, relative times.
fn print_conversations(cx: &Cx, mut records: Vec<Record>) {
    // A session that was opened and not used is nothing to come back to, unless it has a name.
    records.retain(|record| record.turns > 0 || (record.name.is_some() && !record.is_closed()));
    if records.is_empty() {
        cx.output.line("No sessions yet; start one: attache");
        return;
    }
    let row = |record: &Record| {
        let title = record.title.as_ref().or(record.name.as_ref());
        let title = title.map_or("(no title)", String::as_str);
        let title = attache_term::render::text::cut(title, 48, cx.output.stdout.look());
        let agent = record.agent.as_ref().unwrap_or(&record.agent_command);
        let cwd = crate::paths::below_home(&record.cwd);
        vec![short(&record.id).to_owned(), title, agent.clone(), cx.output.when(&record.last_used_at), cwd]
    };
    cx.output.columns(&records.iter().map(row).collect::<Vec<_>>());
    cx.output.line("resume one: attache -r ID");
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
            let row = |record: &Record| {
                let name = record.name.as_deref().unwrap_or("-").to_owned();
                let (cwd, used) = (record.cwd.display().to_string(), cx.output.when(&record.last_used_at));
                vec![format!("{}{}", record.id, mark(record)), name, cwd, used]
            };
            cx.output.columns(&records.iter().map(row).collect::<Vec<_>>());
        }
    }
}

/// A page of an agent's sessions as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    source: &'static str,
    sessions: &'a [SessionInfo],
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Meta>,
}

fn print_page(cx: &Cx, page: &ListSessionsResponse, cursor: Option<String>, cwd: Option<PathBuf>) {
    let sessions = &page.sessions;
    let next_cursor = page.next_cursor.as_deref();
    match cx.output.format {
        Format::Json => {
            let page = Page { source: "agent", sessions, cursor, cwd, next_cursor, meta: page.meta.as_ref() };
            cx.output.json(&json!(page));
        }
        Format::Quiet => sessions.iter().for_each(|session| cx.output.row(&session.session_id)),
        Format::Text => {
            if sessions.is_empty() {
                cx.output.line("No sessions");
            }
            let row = |session: &SessionInfo| {
                let dash = || "-".to_owned();
                let at = session.updated_at.as_deref().map_or_else(dash, |time| cx.output.when(time));
                let title = session.title.clone().unwrap_or_else(dash);
                let mut row = vec![session.session_id.to_string(), title, session.cwd.clone(), at];
                // Metadata is for scripts.
                if !cx.output.stdout.terminal {
                    row.push(session.meta.as_ref().map_or_else(dash, |meta| meta.as_json().get().to_owned()));
                }
                row
            };
            cx.output.columns(&sessions.iter().map(row).collect::<Vec<_>>());
            if let Some(next) = next_cursor {
                cx.output.line(format_args!("Next cursor: {next}"));
            }
        }
    }
}
