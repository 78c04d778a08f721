//! Session methods, each with an agent that announces it and with one that does not.

use serde_json::{Value, json};

use super::play::{everything, find, readable, scene, serve_rest, whole_act, without};
use crate::{BoxFuture, Need, Scenario, Stage, Step, Stop};

/// Two scenarios per capability: without it the client leaves the method alone; with it the method comes, as evidence that the
/// client was told to use it and for watchers to look at.
macro_rules! gate {
    ($lacks:ident, $has:ident, $pointer:literal, $method:literal, $rules:expr) => {
        fn $lacks(stage: &mut Stage) -> BoxFuture<'_, Step> {
            Box::pin(lacks(stage, $pointer, $method, $rules))
        }
        fn $has(stage: &mut Stage) -> BoxFuture<'_, Step> {
            Box::pin(has(stage, $method, $rules))
        }
    };
}

gate!(no_load, load, "/loadSession", "session/load", &["SESS-07", "SESS-08"]);
gate!(no_resume, resume, "/sessionCapabilities/resume", "session/resume", &["SESS-20", "SESS-21"]);
gate!(no_close, close, "/sessionCapabilities/close", "session/close", &["SESS-25", "SESS-26", "SESS-34"]);
gate!(no_list, list, "/sessionCapabilities/list", "session/list", &["LIST-01", "LIST-02"]);
gate!(no_delete, delete, "/sessionCapabilities/delete", "session/delete", &["DEL-01", "DEL-02"]);
gate!(no_fork, fork, "/sessionCapabilities/fork", "session/fork", &["FORK-01"]);
gate!(no_providers, providers, "/providers", "providers/list", &["PROV-02"]);
gate!(no_nes, nes, "/nes", "nes/start", &["NES-01"]);

pub(super) const SCENARIOS: &[Scenario] = &[
    scene(
        "load-missing",
        "no session/load where the agent has none",
        &["SESS-07", "SESS-08"],
        &[Need::Act("load")],
        no_load,
    ),
    scene(
        "load",
        "session/load where the agent has it",
        &["SESS-07", "SESS-08", "SESS-10"],
        &[Need::Act("load")],
        load,
    ),
    scene(
        "resume-missing",
        "no session/resume where the agent has none",
        &["SESS-20", "SESS-21"],
        &[Need::Act("resume")],
        no_resume,
    ),
    scene(
        "resume",
        "session/resume where the agent has it",
        &["SESS-20", "SESS-21", "SESS-22"],
        &[Need::Act("resume")],
        resume,
    ),
    scene(
        "close-missing",
        "no session/close where the agent has none",
        &["SESS-25", "SESS-26"],
        &[Need::Act("close")],
        no_close,
    ),
    scene(
        "close",
        "session/close where the agent has it",
        &["SESS-25", "SESS-26", "SESS-34"],
        &[Need::Act("close")],
        close,
    ),
    scene(
        "list-missing",
        "no session/list where the agent has none",
        &["LIST-01", "LIST-02"],
        &[Need::Act("list")],
        no_list,
    ),
    scene("list", "session/list where the agent has it", &["LIST-01", "LIST-02"], &[Need::Act("list")], list),
    scene(
        "delete-missing",
        "no session/delete where the agent has none",
        &["DEL-01", "DEL-02"],
        &[Need::Act("delete")],
        no_delete,
    ),
    scene(
        "delete",
        "session/delete where the agent has it",
        &["DEL-01", "DEL-02"],
        &[Need::Act("delete")],
        delete,
    ),
    scene(
        "fork-missing",
        "no session/fork where the agent has none",
        &["FORK-01"],
        &[Need::Act("fork")],
        no_fork,
    ),
    scene("fork", "session/fork where the agent has it", &["FORK-01"], &[Need::Act("fork")], fork),
    scene(
        "providers-missing",
        "no providers/* where the agent has none",
        &["PROV-02"],
        &[Need::Act("providers")],
        no_providers,
    ),
    scene(
        "providers",
        "providers/* where the agent has it",
        &["PROV-02"],
        &[Need::Act("providers")],
        providers,
    ),
    scene("nes-missing", "no nes/* where the agent has none", &["NES-01"], &[Need::Act("nes")], no_nes),
    scene("nes", "nes/* where the agent has it", &["NES-01"], &[Need::Act("nes")], nes),
    scene(
        "list-pages",
        "pages follow each other by their cursors until there is none",
        &["LIST-05", "LIST-06"],
        &[Need::Act("list")],
        pages,
    ),
    scene("odd-session-id", "any text is the id of a session", &["SESS-05"], &[], odd_id),
];

async fn lacks(stage: &mut Stage, pointer: &str, method: &str, rules: &[&'static str]) -> Step {
    let said = whole_act(stage, without(pointer)).await?;
    let used = find(&said, method).is_some();
    for rule in rules.iter().filter(|rule| **rule != "SESS-34") {
        stage.check(rule, !used, format!("{method} came, which the agent does not announce"));
    }
    Ok(())
}

async fn has(stage: &mut Stage, method: &str, rules: &[&'static str]) -> Step {
    let said = whole_act(stage, everything()).await?;
    let Some(asked) = find(&said, method) else {
        return Err(Stop::NotExercised(format!("the client was told to use {method} and did not")));
    };
    for rule in rules {
        if *rule == "SESS-34" {
            let session = &asked.params()["sessionId"];
            stage.check(
                rule,
                *session == super::play::NEW,
                format!("session/close names the session {session}"),
            );
        } else {
            stage.pass(rule);
        }
    }
    Ok(())
}

fn pages(stage: &mut Stage) -> BoxFuture<'_, Step> {
    Box::pin(async move {
        stage.accept(everything()).await?;
        // Odd on purpose: whoever reads, trims or changes it is seen.
        let cursor = " Page/2?=+%20 \u{1F600}";
        let mut asked: Vec<Value> = Vec::new();
        serve_rest(stage, |method, params| {
            if method != "session/list" {
                return None;
            }
            asked.push(params["cursor"].clone());
            let info = json!({ "sessionId": super::SESSION, "cwd": "/", "title": "A session" });
            let mut page = json!({ "sessions": [info] });
            if asked.len() == 1 {
                page["nextCursor"] = json!(cursor);
            }
            Some(Ok(page))
        })
        .await?;
        if asked.is_empty() {
            return Err(Stop::NotExercised("the client was told to list sessions and did not".to_owned()));
        }
        stage.check(
            "LIST-05",
            asked.len() <= 2,
            format!("after the last page came {} more requests", asked.len().saturating_sub(2)),
        );
        if let Some(second) = asked.get(1) {
            stage.check("LIST-06", *second == cursor, format!("the cursor {cursor:?} came back as {second}"));
        }
        Ok(())
    })
}

fn odd_id(stage: &mut Stage) -> BoxFuture<'_, Step> {
    Box::pin(async move {
        let id = format!("a session / with ünïcode \"and\" more {}", "x".repeat(500));
        stage.accept(everything()).await?;
        let said =
            serve_rest(stage, |method, _| (method == "session/new").then(|| Ok(json!({ "sessionId": id }))))
                .await?;
        readable(stage)?;
        match said.iter().rfind(|heard| heard.asks("session/prompt")) {
            Some(asked) => {
                let named = &asked.params()["sessionId"];
                stage.check("SESS-05", *named == id, "an odd session id came back changed");
            }
            None => stage.fail("SESS-05", "an odd session id kept the client from prompting"),
        }
        Ok(())
    })
}
