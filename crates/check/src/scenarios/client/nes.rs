//! Next edit suggestions and document events.

use std::rc::Rc;

use serde_json::{Value, json};

use super::steps::{everything, find, serve_rest, whole_act};
use crate::judge::{Kind, Message};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const NES: &[Need] = &[Need::Act("nes")];

scenario_table! { Client:
    "nes-events": "only events that were announced", ["NES-02"] needs NES => events;
    "nes-context": "only context that was announced", ["NES-03"] needs NES => context;
    "nes-login": "nes/start after authentication", ["NES-07"] needs NES => login;
    "nes-positions": "positions count from 0, in units of UTF-16",
        ["NES-09", "NES-10", "NES-12", "NES-17", "NES-18", "ROOT-05"] needs NES => positions;
    "nes-full": "whole texts where they are asked for", ["NES-11"] needs NES => sync("full");
    "nes-incremental": "changes where they are asked for", ["NES-11"] needs NES => sync("incremental");
}

fn with(nes: Value) -> Value {
    let mut capabilities = everything();
    capabilities["nes"] = nes;
    capabilities
}

fn used(said: &[Rc<Message>]) -> Step {
    match find(said, "nes/start") {
        Some(_) => Ok(()),
        None => Err(Stop::NotExercised("the client was asked to use nes/start and did not".to_owned())),
    }
}

async fn events(stage: &mut Stage) -> Step {
    let said = whole_act(stage, with(json!({ "events": { "document": { "didOpen": {} } } }))).await?;
    used(&said)?;
    let other = said
        .iter()
        .filter_map(|message| message.method())
        .find(|method| method.starts_with("document/") && *method != "document/didOpen");
    let why = format!("`{}` came, which the agent does not announce", other.unwrap_or_default());
    stage.check("NES-02", other.is_none(), why);
    Ok(())
}

async fn context(stage: &mut Stage) -> Step {
    let said = whole_act(stage, with(json!({ "context": { "diagnostics": {} } }))).await?;
    used(&said)?;
    let asked = find(&said, "nes/suggest").map(|asked| asked.params()["context"].clone()).unwrap_or_default();
    let other = asked
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .find(|key| *key != "diagnostics" && *key != "_meta");
    let why = format!(
        "the context `{}` came, which the agent does not announce",
        other.map(String::as_str).unwrap_or_default()
    );
    stage.check("NES-03", other.is_none(), why);
    Ok(())
}

async fn login(stage: &mut Stage) -> Step {
    let methods = json!([{ "id": "attache-key", "name": "A key", "type": "agent" }]);
    stage
        .accept_with(
            json!({ "protocolVersion": 1, "agentCapabilities": everything(), "authMethods": methods }),
        )
        .await?;
    let mut known = false;
    let mut started = false;
    serve_rest(stage, |method, _| match method {
        "authenticate" => {
            known = true;
            None
        }
        "nes/start" if !known => Some(Err((-32000, "Authentication required"))),
        "nes/start" => {
            started = true;
            None
        }
        _ => None,
    })
    .await?;
    if !stage.received(0).iter().any(|message| message.asks("nes/start")) {
        return Err(Stop::NotExercised("the client was asked to use nes/start and did not".to_owned()));
    }
    stage.check("NES-07", started, "after -32000 nes/start did not come again with authentication");
    Ok(())
}

/// Where a text ends, as a position in units of UTF-16.
fn units(line: &str) -> u64 {
    u64::try_from(line.encode_utf16().count()).unwrap_or(u64::MAX)
}

async fn positions(stage: &mut Stage) -> Step {
    // Without positionEncoding in the answer, UTF-16 holds.
    let said = whole_act(stage, with(json!({
        "events": { "document": { "didOpen": {}, "didChange": { "syncKind": "full" } } }, "context": { "recentFiles": { "maxCount": 2 } },
    }))).await?;
    used(&said)?;
    let text = last_text(&said)
        .ok_or_else(|| Stop::NotExercised("the client sends no text of a document".to_owned()))?;
    let Some(asked) = find(&said, "nes/suggest") else {
        return Err(Stop::NotExercised("the client asked for no suggestion".to_owned()));
    };
    let position = &asked.params()["position"];
    let (line, character) =
        (position["line"].as_u64().unwrap_or(u64::MAX), position["character"].as_u64().unwrap_or(u64::MAX));
    let lines: Vec<&str> = text.split('\n').collect();
    let found = usize::try_from(line).ok().and_then(|line| lines.get(line));
    stage.check(
        "NES-09",
        found.is_some(),
        format!("line {line} is not among the {} lines of the document", lines.len()),
    );
    if let Some(found) = found {
        let why = format!("character {character} is past the end of a line of {} units", units(found));
        stage.check("NES-10", character <= units(found), why);
    }
    let version = &asked.params()["version"];
    let events =
        said.iter().filter(|message| message.method().is_some_and(|method| method.starts_with("document/")));
    let newest = events.map(|message| &message.params()["version"]).rfind(|version| version.is_i64());
    if let Some(newest) = newest {
        stage.check(
            "NES-12",
            version == newest,
            format!("nes/suggest is about version {version}, the document is at {newest}"),
        );
    }
    let trigger = &asked.params()["triggerKind"];
    let known = ["automatic", "diagnostic", "manual"].iter().any(|known| *trigger == *known);
    stage.check("NES-17", known, format!("triggerKind is {trigger}"));
    let files = asked.params()["context"]["recentFiles"].as_array().map_or(0, Vec::len);
    if files > 0 {
        stage.check("NES-18", files <= 2, format!("{files} recent files came, 2 were asked for"));
    }
    Ok(())
}

/// The text of the document as the client last sent it.
fn last_text(said: &[Rc<Message>]) -> Option<String> {
    let changed = find(said, "document/didChange")
        .map(|message| message.params()["contentChanges"][0]["range"].is_object());
    if changed == Some(true) {
        // NES-11: the announced kind of synchronisation was not used, so the text is unknown.
        return None;
    }
    said.iter().rev().find_map(|message| match &message.kind {
        Kind::Notification { method, params } if method == "document/didChange" => {
            params["contentChanges"][0]["text"].as_str().map(str::to_owned)
        }
        Kind::Notification { method, params } if method == "document/didOpen" => {
            params["text"].as_str().map(str::to_owned)
        }
        _ => None,
    })
}

async fn sync(stage: &mut Stage, kind: &str) -> Step {
    let said = whole_act(
        stage,
        with(json!({
            "events": { "document": { "didOpen": {}, "didChange": { "syncKind": kind } } },
        })),
    )
    .await?;
    used(&said)?;
    let Some(changed) = find(&said, "document/didChange") else {
        return Err(Stop::NotExercised("the client changed no document".to_owned()));
    };
    let changes = changed.params()["contentChanges"].as_array().cloned().unwrap_or_default();
    let ranged = |change: &Value| change["range"].is_object();
    let kept = match kind {
        "full" => changes.len() == 1 && !changes.iter().any(ranged),
        _ => !changes.is_empty() && changes.iter().all(ranged),
    } && changes.iter().all(|change| change["text"].is_string());
    stage.check("NES-11", kept, format!("with syncKind {kind} the changes are {}", json!(changes)));
    Ok(())
}
