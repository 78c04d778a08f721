//! Opening, resuming and closing sessions.

use std::rc::Rc;

use serde_json::json;

use super::{MOMENT, asking, updates};
use crate::judge::Message;
use crate::judge::v2::is_conversation;
use crate::prompts::PromptKind;
use crate::scenarios::agent::history::{play, replay};
use crate::scenarios::agent::transcript::{Exchange, Transcript};
use crate::scenarios::agent::{begin, opening, ping, reopening, unseen};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent in V2:
    "v2-baseline": "every method of sessions is there", ["V2-05", "V2-44"]
        needs [Need::Agent("session")] => baseline;
    "v2-resume": "a session is resumed with its history and without",
        ["V2-26", "V2-27"] needs [Need::Agent("session")] => resume;
    "v2-close": "a session is closed while it works and a prompt waits",
        ["V2-15", "V2-28"] needs [Need::Prompt(PromptKind::Ask)] => close;
    "v2-close-unknown": "a session that does not exist is closed",
        ["V2-29"] needs [Need::Agent("session")] => close_unknown;
    "v2-commands": "the agent names its commands", ["V2-41"] needs [Need::Agent("session")] => commands;
}

async fn baseline(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let known = json!({ "sessionId": session });
    let calls = [
        ("session/list", json!({})),
        ("session/resume", reopening(stage, &session)),
        ("session/close", known),
        ("session/new", opening(stage, json!({}))),
    ];
    for (method, params) in calls {
        let missing = stage.call(method, params).await?.is_err_and(|error| error.code == -32601);
        stage.check("V2-05", !missing, format!("{method} does not exist"));
    }
    let prompt = stage.prompt("attache-ghost", PromptKind::Say).await?;
    let missing = stage.expect(&prompt).await?.is_err_and(|error| error.code == -32601);
    stage.check("V2-05", !missing, "session/prompt does not exist");
    Ok(())
}

async fn resume(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let live = play(stage, &session).await?;
    stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    let mut params = reopening(stage, &session);
    params["replayFrom"] = json!({ "type": "start" });
    let mark = stage.mark();
    let resuming = stage.request("session/resume", params).await?;
    if let Err(error) = stage.expect(&resuming).await? {
        return unseen(&format!("session/resume was refused: {error}"));
    }
    // History after the answer is not seen by a client that waits for it.
    stage.quiet(MOMENT).await?;
    let is_answer = |message: &&Rc<Message>| message.method().is_none() && message.id() == Some(&resuming);
    let answered = stage.received(mark).iter().find(is_answer).map_or(0, |message| message.index);
    let late = updates(stage, &session, mark)
        .find(|(message, kind, _)| message.index > answered && is_conversation(kind))
        .map(|(message, kind, _)| (message.index, kind.to_owned()));
    if let Some((at, kind)) = late {
        stage.fail_at("V2-26", &[at], format!("`{kind}` of the history comes after the answer"));
        return Ok(());
    }
    // An agent need not retain history, but it replays all that it retains.
    let any = updates(stage, &session, mark).any(|(_, kind, _)| is_conversation(kind));
    if any {
        let replayed = Transcript::of(replay(stage, &session, mark));
        match replayed.missing(&live) {
            None => stage.pass("V2-26"),
            Some(what) => stage.fail("V2-26", format!("the replay lacks {what}; it is: {replayed}")),
        }
        let calls = live.iter().map(Exchange::tools).sum::<usize>();
        let why = format!("{calls} tool calls were made, the replay has {}", replayed.tools());
        stage.check("V2-26", replayed.tools() >= calls, why);
    }
    // Without `replayFrom` a watcher looks for history.
    stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    stage.call("session/resume", reopening(stage, &session)).await?.ok();
    ping(stage).await
}

async fn close(stage: &mut Stage) -> Step {
    let asking = asking(stage).await?;
    let second = stage.prompt(&asking.session, PromptKind::Say).await?;
    ping(stage).await?;
    let waits = stage.log().open(stage.plays(), &second).is_some();
    let mark = stage.mark();
    let closing = stage.request("session/close", json!({ "sessionId": asking.session })).await?;
    if let Err(error) = stage.expect(&closing).await? {
        return unseen(&format!("session/close was refused: {error}"));
    }
    let ended = updates(stage, &asking.session, mark)
        .any(|(_, _, update)| update["state"] == "idle" && update["stopReason"] == "cancelled");
    stage.check("V2-28", ended, "work was closed, and no idle state with the reason cancelled came before");
    if waits {
        match stage.expect(&second).await {
            Ok(Err(error)) => {
                let fits = error.code == -32800;
                stage.check("V2-15", fits, format!("a prompt that waited was answered with {error}"));
            }
            Ok(Ok(_)) => stage.fail("V2-15", "a prompt that waited was inserted after session/close"),
            Err(Stop::Deadline(_)) => {
                stage.fail("V2-15", "a prompt that waited was not answered after session/close");
            }
            Err(stop) => return Err(stop),
        }
    }
    // A watcher sees updates that follow the answer.
    stage.quiet(MOMENT).await?;
    ping(stage).await
}

async fn close_unknown(stage: &mut Stage) -> Step {
    stage.initialize(super::super::capabilities()).await?;
    let answer = stage.call("session/close", json!({ "sessionId": "attache-ghost" })).await?;
    let why = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
    stage.check("V2-29", answer.is_ok(), format!("closing an unknown session was refused: {why}"));
    Ok(())
}

/// Watchers judge the commands.
async fn commands(stage: &mut Stage) -> Step {
    begin(stage).await?;
    stage.quiet(MOMENT).await?;
    ping(stage).await
}
