//! `sessions close`, `delete`, `fork`, `prune`, `export` and `import`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::start::{note, with_agent};
use super::{find, find_any, result};
use crate::cx::{Cx, absolute};
use crate::error::{DetailCode, Failure, Result};
use crate::output::{Format, bytes, count as plural};
use crate::run::SessionSetup;
use crate::runtime::runtime;
use crate::session_store::{self, Record, Scope, Store};
use crate::time::{format, now, parse};

/// Closes a session: its agent ends, its record stays.
pub(crate) fn close(cx: &Cx) -> Result<()> {
    let record = find_any(cx, cx.args.word(0), false)?;
    let record = close_record(cx, &record)?;
    match cx.output.format {
        Format::Json => cx.output.json(&result("session_closed", &record, &[])),
        Format::Text => cx.output.row(&record.id),
        Format::Quiet => {}
    }
    Ok(())
}

fn close_record(cx: &Cx, record: &Record) -> Result<Record> {
    // First the record: no new prompt finds the session while its process leaves.
    let store = Store::new(&cx.paths);
    let closed = store.change(&record.id, |record| {
        record.closed_at.get_or_insert_with(now);
    })?;
    #[cfg(unix)]
    runtime(async { crate::run::close_owner(&cx.paths, &record.id).await })?;
    Ok(closed.unwrap_or_else(|| record.clone()))
}

/// Deletes a session: in the agent, if it can, and here.
pub(crate) fn delete(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let record = find(cx, &setup.spec, cx.args.word(0), true)?;
    close_record(cx, &record)?;
    let setup = setup.with_record(&record);
    let notified = runtime(async {
        with_agent(cx, setup, async |connection, _| match connection.agent.deleter() {
            None => Ok(false),
            Some(deleting) => {
                deleting.delete(record.session_id.as_str()).await.map_err(Failure::from)?;
                Ok(true)
            }
        })
        .await
    });
    let notified = notified.unwrap_or_else(|failure| {
        cx.output.warn(format_args!("the agent keeps its copy: {failure}"));
        false
    });
    Store::new(&cx.paths).delete(&record.id, true)?;
    match cx.output.format {
        Format::Json => cx.output.json(&result("session_deleted", &record, &[("agent", json!(notified))])),
        Format::Text => cx.output.row(&record.id),
        Format::Quiet => {}
    }
    Ok(())
}

/// Copies a session.
pub(crate) fn fork(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let record = find(cx, &setup.spec, cx.args.word(0), true)?;
    let name = cx.flags.sessions.copy_name.as_deref().filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| Failure::usage("a copy needs a name: --as NAME"))?;
    let setup = setup.with_record(&record);
    let scope = Scope::new(&setup.spec, &record.cwd, Some(name));
    let store = Store::new(&cx.paths);
    if store.find(&scope, false)?.is_some() {
        return Err(Failure::usage(format_args!("there is an open session `{name}` already")));
    }
    let mut copy = runtime(async {
        with_agent(cx, setup, async |connection, _| {
            let Some(forking) = connection.agent.forker() else {
                return Err(
                    Failure::runtime("this agent cannot copy sessions").detail(DetailCode::ForkUnsupported)
                );
            };
            // FORK-02: the agent must know the session, so it is restored first.
            let session =
                forking.fork(record.session_id.as_str(), &record.cwd).await.map_err(Failure::from)?;
            let mut copy =
                Record::new(session.id().as_str(), &connection.setup.spec.identity(), &record.cwd, &now());
            note(&mut copy, connection, &session);
            Ok(copy)
        })
        .await
    })?;
    copy.name = Some(name.to_owned());
    copy.turns = record.turns;
    copy.mode.clone_from(&record.mode);
    copy.model.clone_from(&record.model);
    copy.options.clone_from(&record.options);
    let lines = store.history(&record.id).lines().unwrap_or_default();
    store.history(&copy.id).write(&lines, &store.mask()).map_err(Failure::runtime)?;
    store.add(&copy, &scope, &now())?;
    match cx.output.format {
        Format::Json => cx.output.json(&result("session_forked", &copy, &[("from", json!(record.id))])),
        _ => cx.output.row(&copy.id),
    }
    Ok(())
}

/// Deletes the records of closed sessions.
pub(crate) fn prune(cx: &Cx) -> Result<()> {
    let scope = Scope::new(&cx.agent()?, &cx.cwd, None);
    let before = match (&cx.flags.sessions.before, cx.flags.sessions.older_than) {
        (Some(_), Some(_)) => return Err(Failure::usage("give --before or --older-than, not both")),
        (Some(date), None) => Some(parse(date).ok_or_else(|| {
            Failure::usage(format_args!(
                "--before is a date like 2026-01-31 or 2026-01-31T12:00:00Z, not `{date}`"
            ))
        })?),
        (None, Some(days)) => SystemTime::now().checked_sub(Duration::from_secs(days as u64 * 86_400)),
        (None, None) => None,
    };
    let before = before.map(format);
    let dry = cx.flags.sessions.dry_run;
    let with_history = cx.flags.sessions.include_history;
    let store = Store::new(&cx.paths);
    let when = |record: &Record| record.closed_at.clone().unwrap_or_else(|| record.last_used_at.clone());
    let pruned: Vec<Record> = store
        .of_agent(&scope)?
        .into_iter()
        .filter(|record| record.is_closed() && !store.is_owned(&record.id))
        .filter(|record| before.as_ref().is_none_or(|before| when(record) < *before))
        .collect();
    let mut freed = 0;
    for record in pruned.iter().filter(|_| !dry) {
        freed += store.delete(&record.id, with_history)?;
    }
    let count = pruned.len();
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": if dry { "sessions_prune_dry_run" } else { "sessions_pruned" },
            "dryRun": dry,
            "count": count,
            "bytesFreed": freed,
            "pruned": pruned.iter().map(|record| &record.id).collect::<Vec<_>>(),
        })),
        Format::Quiet => pruned.iter().for_each(|record| cx.output.row(&record.id)),
        Format::Text if count == 0 && dry => cx.output.line("[DRY RUN] No sessions to prune"),
        Format::Text if count == 0 => cx.output.line("No sessions pruned"),
        Format::Text => {
            let sessions = plural(count as u64, "session");
            match dry {
                true => cx.output.line(format_args!("[DRY RUN] Would prune {sessions}")),
                false => cx.output.line(format_args!("Pruned {sessions}, freed {}", bytes(freed))),
            }
            for record in &pruned {
                let name = record.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                cx.output.row(format_args!("  {}{name}\t{}", record.id, when(record)));
            }
        }
    }
    Ok(())
}

/// Writes a session to a file.
pub(crate) fn export(cx: &Cx) -> Result<()> {
    let Some(output) = cx.flags.sessions.output.as_deref().filter(|output| !output.is_empty()) else {
        return Err(Failure::usage("provide --output FILE"));
    };
    let spec = cx.agent()?;
    let cwd = cx
        .flags
        .sessions
        .cwd
        .as_deref()
        .map(|dir| absolute(&cx.cwd, dir))
        .transpose()?
        .unwrap_or_else(|| cx.cwd.clone());
    let scope = Scope::new(&spec, &cwd, cx.args.word(0));
    let store = Store::new(&cx.paths);
    let record = store.find(&scope, true)?.ok_or_else(|| {
        Failure::runtime(format_args!("no such session for {} with the agent {}", cwd.display(), spec.name))
    })?;
    session_store::export(&store, &record, &cx.cwd.join(output))?;
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "action": "session_exported", "output": output })),
        Format::Quiet => cx.output.row(output),
        Format::Text => cx.output.line(format_args!("exported session to {output}")),
    }
    Ok(())
}

/// Takes a session over from a file.
pub(crate) fn import(cx: &Cx) -> Result<()> {
    let archive = cx.cwd.join(Path::new(cx.args.word(0).unwrap_or_default()));
    let cwd = cx.flags.sessions.cwd.as_deref().map(|dir| absolute(&cx.cwd, dir)).transpose()?;
    let scope = Scope::new(&cx.agent()?, &cx.cwd, None);
    let record = session_store::import(
        &Store::new(&cx.paths),
        &archive,
        &scope,
        cx.flags.sessions.name.as_deref(),
        cwd,
    )?;
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "session_imported", "record_id": record.id, "cwd": record.cwd,
        })),
        Format::Quiet => cx.output.row(&record.id),
        Format::Text => {
            cx.output.line(format_args!("imported session {} at {}", record.id, record.cwd.display()))
        }
    }
    Ok(())
}
