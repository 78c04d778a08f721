//! Session methods, each with an agent that announces it and with one that does not.

use serde_json::{Value, json};

use super::steps::{everything, find, readable, serve_rest, whole_act, without};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

/// A capability of the agent, the method that needs it, and the rules about both.
struct Capability {
    pointer: &'static str,
    method: &'static str,
    rules: &'static [&'static str],
}

const fn capability(
    pointer: &'static str,
    method: &'static str,
    rules: &'static [&'static str],
) -> Capability {
    Capability { pointer, method, rules }
}

const LOAD: Capability = capability("/loadSession", "session/load", &["SESS-07", "SESS-08"]);
const RESUME: Capability =
    capability("/sessionCapabilities/resume", "session/resume", &["SESS-20", "SESS-21"]);
const CLOSE: Capability =
    capability("/sessionCapabilities/close", "session/close", &["SESS-25", "SESS-26", "SESS-34"]);
const LIST: Capability = capability("/sessionCapabilities/list", "session/list", &["LIST-01", "LIST-02"]);
const DELETE: Capability = capability("/sessionCapabilities/delete", "session/delete", &["DEL-01", "DEL-02"]);
const FORK: Capability = capability("/sessionCapabilities/fork", "session/fork", &["FORK-01"]);
const PROVIDERS: Capability = capability("/providers", "providers/list", &["PROV-02"]);
const NES: Capability = capability("/nes", "nes/start", &["NES-01"]);

scenario_table! { Client:
    "load-missing": "no session/load where the agent has none",
        ["SESS-07", "SESS-08"] needs [Need::Act("load")] => lacks(LOAD);
    "load": "session/load where the agent has it",
        ["SESS-07", "SESS-08", "SESS-10"] needs [Need::Act("load")] => has(LOAD);
    "resume-missing": "no session/resume where the agent has none",
        ["SESS-20", "SESS-21"] needs [Need::Act("resume")] => lacks(RESUME);
    "resume": "session/resume where the agent has it",
        ["SESS-20", "SESS-21", "SESS-22"] needs [Need::Act("resume")] in BOTH => has(RESUME);
    "close-missing": "no session/close where the agent has none",
        ["SESS-25", "SESS-26"] needs [Need::Act("close")] => lacks(CLOSE);
    "close": "session/close where the agent has it",
        ["SESS-25", "SESS-26", "SESS-34"] needs [Need::Act("close")] in BOTH => has(CLOSE);
    "list-missing": "no session/list where the agent has none",
        ["LIST-01", "LIST-02"] needs [Need::Act("list")] => lacks(LIST);
    "list": "session/list where the agent has it",
        ["LIST-01", "LIST-02"] needs [Need::Act("list")] => has(LIST);
    "delete-missing": "no session/delete where the agent has none",
        ["DEL-01", "DEL-02"] needs [Need::Act("delete")] in BOTH => lacks(DELETE);
    "delete": "session/delete where the agent has it",
        ["DEL-01", "DEL-02"] needs [Need::Act("delete")] in BOTH => has(DELETE);
    "fork-missing": "no session/fork where the agent has none",
        ["FORK-01"] needs [Need::Act("fork")] in BOTH => lacks(FORK);
    "fork": "session/fork where the agent has it",
        ["FORK-01"] needs [Need::Act("fork")] in BOTH => has(FORK);
    "providers-missing": "no providers/* where the agent has none",
        ["PROV-02"] needs [Need::Act("providers")] in BOTH => lacks(PROVIDERS);
    "providers": "providers/* where the agent has it",
        ["PROV-02"] needs [Need::Act("providers")] in BOTH => has(PROVIDERS);
    "nes-missing": "no nes/* where the agent has none", ["NES-01"] needs [Need::Act("nes")] => lacks(NES);
    "nes": "nes/* where the agent has it", ["NES-01"] needs [Need::Act("nes")] => has(NES);
    "list-pages": "pages follow each other by their cursors until there is none",
        ["LIST-05", "LIST-06", "ROOT-04"] needs [Need::Act("list")] in BOTH => pages;
    "odd-session-id": "any text is the id of a session", ["SESS-05"] in BOTH => odd_id;
}

async fn lacks(stage: &mut Stage, Capability { pointer, method, rules }: Capability) -> Step {
    let said = whole_act(stage, without(pointer)).await?;
    let used = find(&said, method).is_some();
    for rule in rules.iter().filter(|rule| **rule != "SESS-34") {
        stage.check(rule, !used, format!("{method} came, which the agent does not announce"));
    }
    Ok(())
}

async fn has(stage: &mut Stage, Capability { method, rules, .. }: Capability) -> Step {
    let said = whole_act(stage, everything()).await?;
    let Some(asked) = find(&said, method) else {
        return Err(Stop::NotExercised(format!("the client was asked to use {method} and did not")));
    };
    for rule in rules {
        if *rule == "SESS-34" {
            let session = &asked.params()["sessionId"];
            stage.check(
                rule,
                *session == super::steps::NEW,
                format!("session/close names the session {session}"),
            );
        } else {
            stage.pass(rule);
        }
    }
    Ok(())
}

async fn pages(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    // Odd on purpose, to detect clients that trim or change it.
    let cursor = " Page/2?=+%20 \u{1F600}";
    let mut asked: Vec<Value> = Vec::new();
    serve_rest(stage, |method, params| {
        if method != "session/list" {
            return None;
        }
        asked.push(params["cursor"].clone());
        let info = json!({ "sessionId": crate::target::SESSION, "cwd": "/", "title": "A session" });
        let mut page = json!({ "sessions": [info] });
        if asked.len() == 1 {
            page["nextCursor"] = json!(cursor);
        }
        Some(Ok(page))
    })
    .await?;
    if asked.is_empty() {
        return Err(Stop::NotExercised("the client was asked to list sessions and did not".to_owned()));
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
}

async fn odd_id(stage: &mut Stage) -> Step {
    let id = format!("a session / with ünïcode \"and\" more {}", "x".repeat(500));
    stage.accept(everything()).await?;
    let said =
        serve_rest(stage, |method, _| (method == "session/new").then(|| Ok(json!({ "sessionId": id }))))
            .await?;
    readable(stage)?;
    match said.iter().rfind(|message| message.asks("session/prompt")) {
        Some(asked) => {
            let named = &asked.params()["sessionId"];
            stage.check("SESS-05", *named == id, "an odd session id came back changed");
        }
        None => stage.fail("SESS-05", "an odd session id kept the client from prompting"),
    }
    Ok(())
}
