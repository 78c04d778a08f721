//! Cancelling, background work.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{MOMENT, asking, idle, updates};
use crate::judge::Message;
use crate::prompts::PromptKind;
use crate::scenarios::agent::{begin, on_disk, ping, unseen};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent in V2:
    "v2-cancel-thinking": "cancelled while the agent thinks",
        ["V2-14"] needs [Need::Prompt(PromptKind::Think)] => thinking;
    "v2-cancel-asking": "cancelled while a permission waits, which is never answered",
        ["V2-14", "V2-46"] needs [Need::Prompt(PromptKind::Ask)] => cancel_asking;
    "v2-cancel-waiting": "cancelled while a second prompt waits",
        ["V2-15"] needs [Need::Prompt(PromptKind::Ask)] => cancel_waiting;
    "v2-withdrawn-prompt": "a prompt that waits is withdrawn and answered once",
        ["CANCEL-16"] needs [Need::Prompt(PromptKind::Ask)] => withdrawn_prompt;
    "v2-background": "background work outlives its turn and a cancel",
        ["V2-15", "V2-36"] needs [Need::Prompt(PromptKind::Background)] => background;
}

/// Judges the end of cancelled work.
fn cancelled(stage: &mut Stage, reason: &Value) {
    stage.check("V2-14", *reason == "cancelled", format!("cancelled work ended with the reason {reason}"));
}

async fn thinking(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let prompt = stage.prompt(&session, PromptKind::Think).await?;
    let speaks = |kind: &str| kind.starts_with("agent_");
    let spoke =
        stage.during(&prompt, |message| message.update().is_some_and(|(_, kind, _)| speaks(kind))).await?;
    if spoke.is_none() {
        return unseen("the turn ended before it could be cancelled");
    }
    let sure = updates(stage, &session, 0).all(|(_, _, update)| update["state"] != "idle");
    stage.cancel(&session).await?;
    match idle(stage, &prompt).await? {
        // It may have ended by itself before the cancel arrived.
        Some(reason) if reason != "end_turn" || !sure => cancelled(stage, &reason),
        Some(_) => return unseen("the turn ended before it could be cancelled"),
        None => stage.fail("V2-14", "cancelled work did not end"),
    }
    // A watcher sees updates that come too late.
    stage.quiet(MOMENT).await?;
    ping(stage).await
}

async fn cancel_asking(stage: &mut Stage) -> Step {
    let asking = asking(stage).await?;
    let file = stage.cwd().join("old.txt");
    stage.cancel(&asking.session).await?;
    match idle(stage, &asking.prompt).await? {
        Some(reason) => {
            stage.pass("V2-46");
            cancelled(stage, &reason);
        }
        None => stage.fail("V2-46", "after session/cancel the agent waits for its permission request"),
    }
    // An approval that comes too late approves nothing.
    if asking.allow(stage).await.is_ok() && on_disk(stage) {
        stage.quiet(MOMENT).await?;
        stage.check("V2-46", file.exists(), "a permission of cancelled work was taken after all");
    }
    ping(stage).await
}

async fn cancel_waiting(stage: &mut Stage) -> Step {
    let asking = asking(stage).await?;
    let second = stage.prompt(&asking.session, PromptKind::Say).await?;
    ping(stage).await?;
    let is_waiting = |stage: &Stage| stage.log().open(stage.plays(), &second).is_some();
    if !is_waiting(stage) {
        return unseen("a second prompt is answered at once");
    }
    stage.cancel(&asking.session).await?;
    idle(stage, &asking.prompt).await?;
    let deadline = stage.deadline();
    match tokio::time::timeout(deadline, stage.expect(&second)).await {
        Ok(Ok(Err(error))) => {
            let fits = error.code == -32800;
            stage.check("V2-15", fits, format!("a cancelled prompt was answered with {error}"));
        }
        Ok(Ok(Ok(_))) => stage.fail("V2-15", "a prompt that waited was inserted after session/cancel"),
        Ok(Err(Stop::Deadline(_))) | Err(_) => {
            stage.deadline_passed();
            stage.fail("V2-15", "a prompt that waited was not answered after session/cancel");
        }
        Ok(Err(stop)) => return Err(stop),
    }
    Ok(())
}

async fn withdrawn_prompt(stage: &mut Stage) -> Step {
    let asking = asking(stage).await?;
    let second = stage.prompt(&asking.session, PromptKind::Say).await?;
    ping(stage).await?;
    if stage.log().open(stage.plays(), &second).is_none() {
        return unseen("a second prompt is answered at once");
    }
    let mark = stage.mark();
    stage.notify("$/cancel_request", json!({ "requestId": second })).await?;
    // Honoured or not, the work before it ends and the prompt gets its one answer.
    asking.allow(stage).await?;
    match stage.expect(&second).await {
        Ok(Ok(_)) => stage.pass("CANCEL-16"),
        Ok(Err(error)) => {
            let why = format!("a withdrawn prompt was answered with {error}");
            stage.check("CANCEL-16", error.code == -32800, why);
        }
        Err(Stop::Deadline(_)) => {
            stage.fail("CANCEL-16", "a withdrawn prompt was never answered");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    stage.quiet(MOMENT).await?;
    ping(stage).await?;
    let is_answer = |message: &&Rc<Message>| message.method().is_none() && message.id() == Some(&second);
    let answers = stage.received(mark).iter().filter(is_answer).count();
    stage.check("CANCEL-16", answers == 1, format!("a withdrawn prompt was answered {answers} times"));
    Ok(())
}

async fn background(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Background).await?.ok();
    let listed = updates(stage, &session, mark)
        .filter(|(_, kind, _)| *kind == "state_update")
        .last()
        .and_then(|(_, _, update)| update["background"].as_array().cloned())
        .unwrap_or_default();
    let work = listed.iter().find_map(|item| {
        ["terminalId", "toolCallId"]
            .into_iter()
            .find(|key| item[key].is_string())
            .map(|key| (key, &item[key]))
    });
    let Some((key, id)) = work else { return unseen("the agent lists no background work") };
    let mark = stage.mark();
    stage.cancel(&session).await?;
    stage.quiet(MOMENT * 2).await?;
    let ended = updates(stage, &session, mark).any(|(_, _, update)| {
        update[key] == *id && (update["exitStatus"].is_object() || update["status"] == "cancelled")
    });
    stage.check("V2-15", !ended, "session/cancel ended work of the background list");
    stage.turn(&session, PromptKind::Say).await?.ok();
    stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    Ok(())
}
