//! Prompts, states, permission, tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{MOMENT, asking, idle, states, updates};
use crate::prompts::PromptKind;
use crate::scenarios::agent::{begin, is_question, odd_code_ended, on_disk, ping, unseen};
use crate::scenarios::scenario_table;
use crate::stage::Reply;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent in V2:
    "v2-turn": "a prompt is answered, its turn runs and ends",
        ["V2-08", "V2-09", "V2-10", "V2-11", "V2-12", "V2-16", "V2-22", "INIT-10"] => turn;
    "v2-permission": "a prompt is answered before its turn ends, and states show who waits",
        ["V2-08", "V2-13", "V2-24"] needs [Need::Prompt(PromptKind::Ask)] => permission;
    "v2-failure": "a turn fails", ["V2-09"] needs [Need::Prompt(PromptKind::Fail)] => failure;
    "v2-unknown-outcome": "an outcome that is not known is no approval",
        ["V2-23"] needs [Need::Prompt(PromptKind::Ask)] => outcome(json!({ "outcome": "_attache" }));
    "v2-unknown-option": "an option that was not offered is no approval", ["V2-23"]
        needs [Need::Prompt(PromptKind::Ask)]
        => outcome(json!({ "outcome": "selected", "optionId": "attache-never-offered" }));
    "v2-permission-waits": "nothing happens before a permission is given",
        ["PERM-13"] needs [Need::Prompt(PromptKind::Ask)] => waits;
    "v2-odd-code": "a permission that is refused with an unknown code",
        ["RPC-16"] needs [Need::Prompt(PromptKind::Ask)] => odd_code;
    "v2-write": "the agent changes a file", ["V2-33"] needs [Need::Prompt(PromptKind::Write)]
        => work(PromptKind::Write);
    "v2-run": "the agent runs a command", ["V2-32"] needs [Need::Prompt(PromptKind::Run)]
        => work(PromptKind::Run);
    "v2-read": "the agent reads a file",
        ["ROOT-04", "ROOT-05", "TOOL-02", "TOOL-14", "TOOL-18", "V2-16", "V2-22"]
        needs [Need::Prompt(PromptKind::Read)] => work(PromptKind::Read);
    "v2-plan": "the agent makes a plan", ["PLAN-03", "PLAN-06", "PLAN-09", "V2-22"]
        needs [Need::Prompt(PromptKind::Plan)]
        => work(PromptKind::Plan);
    "v2-tool-cancel": "one tool call or terminal is cancelled",
        ["V2-31"] needs [Need::Prompt(PromptKind::RunLong)] => cancel_tool;
}

async fn turn(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    for _ in 0..2 {
        let prompt = stage.prompt(&session, PromptKind::Say).await?;
        match stage.end_of(&prompt).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return unseen(&format!("the prompt was refused: {error}")),
            Err(Stop::Deadline(what)) if stage.log().done(stage.plays(), &prompt).is_some() => {
                stage.fail("V2-11", "the prompt was answered, and the session never became idle");
                return Err(Stop::Deadline(what));
            }
            Err(stop) => return Err(stop),
        }
    }
    ping(stage).await
}

async fn permission(stage: &mut Stage) -> Step {
    let asking = asking(stage).await?;
    let session = asking.session.as_str();
    let deadline = stage.deadline();
    match tokio::time::timeout(deadline, stage.expect(&asking.prompt)).await {
        Ok(Ok(Ok(result))) => {
            let named = result["messageId"].is_string();
            stage.check("V2-08", named, format!("the prompt was answered with {result}"));
        }
        Ok(Ok(Err(error))) => stage.fail("V2-08", format!("a prompt at work was answered with {error}")),
        Ok(Err(Stop::Deadline(_))) | Err(_) => {
            stage.deadline_passed();
            stage.fail("V2-08", "the work waits for a permission, and the prompt is not answered");
            return Ok(());
        }
        Ok(Err(stop)) => return Err(stop),
    }
    stage.quiet(MOMENT).await?;
    let waits = states(stage, session, asking.mark).any(|state| state == "requires_action");
    stage.check("V2-13", waits, "the agent waits for a permission and does not report requires_action");
    let mark = stage.mark();
    asking.allow(stage).await?;
    let ended = idle(stage, &asking.prompt).await?;
    if waits && ended.is_some() {
        let again = states(stage, session, mark).next() == Some("running");
        stage.check("V2-13", again, "after the answer the agent did not report running");
    }
    Ok(())
}

async fn failure(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    // A watcher compares an error with the messages before it.
    match stage.turn(&session, PromptKind::Fail).await? {
        Ok(result) if result["stopReason"] == "error" => stage.pass("V2-09"),
        Ok(_) => return unseen("the turn did not fail"),
        Err(_) => {}
    }
    ping(stage).await
}

/// The files of a directory, with their bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), std::fs::read(entry.path()).ok()?))).collect()
}

/// The prompt asks to change files, and the permission is answered with `outcome`.
// V2-23
async fn outcome(stage: &mut Stage, outcome: Value) -> Step {
    if !on_disk(stage) {
        return unseen("the agent cannot see the directory of the session");
    }
    let session = begin(stage).await?;
    let answer = json!({ "outcome": outcome });
    stage.services.answer_with("session/request_permission", move |_| Reply::Result(answer.clone()));
    let before = files(stage.cwd());
    let mark = stage.mark();
    let ended = stage.turn(&session, PromptKind::Ask).await?;
    if !stage.received(mark).iter().any(|message| is_question(message)) {
        return unseen(&match ended {
            Ok(_) => "the agent asked for no permission".to_owned(),
            Err(error) => format!("the prompt was refused: {error}"),
        });
    }
    if files(stage.cwd()) != before {
        stage.fail("V2-23", format!("{outcome} was taken for an approval"));
        return Ok(());
    }
    // A real approval shows that the prompt changes files at all.
    stage.services.answer_with("session/request_permission", |params| {
        let options = params["options"].as_array().into_iter().flatten();
        let allows = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
        let id = options.into_iter().find(allows).map(|option| option["optionId"].clone());
        Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": id } }))
    });
    stage.turn(&session, PromptKind::Ask).await?.ok();
    match files(stage.cwd()) == before {
        true => unseen("what the agent asks for changes no file"),
        false => {
            stage.pass("V2-23");
            Ok(())
        }
    }
}

/// A watcher sees a tool call that ends before the answer, the disk shows one that acts.
// PERM-13
async fn waits(stage: &mut Stage) -> Step {
    let before = files(stage.cwd());
    let asking = asking(stage).await?;
    // Gives an agent that does not wait the time to act.
    stage.quiet(MOMENT).await?;
    ping(stage).await?;
    let kept = files(stage.cwd()) == before;
    stage.check("PERM-13", kept, "a file was changed before the permission was given");
    asking.answer(stage, json!({ "outcome": "cancelled" })).await?;
    idle(stage, &asking.prompt).await?;
    Ok(())
}

async fn odd_code(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.answer_with("session/request_permission", |_| Reply::Error(-31_999, "odd".to_owned()));
    let mark = stage.mark();
    let ended = stage.turn(&session, PromptKind::Ask).await;
    if !stage.received(mark).iter().any(|message| is_question(message)) {
        ended?.ok();
        return unseen("the agent asked for no permission");
    }
    odd_code_ended(stage, ended)
}

/// Watchers judge the updates of the work.
async fn work(stage: &mut Stage, kind: PromptKind) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, kind).await?.ok();
    ping(stage).await
}

/// A tool call or terminal that says that it can be cancelled.
// V2-31
async fn cancel_tool(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    let prompt = stage.prompt(&session, PromptKind::RunLong).await?;
    let is_offered = |update: &Value| update["capabilities"]["cancel"].is_object();
    let deadline = stage.deadline();
    let offered =
        stage.during(&prompt, |message| message.update().is_some_and(|(_, _, update)| is_offered(update)));
    let Ok(Ok(Some(offered))) = tokio::time::timeout(deadline, offered).await else {
        stage.cancel(&session).await?;
        return unseen("no tool call or terminal can be cancelled");
    };
    let update = offered.params()["update"].clone();
    let (method, key) = match update["toolCallId"].is_string() {
        true => ("tool_call/cancel", "toolCallId"),
        false => ("terminal/cancel", "terminalId"),
    };
    let params = json!({ "sessionId": session, key: update[key] });
    if let Err(error) = stage.call(method, params.clone()).await? {
        stage.fail("V2-31", format!("{method} was refused: {error}"));
        return Ok(());
    }
    idle(stage, &prompt).await?;
    let ended = updates(stage, &session, mark).any(|(_, _, later)| {
        let status = later["status"].as_str().unwrap_or_default();
        let final_status = matches!(status, "completed" | "failed" | "cancelled");
        later[key] == update[key] && (final_status || later["exitStatus"].is_object())
    });
    stage.check("V2-31", ended, format!("{method} was answered, and no end of it was reported"));
    for (what, params) in [
        ("what has ended", params),
        ("what is unknown", json!({ "sessionId": session, key: "attache-ghost" })),
    ] {
        let refused = stage.call(method, params).await?.is_err_and(|error| error.code == -32602);
        stage.check("V2-31", refused, format!("{method} for {what} was not refused with -32602"));
    }
    Ok(())
}
