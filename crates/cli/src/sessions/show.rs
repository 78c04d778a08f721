//! `sessions show`, `history` and `read`.

use serde_json::{Value, json};

use super::find_any;
use crate::cx::Cx;
use crate::error::{Context as _, Result};
use crate::output::Format;
use crate::session_store::{Message, Record, Store};

/// Shows the record of a session.
pub(crate) fn show(cx: &Cx) -> Result<()> {
    let record = find_any(cx, cx.args.word(0), true)?;
    match cx.output.format {
        Format::Json => {
            let mut value = record.to_json();
            let said = Store::new(&cx.paths).history(&record.id).messages().context("the history")?;
            if let (Some(map), Value::Object(said)) = (value.as_object_mut(), said) {
                map.extend(said);
            }
            cx.output.json(&value);
        }
        Format::Quiet => cx.output.row(&record.id),
        Format::Text => {
            let store = Store::new(&cx.paths);
            let entries = count_messages(&store, &record)?;
            let owned = store.is_owned(&record.id);
            let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let when = |time: &String| cx.output.when(time);
            let rows: [(&str, String); 19] = [
                ("id", record.id.clone()),
                ("sessionId", record.session_id.clone()),
                ("agentSessionId", dash(record.agent_session.clone())),
                ("agent", record.agent_command.clone()),
                ("cwd", record.cwd.display().to_string()),
                ("name", dash(record.name.clone())),
                ("title", dash(record.title.clone())),
                ("created", when(&record.created_at)),
                ("lastActivity", when(&record.last_used_at)),
                ("lastPrompt", dash(record.last_prompt_at.as_ref().map(when))),
                ("closed", if record.is_closed() { "yes" } else { "no" }.to_owned()),
                ("closedAt", dash(record.closed_at.as_ref().map(when))),
                ("pid", dash(record.pid.filter(|_| owned).map(|pid| pid.to_string()))),
                ("agentStartedAt", dash(record.agent_started_at.as_ref().map(when))),
                ("lastExitCode", dash(record.last_exit_code.map(|code| code.to_string()))),
                ("lastExitSignal", dash(record.last_exit_signal.clone())),
                ("lastExitAt", dash(record.last_exit_at.as_ref().map(when))),
                ("disconnectReason", dash(record.disconnect_reason.clone())),
                ("historyEntries", entries.to_string()),
            ];
            for (name, value) in rows {
                cx.output.line(format_args!("{name}: {value}"));
            }
        }
    }
    Ok(())
}

/// Shows the last messages.
pub(crate) fn history(cx: &Cx) -> Result<()> {
    entries(cx, Some(cx.flags.sessions.limit.unwrap_or(20)))
}

/// Shows all messages, or the last ones.
pub(crate) fn read(cx: &Cx) -> Result<()> {
    entries(cx, cx.flags.sessions.tail)
}

fn entries(cx: &Cx, limit: Option<usize>) -> Result<()> {
    let record = find_any(cx, cx.args.word(0), true)?;
    let store = Store::new(&cx.paths);
    let all = count_messages(&store, &record)?;
    let skipped = all.saturating_sub(limit.unwrap_or(all));
    let shown = all - skipped;
    let mut number = 0;
    // Entries that are appended meanwhile are not shown.
    let wanted = |_: &Message| {
        number += 1;
        number > skipped && number <= all
    };
    match cx.output.format {
        Format::Json => {
            let mut entries = Vec::new();
            messages(&store, &record, wanted, |message| {
                entries.push(json!({ "role": message.role, "timestamp": message.at, "textPreview": message.text.trim() }));
            })?;
            cx.output.json(&json!({
                "id": record.id,
                "sessionId": record.session_id,
                "limit": limit.unwrap_or_default(),
                "count": entries.len(),
                "entries": entries,
            }));
        }
        Format::Quiet => {
            messages(&store, &record, wanted, |message| cx.output.row(one_line(&message.text)))?;
        }
        Format::Text => {
            cx.output.line(format_args!("session: {} ({shown}/{all} shown)", record.id));
            if shown == 0 {
                cx.output.line("No history");
            }
            messages(&store, &record, wanted, |message| {
                let at = message.at.as_deref().map_or_else(|| "-".to_owned(), |at| cx.output.when(at));
                cx.output.row(format_args!("{at}\t{}\t{}", message.role, one_line(&message.text)));
            })?;
        }
    }
    Ok(())
}

fn count_messages(store: &Store, record: &Record) -> Result<usize> {
    let mut count = 0;
    messages(store, record, |_| true, |_| count += 1)?;
    Ok(count)
}

fn messages(
    store: &Store,
    record: &Record,
    mut wanted: impl FnMut(&Message) -> bool,
    mut each: impl FnMut(Message),
) -> Result<()> {
    let read = store.history(&record.id).read(|message| {
        if wanted(&message) {
            each(message);
        }
    });
    read.context("the history")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
