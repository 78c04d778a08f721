//! Next-edit suggestions, as the drafts until August 2026 have them.

use serde_json::{Value, json};

use super::{capabilities, unseen};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const NES: Need = Need::Agent("nes");

scenario_table! { Agent:
    "nes": "a document is opened and suggestions are asked for",
        ["NES-05", "NES-06", "NES-09", "NES-10", "NES-14", "NES-16", "NES-20"] needs [NES] => suggest(true);
    "nes-plain": "a client that knows edits only", ["NES-04", "NES-10"] needs [NES] => suggest(false);
    "nes-close": "closed while a suggestion is being made", ["NES-08"] needs [NES] => close;
}

const URI: &str = "file:///attache/a.txt";

async fn start(stage: &mut Stage, all: bool) -> Result<String, Stop> {
    let mut able = capabilities();
    if !all {
        able["nes"] = json!({});
        able["positionEncodings"] = Value::Null;
    }
    stage.initialize(able).await?;
    let session = match stage.call("nes/start", json!({})).await? {
        Ok(result) => {
            stage.pass("NES-06");
            result["sessionId"].as_str().unwrap_or_default().to_owned()
        }
        Err(error) if error.code == -32602 => {
            stage.fail("NES-06", "nes/start without params was refused");
            return unseen("nes/start was refused");
        }
        Err(error) => return unseen(&format!("nes/start was refused: {}", error.message)),
    };
    let opened = json!({ "sessionId": session, "uri": URI, "languageId": "plaintext", "version": 1, "text": "😀 teh end" });
    stage.notify("document/didOpen", opened).await?;
    Ok(session)
}

fn question(session: &str, version: i64, trigger: &str) -> Value {
    json!({
        "sessionId": session, "uri": URI, "version": version, "position": { "line": 0, "character": 3 },
        "triggerKind": trigger,
    })
}

async fn suggest(stage: &mut Stage, all: bool) -> Step {
    let session = start(stage, all).await?;
    let mut any = false;
    for _ in 0..2 {
        let answer = stage.call("nes/suggest", question(&session, 1, "manual")).await?;
        any |=
            answer.is_ok_and(|result| result["suggestions"].as_array().is_some_and(|list| !list.is_empty()));
    }
    if !all {
        return Ok(());
    }
    let stale = stage.call("nes/suggest", question(&session, 0, "manual")).await?;
    stage.check("NES-20", stale.is_ok(), "a stale version was answered with an error");
    stage.notify("nes/accept", json!({ "sessionId": "attache-ghost", "id": "x" })).await?;
    let ghost = stage.call("nes/suggest", question("attache-ghost", 1, "manual")).await?;
    stage.check("NES-16", ghost.is_err(), "a suggestion for an unknown session was made");
    // NES-05: it is no session to talk to.
    let text = json!([{ "type": "text", "text": "hello" }]);
    let answer = stage.call("session/prompt", json!({ "sessionId": session, "prompt": text })).await?;
    stage.check("NES-05", answer.is_err(), "a prompt was accepted for a session of suggestions");
    if any { Ok(()) } else { unseen("the agent suggested nothing") }
}

async fn close(stage: &mut Stage) -> Step {
    let session = start(stage, true).await?;
    let id = stage.request("nes/suggest", question(&session, 1, "automatic")).await?;
    if let Err(error) = stage.call("nes/close", json!({ "sessionId": session })).await? {
        return unseen(&format!("nes/close was refused: {}", error.message));
    }
    match stage.expect(&id).await {
        Ok(_) => {}
        Err(Stop::Deadline(_)) => {
            stage.fail("NES-08", "a suggestion that was asked for before the close is not answered");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    let after = stage.call("nes/suggest", question(&session, 1, "manual")).await?;
    stage.check("NES-08", after.is_err(), "a closed session still suggests");
    Ok(())
}
