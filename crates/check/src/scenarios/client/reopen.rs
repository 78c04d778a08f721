//! Reopened sessions.

use serde_json::{Value, json};

use super::steps::{everything, find, leaves, serve_rest, serve_until, without};
use crate::judge::Kind;
use crate::scenarios::scenario_table;
use crate::target::{SESSION, roots};
use crate::{Need, Stage, Step, Stop, Version};

scenario_table! { Client:
    "load-null": "session/load answered with null",
        ["SESS-13", "RPC-22", "SESS-18"] needs [Need::Act("load")] => load_null;
    "load-roots": "session/load repeats the other roots",
        ["ROOT-13"] needs [Need::Act("load_roots")] => repeats("session/load");
    "resume-roots": "session/resume repeats the other roots",
        ["ROOT-13"] needs [Need::Act("resume_roots")] in BOTH => repeats("session/resume");
    "load-system-prompt": "session/load repeats the system prompt",
        ["SYSP-04"] needs [Need::Act("load_system")] in BOTH => load_system;
    "status-unknown": "an unknown status counts as saved",
        ["SSTAT-02"] needs [Need::Act("attach")] in BOTH => status_unknown;
    "status-open": "a session that is open is attached to before it is prompted",
        ["SSTAT-03"] needs [Need::Act("attach")] in BOTH => status_open;
    "archived": "an archived session is taken out of the archive first",
        ["SSTAT-10"] needs [Need::Act("archived")] in BOTH => archived;
}

async fn load_null(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let asked = serve_until(stage, "session/load").await?;
    stage.reply(&asked, Value::Null).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let Some(prompt) = find(&said, "session/prompt") else {
        return leaves(stage, &["SESS-13", "RPC-22"], "session/load answered with null").await;
    };
    stage.pass_all(&["SESS-13", "RPC-22"]);
    let session = &prompt.params()["sessionId"];
    let why = format!("after loading {SESSION} the prompt names {session}");
    stage.check("SESS-18", *session == SESSION, why);
    Ok(())
}

async fn repeats(stage: &mut Stage, method: &str) -> Step {
    stage.accept(everything()).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let Some(asked) = find(&said, method) else {
        return Err(Stop::NotExercised(format!("the client was asked to use {method} and did not")));
    };
    let sent = asked.params()["additionalDirectories"].clone();
    let wanted = roots(stage.cwd()).map(|root| json!(root));
    let has = |root: &Value| sent.as_array().is_some_and(|sent| sent.contains(root));
    stage.check("ROOT-13", wanted.iter().all(has), format!("of the other roots {} were named", json!(sent)));
    Ok(())
}

async fn load_system(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    let method = match stage.version() {
        Version::V1 => "session/load",
        Version::V2 => "session/resume",
    };
    let Some(asked) = find(&said, method) else {
        return Err(Stop::NotExercised("the client was asked to load a session and did not".to_owned()));
    };
    let repeated = asked.params()["systemPrompt"].is_object();
    stage.check("SYSP-04", repeated, format!("{method} does not repeat the system prompt"));
    Ok(())
}

/// Answers session/status with `status`; whether the client then attached before it prompted, or
/// prompted at all.
async fn attach(stage: &mut Stage, status: &str) -> Result<(bool, bool), Stop> {
    stage.accept(everything()).await?;
    let status = status.to_owned();
    let said =
        serve_rest(stage, |method, _| (method == "session/status").then(|| Ok(json!({ "status": status }))))
            .await?;
    if find(&said, "session/status").is_none() {
        return Err(Stop::NotExercised("the client does not ask for the status of a session".to_owned()));
    }
    let place = |wanted: &[&str]| {
        said.iter().position(
            |message| matches!(&message.kind, Kind::Request { method, .. } if wanted.contains(&method.as_str())),
        )
    };
    let attached = place(&["session/load", "session/resume"]);
    let prompted = place(&["session/prompt"]);
    Ok((attached.is_some() && prompted.is_none_or(|prompted| attached < Some(prompted)), prompted.is_some()))
}

async fn status_unknown(stage: &mut Stage) -> Step {
    let (attached, _) = attach(stage, "_x").await?;
    stage.check("SSTAT-02", attached, "a session of an unknown status was not loaded as a saved one");
    Ok(())
}

async fn status_open(stage: &mut Stage) -> Step {
    let (attached, prompted) = attach(stage, "open").await?;
    if !attached && !prompted {
        return Err(Stop::NotExercised("the client neither attached nor prompted".to_owned()));
    }
    stage.check("SSTAT-03", attached, "a session that is open was prompted without load or resume");
    Ok(())
}

async fn archived(stage: &mut Stage) -> Step {
    stage.accept(without("/auth/status")).await?;
    let said = serve_rest(stage, |method, _| {
        let info = json!({ "sessionId": SESSION, "cwd": "/", "archived": true });
        (method == "session/list").then(|| Ok(json!({ "sessions": [info] })))
    })
    .await?;
    let place = |method: &str| said.iter().position(|message| message.asks(method));
    let Some(opened) = place("session/load").or(place("session/resume")) else {
        return Err(Stop::NotExercised("the client opened no archived session".to_owned()));
    };
    let first = place("session/unarchive").is_some_and(|place| place < opened);
    stage.check("SSTAT-10", first, "an archived session was opened without session/unarchive");
    Ok(())
}
