//! Cancelled turns and requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::ask::ask;
use super::steps::{Turn, answer_to, end, leaves, lives, open_turn, probe, soon};
use super::terminals;
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Client:
    "cancel": "session/cancel names the session of the turn",
        ["CANCEL-01", "SESS-02"] needs [Need::Act("cancel")] => cancel;
    "cancel-permission": "a question that waits is answered when the turn is cancelled",
        ["CANCEL-03", "CANCEL-22", "PERM-08"] needs [Need::Acts("ask", "cancel")] => permission;
    "cancel-updates": "updates after the cancel are taken",
        ["CANCEL-09"] needs [Need::Act("cancel")] => updates;
    "withdrawn": "a request that is withdrawn is answered once",
        ["CANCEL-16"] needs [Need::Client("terminal")] => withdrawn;
    "withdrawn-unknown": "withdrawing what is not there does nothing",
        ["CANCEL-20", "CANCEL-21"] => withdrawn_unknown;
}

/// Makes the client cancel its turn and waits until it says so.
async fn cancelled(stage: &mut Stage) -> Result<Value, Stop> {
    stage.act("cancel")?;
    let cancel =
        soon(stage.deadline(), stage.until_stopped("session/cancel")).await.map_err(|stop| match stop {
            Stop::Deadline(_) | Stop::PeerGone => {
                Stop::NotExercised("the client was asked to cancel and did not".to_owned())
            }
            stop => stop,
        })?;
    Ok(cancel.params()["sessionId"].clone())
}

async fn end_cancelled(stage: &mut Stage, turn: &Turn) -> Step {
    stage.end_turn(&turn.prompt, "cancelled").await?;
    leaves(stage, &[], "the end of a cancelled turn").await
}

async fn cancel(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let session = cancelled(stage).await?;
    stage.check("CANCEL-01", session == turn.session, format!("session/cancel names {session}"));
    end_cancelled(stage, &turn).await
}

async fn permission(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let mark = stage.mark();
    let one = ask(stage, &turn, "call-1").await?;
    let two = ask(stage, &turn, "call-2").await?;
    stage.quiet(Duration::from_millis(500)).await?;
    let is_early = |id: &Value| stage.received(mark).iter().any(|message| message.id() == Some(id));
    if is_early(&one) || is_early(&two) {
        return Err(Stop::NotExercised("the client answers permission requests by itself".to_owned()));
    }
    cancelled(stage).await?;
    for id in [&one, &two] {
        settled(stage, id).await?;
    }
    end_cancelled(stage, &turn).await
}

/// An open question of a cancelled turn is answered, and as cancelled.
// CANCEL-03, PERM-08
async fn settled(stage: &mut Stage, id: &Value) -> Step {
    match answer_to(stage, id).await {
        Ok(Ok(result)) => {
            let kept = result["outcome"]["outcome"] == "cancelled";
            let why = format!("after session/cancel the question was answered {result}");
            stage.check("CANCEL-03", kept, why.clone());
            stage.check("PERM-08", kept, why);
            stage.pass("CANCEL-22");
        }
        // One picture of the documentation shows this error, so it breaks no duty.
        Ok(Err(error)) if error.code == -32800 => {
            stage.fail("CANCEL-22", "after session/cancel the question was answered with -32800");
        }
        Ok(Err(error)) => {
            let why = format!("after session/cancel the question was answered with the error {}", error.code);
            stage.fail("CANCEL-03", why.clone());
            stage.fail("PERM-08", why);
        }
        Err(Stop::Deadline(_) | Stop::PeerGone) => {
            stage.fail("CANCEL-03", "after session/cancel the question was not answered");
        }
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn updates(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "A tool", "kind": "read", "status": "in_progress" });
    stage.update(&turn.session, call).await?;
    cancelled(stage).await?;
    let update =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed" });
    stage.update(&turn.session, update).await?;
    lives(stage, &turn, &["CANCEL-09"], "an update after the cancel").await?;
    end_cancelled(stage, &turn).await
}

async fn withdrawn(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    // It ends by itself, so that a client which ignores the withdrawal answers too (CANCEL-14).
    let terminal = terminals::start(stage, &turn, "sleep 2", json!({})).await?;
    let id = stage.request("terminal/wait_for_exit", turn.with(json!({ "terminalId": terminal }))).await?;
    let mark = stage.mark();
    stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
    match answer_to(stage, &id).await {
        Ok(_) => {}
        Err(Stop::Deadline(_)) => {
            stage.fail("CANCEL-16", "a request that was withdrawn was never answered");
            return end(stage, &turn).await;
        }
        Err(stop) => return Err(stop),
    }
    stage.quiet(Duration::from_secs(3)).await?;
    let answers = stage.received(mark).iter().filter(|message| message.id() == Some(&id)).count();
    stage.check(
        "CANCEL-16",
        answers == 1,
        format!("a request that was withdrawn was answered {answers} times"),
    );
    end(stage, &turn).await
}

async fn withdrawn_unknown(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let mark = stage.mark();
    stage.notify("$/cancel_request", json!({ "requestId": 9999 })).await?;
    probe(stage).await?;
    let said = stage.received(mark).iter().any(|message| message.id() == Some(&json!(9999)));
    stage.check("CANCEL-20", !said, "the withdrawal of an unknown request was answered");
    // The client has a request with this id, the agent has none.
    stage.notify("$/cancel_request", json!({ "requestId": turn.prompt })).await?;
    stage.quiet(Duration::from_millis(500)).await?;
    lives(stage, &turn, &["CANCEL-21"], "a withdrawal with the id of its own prompt").await?;
    end(stage, &turn).await
}
