//! `attache status`: whether a session's agent is running. Nothing is started for it.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::setup::SessionSetup;
use crate::cx::Cx;
use crate::error::Result;
use crate::output::Format;
use crate::session_store::{Record, Scope, Store};
use crate::time::{clock, parse};

/// Says how a session is.
pub(crate) fn status(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let scope = Scope::new(&setup.spec, &cx.cwd, cx.flags.prompt.session.as_deref());
    let store = Store::new(&cx.paths);
    let Some(record) = store.find(&scope, false)? else {
        match cx.output.format {
            Format::Json => cx.output.json(&json!({
                "action": "status_snapshot", "status": "no-session", "summary": "no active session",
            })),
            Format::Quiet => cx.output.line("no-session"),
            Format::Text => {
                lines(None, &setup.spec.identity(), "no-session", None)
                    .iter()
                    .for_each(|line| cx.output.line(line));
            }
        }
        return Ok(());
    };
    let running = store.is_owned(&record.id);
    let failed = record.last_exit_signal.is_some() || record.last_exit_code.is_some_and(|code| code != 0);
    let state = match (running, failed) {
        (true, _) => "running",
        (false, true) => "dead",
        (false, false) => "idle",
    };
    let uptime = record.agent_started_at.as_deref().filter(|_| running).and_then(parse);
    let uptime = uptime.and_then(|start| SystemTime::now().duration_since(start).ok()).map(clock);
    match cx.output.format {
        Format::Json => cx.output.json(&as_json(&record, state, uptime)),
        Format::Quiet => cx.output.line(state),
        Format::Text => {
            lines(Some(&record), &record.agent_command, state, uptime)
                .iter()
                .for_each(|line| cx.output.line(line));
        }
    }
    Ok(())
}

fn as_json(record: &Record, state: &str, uptime: Option<String>) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(key.to_owned(), value);
        }
    };
    put("action", json!("status_snapshot"));
    put("status", json!(if state == "running" { "alive" } else { state }));
    put(
        "summary",
        json!(match state {
            "running" => "the session's process is there",
            "idle" => "the session is idle; the next prompt starts its agent",
            _ => "the agent ended badly; the next prompt starts it again",
        }),
    );
    put("acpxRecordId", json!(record.id));
    put("acpxSessionId", json!(record.session_id));
    put("pid", json!(record.pid.filter(|_| state == "running")));
    put("protocolVersion", json!(record.protocol_version));
    put("model", json!(record.current_model));
    put("mode", json!(record.current_mode));
    if !record.models.is_empty() {
        put("availableModels", json!(record.models));
    }
    put("uptime", json!(uptime));
    put("lastPromptTime", json!(record.last_prompt_at));
    if state == "dead" {
        put("exitCode", json!(record.last_exit_code));
        put("signal", json!(record.last_exit_signal));
    }
    Value::Object(map)
}

fn lines(record: Option<&Record>, agent: &str, state: &str, uptime: Option<String>) -> Vec<String> {
    let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let of = |read: fn(&Record) -> Option<String>| dash(record.and_then(read));
    let pid = record.and_then(|record| record.pid).filter(|_| state == "running").map(|pid| pid.to_string());
    let mut lines = vec![
        format!("session: {}", of(|record| Some(record.id.clone()))),
        format!("agent: {agent}"),
        format!("pid: {}", dash(pid)),
        format!("status: {state}"),
        format!("protocol: {}", of(|record| record.protocol_version.map(|version| version.to_string()))),
        format!("model: {}", of(|record| record.current_model.clone())),
        format!("mode: {}", of(|record| record.current_mode.clone())),
        format!("uptime: {}", dash(uptime)),
        format!("lastPromptTime: {}", of(|record| record.last_prompt_at.clone())),
    ];
    if state == "dead" {
        lines.push(format!("exitCode: {}", of(|record| record.last_exit_code.map(|code| code.to_string()))));
        lines.push(format!("signal: {}", of(|record| record.last_exit_signal.clone())));
    }
    lines
}
