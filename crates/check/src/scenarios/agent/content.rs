//! Prompts with every kind of content, extensions, and other forms of prompts.

use std::time::Duration;

use serde_json::{Value, json};

use super::{begin, ping, prompt, turn, unseen, words};
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::Id;
use crate::{Stage, Step, Stop};

scenario_table! { Agent:
    "content": "a prompt of each content type",
        ["PROMPT-03", "INIT-23", "PROMPT-04", "CONT-06", "CONT-07"] => content;
    "show": "the agent shows content of each type",
        ["CONT-01", "CONT-03", "CONT-04", "CONT-05", "MSG-02", "INIT-28", "EXT-09"] in BOTH => show;
    "empty-prompt": "a prompt without content", ["PROMPT-22"] => empty;
    "failing": "a turn that fails within", ["PROMPT-20"] => failing;
    "long-turn": "a long turn reports progress while it runs", ["PROMPT-10"] => long;
    "two-prompts": "a second prompt while one runs", ["PROMPT-13", "RPC-24"] => two;
    "meta": "`_meta` of all kinds, and unknown members",
        ["EXT-01", "EXT-03", "EXT-04", "EXT-10", "EXT-11", "EXT-12"] in BOTH => meta;
    "message-id": "a prompt with a message id of the client", ["MSG-03"] => message_id;
    "commands": "slash commands, known and not", ["CMD-03", "CMD-05", "CMD-06"] => commands;
    "own-names": "methods and members of the agent's own", ["EXT-02", "EXT-05", "INIT-27"] in BOTH => own_names;
}

const DATA: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn content(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let uri = format!("file://{}/notes.txt", stage.cwd().to_string_lossy());
    let text = json!({ "type": "text", "text": stage.prompt_text(PromptKind::Say), "annotations": { "audience": ["user"], "priority": 0.5 } });
    let blocks = [
        (
            "",
            json!({ "type": "resource_link", "uri": uri, "name": "notes.txt", "mimeType": "text/plain", "size": 5 }),
        ),
        ("image", json!({ "type": "image", "data": DATA, "mimeType": "image/png" })),
        ("audio", json!({ "type": "audio", "data": DATA, "mimeType": "audio/wav" })),
        (
            "embeddedContext",
            json!({ "type": "resource", "resource": { "uri": uri, "text": "alpha", "mimeType": "text/plain" } }),
        ),
    ];
    for (capability, block) in blocks {
        let known = capability.is_empty() || stage.need(&format!("promptCapabilities.{capability}")).is_ok();
        let kind = block["type"].clone();
        let id = stage.prompt_blocks(&session, json!([text, block])).await?;
        let answer = stage.expect(&id).await?;
        let refused = answer.as_ref().err().is_some_and(|error| matches!(error.code, -32602 | -32600));
        match (known, refused) {
            (true, true) if capability.is_empty() => {
                stage.fail("PROMPT-03", format!("a prompt with {kind} was refused"))
            }
            (true, true) => stage.fail(
                "INIT-23",
                format!("`{capability}` is advertised, and a prompt with {kind} was refused"),
            ),
            (true, false) if answer.is_ok() => {
                stage.pass(if capability.is_empty() { "PROMPT-03" } else { "INIT-23" });
                stage.pass("CONT-06");
            }
            (false, refused) => {
                stage.check(
                    "PROMPT-04",
                    refused,
                    format!("`{capability}` is not advertised, and a prompt with {kind} was not refused"),
                );
            }
            _ => {}
        }
    }
    let odd = json!([text, { "type": "attache-hologram", "data": "x" }]);
    let id = stage.prompt_blocks(&session, odd).await?;
    let refused = stage.expect(&id).await?.is_err_and(|error| error.code == -32602);
    stage.check("CONT-07", refused, "a prompt with a block of an unknown type was not refused with -32602");
    Ok(())
}

async fn show(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    turn(stage, &session, "Show me one block of every content type that you can produce.").await?.ok();
    Ok(())
}

async fn empty(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let id = stage.prompt_blocks(&session, json!([])).await?;
    let fits = match stage.expect(&id).await? {
        Ok(_) => true,
        Err(error) => error.code == -32602,
    };
    stage.check("PROMPT-22", fits, "an empty prompt was refused, and not with -32602");
    Ok(())
}

async fn failing(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    match stage.turn(&session, PromptKind::Fail).await? {
        Err(_) => stage.pass("PROMPT-20"),
        // An agent that does not know how to fail has simply answered, or would not.
        Ok(result) if ["end_turn", "refusal"].iter().any(|reason| result["stopReason"] == *reason) => {
            return unseen("the agent did not fail");
        }
        Ok(result) => stage
            .fail("PROMPT-20", format!("a failure was reported as the stop reason {}", result["stopReason"])),
    }
    Ok(())
}

/// A long turn reports progress before its end.
// PROMPT-10
async fn long(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.probe().await?;
    let mark = stage.mark();
    let began = stage.trace().entries.last().map(|entry| entry.at).unwrap_or_default();
    let id = stage.prompt(&session, PromptKind::Think).await?;
    if stage.during(&id, |message| message.update().is_some()).await?.is_some() {
        stage.quiet(Duration::from_secs(1)).await?;
        if stage.is_running(&id) {
            stage.pass("PROMPT-10");
            stage.cancel(&session).await?;
            stage.expect(&id).await?.ok();
            return Ok(());
        }
    }
    stage.expect(&id).await?.ok();
    let message = stage.received(mark);
    let end = message.last().map(|message| message.at).unwrap_or_default();
    if end.saturating_sub(began).as_secs() < 2 {
        return unseen("the turn was over at once");
    }
    let first = message.iter().find(|message| message.update().is_some()).map(|message| message.at);
    // Updates that come only with the end of a long turn are too late.
    let spread = first.is_some_and(|first| end.saturating_sub(first).as_millis() >= 200);
    stage.check("PROMPT-10", spread, "a long turn had no update before its end");
    Ok(())
}

async fn two(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.hold("session/request_permission");
    let one = stage.prompt(&session, PromptKind::Ask).await?;
    let Some(question) = stage.during(&one, super::is_question).await? else {
        return unseen("the agent asked for no permission");
    };
    let two = stage.prompt(&session, PromptKind::Say).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let (waits, queued) = (stage.is_running(&one), stage.is_running(&two));
    let served = stage
        .received(0)
        .iter()
        .any(|message| message.id() == Some(&two) && message.json.get("result").is_some());
    stage.services.release("session/request_permission");
    if waits {
        let option = question.params()["options"][0]["optionId"].clone();
        let id = question.id().cloned().unwrap_or_default();
        stage.answer(&id, json!({ "outcome": { "outcome": "selected", "optionId": option } })).await?;
    }
    let first = stage.expect(&one).await?;
    if queued && !answered(stage, &session, &two).await? {
        return Ok(());
    }
    // Queued, refused, or the first one is given up: all of it is allowed. Two turns that both run
    // to their end are not.
    let beside = waits && served && first.is_ok_and(|result| result["stopReason"] == "end_turn");
    stage.check("PROMPT-13", !beside, "a second turn ran beside the first in one session");
    Ok(())
}

/// A prompt that came while another ran has its answer too: when its turn ends, or at the
/// latest when the session is cancelled.
// RPC-24
async fn answered(stage: &mut Stage, session: &str, prompt: &Id) -> Result<bool, Stop> {
    for is_last in [false, true] {
        match stage.expect(prompt).await {
            Ok(_) => return Ok(true),
            Err(Stop::Deadline(_)) if is_last => {}
            Err(Stop::Deadline(_)) => stage.cancel(session).await?,
            Err(stop) => return Err(stop),
        }
    }
    stage.fail(
        "RPC-24",
        "a prompt that was sent during another turn is not answered, not even after session/cancel",
    );
    Ok(false)
}

async fn meta(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    if stage.turn(&session, PromptKind::Say).await?.is_err() {
        return unseen("a prompt without anything odd fails too");
    }
    let text = json!([{ "type": "text", "text": stage.prompt_text(PromptKind::Say), "_meta": { "attache": { "x": 1 } } }]);
    let cases = [
        ("EXT-01", "_meta", json!({ "attache.example": { "x": [1, null, "y"] } })),
        (
            "EXT-04",
            "_meta",
            json!({ "attache.example": 5, "other": null, "list": [1], "traceparent": "odd" }),
        ),
        ("EXT-11", "_meta", json!(5)),
        ("EXT-12", "_meta", Value::Null),
        ("EXT-03", "zz", json!(1)),
    ];
    for (rule, member, value) in cases {
        let mut prompt = json!({ "sessionId": session, "prompt": text });
        prompt[member] = value.clone();
        let mut opening = super::opening(stage, json!({}));
        opening[member] = value.clone();
        for (method, params) in [("session/new", opening), ("session/prompt", prompt)] {
            let mut plain = params.clone();
            plain.as_object_mut().and_then(|params| params.remove(member));
            match stage.call(method, params).await {
                Ok(Ok(_)) => stage.pass(rule),
                Ok(Err(error)) if matches!(error.code, -32602 | -32600 | -32603) => {
                    // What is refused without the member too is refused for another reason.
                    if stage.call(method, plain).await?.is_err() {
                        return unseen("a request without anything odd fails too");
                    }
                    stage.fail(
                        rule,
                        format!(
                            "{method} with `{member}`: {value} was refused: {} {}",
                            error.code, error.message
                        ),
                    );
                }
                Ok(Err(_)) => {}
                Err(Stop::PeerGone) => {
                    stage.fail(rule, format!("the agent ended at {method} with `{member}`: {value}"));
                    return Err(Stop::PeerGone);
                }
                Err(stop) => return Err(stop),
            }
        }
    }
    Ok(())
}

async fn message_id(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let text = json!([{ "type": "text", "text": stage.prompt_text(PromptKind::Say) }]);
    let params = json!({ "sessionId": session, "prompt": text, "messageId": "attache-1" });
    let answer = stage.call("session/prompt", params).await?;
    let refused = answer.is_err_and(|error| error.code == -32602);
    stage.check("MSG-03", !refused, "a prompt with `messageId` was refused instead of ignoring it");
    Ok(())
}

async fn commands(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.probe().await?;
    let list = stage.log().sessions.get(&session).map(|known| known.commands.clone()).unwrap_or_default();
    let takes = list
        .as_array()
        .into_iter()
        .flatten()
        .find(|command| command["name"] == "echo" && command["input"].is_object());
    if takes.is_some() {
        let mark = stage.mark();
        turn(stage, &session, "/echo attache there").await?.ok();
        let said = words(stage, &session, mark);
        stage.check(
            "CMD-05",
            said.contains("attache there"),
            format!("/echo was given \"attache there\" and said {said:?}"),
        );
    }
    let id = prompt(stage, &session, "/attache-no-such-command hello").await?;
    match stage.expect(&id).await? {
        Ok(_) => stage.pass("CMD-06"),
        Err(error) => stage.check(
            "CMD-06",
            !matches!(error.code, -32602..=-32600),
            format!("an unknown slash word was refused: {} {}", error.code, error.message),
        ),
    }
    Ok(())
}

/// Watchers look at every name; here is something to look at.
async fn own_names(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, PromptKind::Say).await?.ok();
    ping(stage).await
}
