//! Listing and deleting sessions.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{begin, open_with, turn, unseen};
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::WireError;
use crate::{Need, Stage, Step, Stop, Version};

const LIST: Need = Need::Agent("sessionCapabilities.list");

scenario_table! { Agent in BOTH:
    "list": "sessions are listed, page by page",
        ["LIST-03", "LIST-05", "LIST-07", "LIST-09", "LIST-10", "LIST-11", "LIST-14", "RPC-21", "SSTAT-05"]
        needs [LIST] => list;
    "list-nothing": "nothing fits", ["LIST-04"] needs [LIST] => nothing;
    "list-title": "the title in updates and in the list", ["LIST-12", "LIST-13"] needs [LIST]
        => title;
    "list-archived": "an unknown filter",
        ["SSTAT-06"] needs [Need::Agent("sessionCapabilities.archive")] => filter;
    "delete": "a deleted session is gone",
        ["DEL-03", "DEL-04"] needs [Need::Agent("sessionCapabilities.delete")] => delete;
}

/// More pages than any agent has for a handful of sessions, and still an end.
const PAGES: usize = 200;

/// Every session of the list; `None` if it does not end.
async fn all(stage: &mut Stage, filter: Value) -> Result<Result<Option<Vec<Value>>, WireError>, Stop> {
    let mut found = Vec::new();
    let mut cursors = BTreeSet::new();
    let mut params = filter;
    for _ in 0..PAGES {
        let page = match stage.call("session/list", params.clone()).await? {
            Ok(page) => page,
            Err(error) => return Ok(Err(error)),
        };
        found.extend(page["sessions"].as_array().cloned().unwrap_or_default());
        let Some(cursor) = page["nextCursor"].as_str() else {
            return Ok(Ok(Some(found)));
        };
        if !cursors.insert(cursor.to_owned()) {
            return Ok(Ok(None));
        }
        params["cursor"] = json!(cursor);
    }
    Ok(Ok(None))
}

/// The ids of the sessions below a directory. Other sessions may appear at any time.
fn ids<'a>(list: &'a [Value], cwd: &str) -> BTreeSet<&'a str> {
    let beneath = |info: &&Value| info["cwd"].as_str().is_some_and(|place| Path::new(place).starts_with(cwd));
    list.iter().filter(beneath).filter_map(|info| info["sessionId"].as_str()).collect()
}

async fn list(stage: &mut Stage) -> Step {
    begin(stage).await?;
    for _ in 0..4 {
        let session = stage.new_session().await?;
        stage.turn(&session, PromptKind::Say).await?.ok();
    }
    // One that is elsewhere, so that a filter has something to leave out.
    let elsewhere = stage.cwd().join("elsewhere");
    super::roots::make_dir(stage, &elsewhere);
    let session = open_with(stage, json!({ "cwd": elsewhere.to_string_lossy() })).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    let cwd = stage.cwd().to_string_lossy().into_owned();
    let everything = match all(stage, json!({})).await? {
        Ok(Some(list)) => list,
        Ok(None) => {
            stage.fail("LIST-05", "the list does not end: a cursor comes again, or there is always one more");
            return Ok(());
        }
        Err(error) => return unseen(&format!("session/list was refused: {}", error.message)),
    };
    let here = all(stage, json!({ "cwd": cwd })).await?.ok().flatten().unwrap_or_default();
    stage.pass("LIST-05");
    let strange = here.iter().find(|info| info["cwd"] != cwd.as_str()).cloned();
    stage.check("LIST-09", strange.is_none(), format!("the list of {cwd:?} holds {strange:?}"));
    let again = all(stage, json!({ "additionalDirectories": [&cwd] })).await?;
    match again {
        Ok(again) => {
            stage.pass("LIST-14");
            let same = again.is_some_and(|again| ids(&again, &cwd) == ids(&everything, &cwd));
            stage.check("LIST-11", same, "two lists in a row differ");
        }
        Err(error) => {
            stage.fail("LIST-14", format!("a filter of an older draft was refused: {}", error.message))
        }
    }
    let ghost = stage.call("session/list", json!({ "cursor": "attache-ghost" })).await?;
    stage.check("LIST-07", ghost.is_err(), "a cursor that the agent never gave was accepted");
    // RPC-21: no member is required, so no params are needed.
    let none = stage.call("session/list", Value::Null).await?;
    stage.send(json!({ "jsonrpc": "2.0", "id": "null", "method": "session/list", "params": null })).await?;
    let null = stage.expect(&json!("null")).await?;
    stage.check("RPC-21", none.is_ok() && null.is_ok(), "session/list without params was refused");
    Ok(())
}

async fn nothing(stage: &mut Stage) -> Step {
    begin(stage).await?;
    let nowhere = stage.cwd().join("attache-nowhere").to_string_lossy().into_owned();
    match stage.call("session/list", json!({ "cwd": nowhere })).await? {
        Ok(result) if result["sessions"].is_array() => {
            let empty = result["sessions"].as_array().is_some_and(Vec::is_empty);
            stage.check("LIST-04", empty, "a directory without sessions has some");
        }
        Ok(_) => {}
        Err(error) if error.code == -32601 && stage.version() == Version::V2 => {
            return unseen("session/list does not exist (V2-05)");
        }
        Err(error) => stage.fail(
            "LIST-04",
            format!("nothing to list was answered with an error: {} {}", error.code, error.message),
        ),
    }
    Ok(())
}

async fn title(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    turn(stage, &session, "Title this session with a name of your own.").await?.ok();
    stage.call("session/list", json!({})).await?.ok();
    Ok(())
}

async fn filter(stage: &mut Stage) -> Step {
    begin(stage).await?;
    match stage.call("session/list", json!({ "archived": "_attache" })).await? {
        Err(error) => stage.check(
            "SSTAT-06",
            error.code == -32602,
            format!("refused with {} instead of -32602", error.code),
        ),
        Ok(_) => stage.fail("SSTAT-06", "an unknown filter was accepted"),
    }
    Ok(())
}

async fn delete(stage: &mut Stage) -> Step {
    begin(stage).await?;
    let session = open_with(stage, json!({})).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    if let Err(error) = stage.call("session/delete", json!({ "sessionId": session })).await? {
        return unseen(&format!("session/delete was refused: {}", error.message));
    }
    if stage.need("sessionCapabilities.list").is_ok() {
        let left = all(stage, json!({})).await?.ok().flatten();
        if let Some(left) = left {
            stage.check(
                "DEL-03",
                !left.iter().any(|info| info["sessionId"] == session.as_str()),
                "a deleted session is still listed",
            );
        }
    }
    for id in [session.as_str(), "attache-ghost"] {
        let again = stage.call("session/delete", json!({ "sessionId": id })).await?;
        stage.check("DEL-04", again.is_ok(), format!("deleting {id:?}, which is not there, was refused"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_others_do_not_count() {
        let before =
            [json!({ "sessionId": "a", "cwd": "/w" }), json!({ "sessionId": "b", "cwd": "/w/else" })];
        let other = json!({ "sessionId": "x", "cwd": "/w2" });
        let after = [before[1].clone(), other, before[0].clone()];
        assert_eq!(ids(&before, "/w"), ids(&after, "/w"));
        assert_ne!(ids(&before[..1], "/w"), ids(&after, "/w"));
    }
}
