//! Opening, resuming and closing sessions.

use std::rc::Rc;

use serde_json::json;

use super::{MOMENT, asking, updates};
use crate::judge::Message;
use crate::judge::v2::is_conversation;
use crate::prompts::PromptKind;
use crate::scenarios::agent::{begin, opening, ping, reopening, unseen};
use crate::scenarios::scenario_table;
use crate::show::Conversation;
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
    let mark = stage.mark();
    if let Err(error) = stage.turn(&session, PromptKind::Say).await? {
        return unseen(&format!("the prompt was refused: {error}"));
    }
    let said = agent_messages(stage, &session, mark);
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
    let is_user = |kind: &str| kind == "user_message" || kind == "user_message_chunk";
    // The words only: no source asks for the same ids.
    let prompt = json!(stage.prompt_text(PromptKind::Say)).to_string();
    let replayed = updates(stage, &session, mark)
        .any(|(_, kind, update)| is_user(kind) && update["content"].to_string().contains(&prompt));
    if any {
        stage.check("V2-26", replayed, "the replay lacks the message of the user");
        let again = agent_messages(stage, &session, mark);
        let lost = said.iter().any(|text| !again.contains(text));
        stage.check("V2-26", !lost, "a message of the agent is missing in the replay");
    }
    // Without `replayFrom` a watcher looks for history.
    stage.call("session/close", json!({ "sessionId": session })).await?.ok();
    stage.call("session/resume", reopening(stage, &session)).await?.ok();
    ping(stage).await
}

/// The texts of the agent's messages.
fn agent_messages(stage: &Stage, session: &str, mark: usize) -> Vec<String> {
    let mut conversation = Conversation::default();
    for (_, _, update) in updates(stage, session, mark) {
        conversation.update(update);
    }
    conversation.texts(attache_transcript::Role::Agent).collect()
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
