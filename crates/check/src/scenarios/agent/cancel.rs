//! Cancelling, at every point of a turn.

use std::time::Duration;

use serde_json::{Value, json};

use super::{begin, is_question, ping, served, unseen};
use crate::judge::{Kind, Message};
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Id;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent:
    "cancel-at-once": "cancelled before the first update",
        ["CANCEL-05", "CANCEL-06"] needs [Need::Prompt(PromptKind::Think)] => at_once;
    "cancel-thinking": "cancelled while the agent thinks",
        ["CANCEL-04", "CANCEL-05", "CANCEL-06", "CANCEL-08", "CANCEL-12"]
        needs [Need::Prompt(PromptKind::Think)] => thinking;
    "cancel-asking": "cancelled while a permission waits",
        ["CANCEL-05", "CANCEL-06", "CANCEL-08", "CANCEL-12"] needs [Need::Prompt(PromptKind::Ask)] => asking;
    "cancel-running": "cancelled while a terminal runs", ["CANCEL-04", "CANCEL-05", "CANCEL-06", "CANCEL-08",
        "TERM-05", "TERM-22"] needs [Need::Prompt(PromptKind::RunLong)] => running;
    "cancel-late": "cancelled after the answer", ["CANCEL-10", "CANCEL-12"] => late;
    "cancel-request": "a request is cancelled by its id",
        ["CANCEL-16", "CANCEL-21", "CANCEL-23"] needs [Need::Prompt(PromptKind::Ask)] => request;
}

/// The time that an agent has to put its terminals away.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Checks the answer to a cancelled turn. `sure`: the turn could not have ended before the cancel
/// arrived.
async fn judge(stage: &mut Stage, id: &Id, sure: bool) -> Result<Option<Value>, Stop> {
    let mut answered = stage.expect(id).await;
    if let Err(Stop::Deadline(_)) = answered {
        // A late answer is slow (CANCEL-04), and may be right.
        answered = stage.expect(id).await;
        if answered.is_ok() {
            let seconds = (stage.deadline() * 6).as_secs();
            stage.fail("CANCEL-04", format!("it took more than {seconds} seconds to stop"));
        }
    }
    match answered {
        Ok(Ok(result)) => {
            let reason = result["stopReason"].clone();
            if reason == "cancelled" {
                stage.pass_all(&["CANCEL-05", "CANCEL-06"]);
            } else if sure {
                stage.fail(
                    "CANCEL-05",
                    format!("a cancelled turn was answered with the stop reason {reason}"),
                );
            }
            Ok(Some(reason))
        }
        Ok(Err(error)) => {
            stage.fail(
                "CANCEL-06",
                format!("a cancelled turn was answered with an error: {} {}", error.code, error.message),
            );
            Ok(None)
        }
        Err(Stop::Deadline(_)) => {
            stage.fail("CANCEL-05", "a cancelled turn is not answered");
            unseen("the turn does not end")
        }
        Err(stop) => Err(stop),
    }
}

/// And then everything goes on.
// CANCEL-12
async fn again(stage: &mut Stage, session: &str) -> Step {
    stage.probe().await?;
    let answer = stage.turn(session, PromptKind::Say).await?;
    if let Ok(result) = answer {
        let reason = &result["stopReason"];
        stage.check(
            "CANCEL-12",
            *reason != "cancelled",
            "the prompt after a cancelled one was cancelled too",
        );
    }
    Ok(())
}

async fn at_once(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let id = stage.prompt(&session, PromptKind::Think).await?;
    stage.cancel(&session).await?;
    // The agent has read past the cancel when this is answered; a turn that has ended by then is no
    // evidence.
    ping(stage).await?;
    let sure = stage.is_running(&id);
    judge(stage, &id, sure).await?;
    Ok(())
}

async fn thinking(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let id = stage.prompt(&session, PromptKind::Think).await?;
    if stage
        .during(&id, |message| message.update().is_some_and(|(_, kind, _)| kind.ends_with("_chunk")))
        .await?
        .is_none()
    {
        return unseen("the turn was over at once");
    }
    let asked = stage.trace().entries.last().map(|entry| entry.at).unwrap_or_default();
    stage.cancel(&session).await?;
    ping(stage).await?;
    let sure = stage.is_running(&id);
    if judge(stage, &id, sure).await?.is_some() {
        let took =
            stage.received(0).last().map(|message| message.at).unwrap_or_default().saturating_sub(asked);
        stage.check(
            "CANCEL-04",
            took < Duration::from_secs(10),
            format!("it took {} seconds to stop", took.as_secs()),
        );
    }
    again(stage, &session).await
}

async fn asking(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.hold("session/request_permission");
    let id = stage.prompt(&session, PromptKind::Ask).await?;
    let Some(question) = stage.during(&id, is_question).await? else {
        return unseen("the agent asked for no permission");
    };
    stage.cancel(&session).await?;
    let question = question.id().cloned().unwrap_or_default();
    stage.answer(&question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    // The question was open, so the turn was.
    judge(stage, &id, true).await?;
    stage.services.release("session/request_permission");
    again(stage, &session).await
}

async fn running(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let id = stage.prompt(&session, PromptKind::RunLong).await?;
    let runs = |message: &Message| message.asks("terminal/wait_for_exit") || message.asks("terminal/output");
    if !served(stage, &id, runs).await? {
        let left = running_terminal(stage, &session).filter(|_| !stage.is_running(&id));
        if let Some((id, created)) = left {
            let why =
                format!("the turn has ended, and the command in terminal {id:?}, to be waited for, runs on");
            stage.fail_at("TERM-22", &[created], why);
        }
        return unseen("the agent waited for no command in a terminal of the client");
    }
    stage.pass("TERM-22");
    stage.cancel(&session).await?;
    judge(stage, &id, true).await?;
    stage.quiet(AFTERWARDS).await?;
    match running_terminal(stage, &session) {
        Some((id, created)) => stage.fail_at(
            "CANCEL-04",
            &[created],
            format!("the turn was cancelled and has ended, and its command in terminal {id:?} runs on"),
        ),
        None => stage.pass("CANCEL-04"),
    }
    ping(stage).await
}

/// A terminal of the session whose command has not ended, with the entry that made it.
fn running_terminal(stage: &Stage, session: &str) -> Option<(String, usize)> {
    let mut terminals = stage.log().terminals.iter();
    let runs = terminals
        .find(|(_, one)| one.session == session && one.released.is_none() && !one.ended && !one.killed);
    runs.map(|(id, one)| (id.clone(), one.created))
}

async fn late(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    stage.cancel(&session).await?;
    let message = stage.probe().await?;
    let silent = !message.iter().any(|message| matches!(message.kind, Kind::Response { .. }));
    stage.check("CANCEL-10", silent, "a cancel of an idle session was answered");
    again(stage, &session).await
}

async fn request(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.hold("session/request_permission");
    let id = stage.prompt(&session, PromptKind::Ask).await?;
    let Some(question) = stage.during(&id, is_question).await? else {
        return unseen("the agent asked for no permission");
    };
    stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
    let question = question.id().cloned().unwrap_or_default();
    // Honoured or not, the question is settled and the request gets its one answer.
    stage.answer(&question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    match stage.expect(&id).await {
        Ok(Ok(_)) => stage.pass("CANCEL-16"),
        Ok(Err(error)) => stage.check(
            "CANCEL-16",
            error.code == -32800,
            format!("a cancelled request was answered with {} instead of -32800", error.code),
        ),
        Err(Stop::Deadline(_)) => {
            stage.fail("CANCEL-16", "a cancelled request is not answered");
            stage.not_applicable("RPC-24", "CANCEL-16 says it");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    stage.pass("CANCEL-23");
    let more = stage
        .probe()
        .await?
        .iter()
        .any(|message| message.id() == Some(&id) && message.json.get("method").is_none());
    stage.check("CANCEL-16", !more, "a cancelled request was answered twice");
    Ok(())
}
