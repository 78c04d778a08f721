//! Version 2: capabilities, updates, requests of the agent.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{
    Turn, answer_to, end, everything, leaves, lives, open_turn, open_turn_with, probe, readable, serve_rest,
};
use crate::judge::{Kind, Message};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

scenario_table! { Client in V2:
    "v2-turn": "a turn of messages and states, and its end",
        ["INIT-10", "V2-03", "V2-22", "V2-39", "SESS-02", "EXT-05"] => turn;
    "v2-no-sessions": "an agent without sessions", ["V2-06"] => no_sessions;
    "v2-null-id": "a request with a null id", ["V2-01"] => null_id;
    "v2-error-ids": "errors name the request that they answer", ["V2-02"] => error_ids;
    "v2-bad-payload": "a known type with a wrong payload is refused", ["V2-20"] => bad_payload;
    "v2-gone": "what version 1 had is not there", ["V2-39"] => gone;
    "v2-new-tool": "the first update of a tool call creates it", ["V2-19"]
        => update(&["V2-19"], "a new tool call", json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call-unseen" }));
    "v2-plain-diff": "a diff without a patch", ["V2-34"]
        => update(&["V2-34"], "a diff without a patch", json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "title": "Edit",
            "content": [{ "type": "diff", "changes": [{ "operation": "delete", "path": "/w/old.txt" }] }] }));
    "v2-terminal": "a letter in two chunks of a terminal", ["V2-32"] => terminal;
    "v2-unknown-state": "a state that is not known is not idle", ["V2-35"] => unknown_state;
    "v2-tool-cancel": "only what can be cancelled is cancelled",
        ["V2-30"] needs [Need::Act("cancel_tool")] => cancel_tool;
    "v2-withdrawn": "withdrawing unknown and answered requests does nothing", ["V2-42"] => withdrawn;
    "v2-withdrawn-question": "a question that is withdrawn is answered once, as cancelled",
        ["CANCEL-16", "V2-43"] needs [Need::Act("ask")] => withdrawn_question;
    "v2-side-by-side": "a question does not hold up other requests",
        ["RPC-20"] needs [Need::Act("ask")] => side_by_side;
    "v2-cursor": "an empty cursor is a cursor", ["V2-45"] needs [Need::Act("list")] => cursor;
}

/// A question of the turn.
pub(super) fn question(turn: &Turn) -> Value {
    turn.with(json!({
        "title": "Remove a file?",
        "subject": { "type": "tool_call", "toolCall": { "toolCallId": "call-1" } },
        "options": [
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ],
    }))
}

async fn turn(stage: &mut Stage) -> Step {
    let turn = open_turn_with(stage, everything(), json!({})).await?;
    stage.say(&turn.session, "hello").await?;
    end(stage, &turn).await?;
    leaves(stage, &[], "the end of the turn").await
}

async fn no_sessions(stage: &mut Stage) -> Step {
    let asked = stage.until_asked("initialize").await?;
    stage.must_offer(&asked)?;
    let mut result = stage.greeting(&json!({}));
    result["capabilities"] = json!({});
    stage.reply(&asked, result).await?;
    let said = serve_rest(stage, |_, _| None).await?;
    // A watcher sees that one was used.
    if !said.iter().any(|message| message.method().is_some_and(|method| method.starts_with("session/"))) {
        stage.pass("V2-06");
    }
    Ok(())
}

async fn null_id(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let mark = stage.mark();
    stage.request_as(Value::Null, "_attache/null", json!({})).await?;
    probe(stage).await?;
    let refused = stage.received(mark).iter().any(|message| {
        matches!(&message.kind, Kind::Response { id: Value::Null, outcome: Err(error) } if error["code"] == -32600)
    });
    stage.check("V2-01", refused, "a request with a null id was not refused with -32600");
    end(stage, &turn).await
}

/// A watcher looks at the ids.
// V2-02
async fn error_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    stage.send_line("{oops").await?;
    probe(stage).await?;
    end(stage, &turn).await
}

async fn bad_payload(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let mut params = question(&turn);
    params["subject"] = json!({ "type": "tool_call" });
    match stage.call("session/request_permission", params).await {
        Ok(Err(error)) => {
            let why = format!("a subject without its tool call was refused with {}", error.code);
            stage.check("V2-20", error.code == -32602, why);
        }
        Ok(Ok(_)) => stage.fail("V2-20", "a subject without its tool call was accepted"),
        Err(Stop::Deadline(_)) => {
            stage.fail("V2-20", "a subject without its tool call was shown to the user")
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

async fn gone(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let notes = stage.cwd().join("notes.txt");
    for (method, params) in
        [("fs/read_text_file", json!({ "path": notes })), ("terminal/create", json!({ "command": "pwd" }))]
    {
        let params = turn.with(params);
        match stage.call(method, params).await? {
            Err(error) if error.code == -32601 => stage.pass("V2-39"),
            Err(error) => stage.fail("V2-39", format!("{method} was refused with {}", error.code)),
            Ok(_) => stage.fail("V2-39", format!("{method} was served")),
        }
    }
    end(stage, &turn).await
}

async fn update(stage: &mut Stage, rules: &[&'static str], what: &str, update: Value) -> Step {
    let turn = open_turn(stage).await?;
    stage.update(&turn.session, update).await?;
    lives(stage, &turn, rules, what).await?;
    end(stage, &turn).await
}

/// The bytes of "é", one by one.
// V2-32
async fn terminal(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let start = json!({ "sessionUpdate": "terminal_update", "terminalId": "term-1", "command": "cat" });
    stage.update(&turn.session, start).await?;
    for data in ["w6k=", "ww==", "qQ=="] {
        let chunk = json!({ "sessionUpdate": "terminal_output_chunk", "terminalId": "term-1", "data": data });
        stage.update(&turn.session, chunk).await?;
    }
    lives(stage, &turn, &["V2-32"], "a letter in two chunks").await?;
    end(stage, &turn).await
}

async fn unknown_state(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let state = json!({ "sessionUpdate": "state_update", "state": "_attache" });
    stage.update(&turn.session, state).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    match probe(stage).await {
        Ok(()) => stage.pass("V2-35"),
        Err(Stop::PeerGone | Stop::Deadline(_)) => {
            stage.fail("V2-35", "after an unknown state the client left as if its turn had ended");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    end(stage, &turn).await
}

/// A watcher judges the calls; a client that makes none shows nothing.
// V2-30
async fn cancel_tool(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let tool = |id: &str, capabilities: Value| {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "title": "A tool",
            "status": "in_progress", "capabilities": capabilities })
    };
    let mark = stage.mark();
    stage.update(&turn.session, tool("call-plain", Value::Null)).await?;
    stage.update(&turn.session, tool("call-able", json!({ "cancel": {} }))).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let asked: Vec<Value> = stage
        .received(mark)
        .iter()
        .filter(|message| message.asks("tool_call/cancel"))
        .filter_map(|message| message.id().cloned())
        .collect();
    for id in &asked {
        stage.answer(id, json!({})).await?;
    }
    end(stage, &turn).await?;
    match asked.is_empty() {
        true => Err(Stop::NotExercised("the client cancels no tool call".to_owned())),
        false => Ok(()),
    }
}

async fn withdrawn(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let done = stage.request("_attache/done", json!({})).await?;
    let _ = answer_to(stage, &done).await?;
    let mark = stage.mark();
    for id in [done, json!("attache-ghost")] {
        stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
        probe(stage).await?;
        let answered = stage
            .received(mark)
            .iter()
            .any(|message| matches!(&message.kind, Kind::Response { id: other, .. } if *other == id));
        stage.check("V2-42", !answered, format!("withdrawing the request {id} was answered"));
    }
    end(stage, &turn).await
}

async fn withdrawn_question(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let id = stage.request("session/request_permission", question(&turn)).await?;
    stage.quiet(Duration::from_millis(500)).await?;
    if stage.log().open(stage.plays(), &id).is_none() {
        return Err(Stop::NotExercised("the question was answered before it could be withdrawn".to_owned()));
    }
    let mark = stage.mark();
    stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
    match answer_to(stage, &id).await {
        Ok(Ok(result)) => {
            let kept = result["outcome"]["outcome"] == "cancelled";
            stage.check("V2-43", kept, format!("a question that was withdrawn was answered {result}"));
        }
        Ok(Err(error)) => stage.fail("V2-43", format!("a question that was withdrawn was answered {error}")),
        // CANCEL-14: a client may ignore the withdrawal, and then it waits for its user.
        Err(Stop::Deadline(_)) => {
            stage.fail("V2-43", "a question that was withdrawn was not answered");
            stage.act("allow")?;
            if let Err(Stop::Deadline(_)) = answer_to(stage, &id).await {
                readable(stage)?;
                stage.fail("CANCEL-16", "a question that was withdrawn was never answered");
                return end(stage, &turn).await;
            }
        }
        Err(stop) => return Err(stop),
    }
    stage.quiet(Duration::from_secs(1)).await?;
    let is_answer = |message: &&Rc<Message>| message.method().is_none() && message.id() == Some(&id);
    let answers = stage.received(mark).iter().filter(is_answer).count();
    let why = format!("a question that was withdrawn was answered {answers} times");
    stage.check("CANCEL-16", answers == 1, why);
    end(stage, &turn).await
}

async fn side_by_side(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let id = stage.request("session/request_permission", question(&turn)).await?;
    match probe(stage).await {
        Ok(()) => stage.pass("RPC-20"),
        Err(Stop::Deadline(_)) => {
            stage.fail("RPC-20", "a request was not answered while an earlier one waited for the user");
            return Err(Stop::Deadline("the answer to a second request".to_owned()));
        }
        Err(stop) => return Err(stop),
    }
    stage.notify("$/cancel_request", json!({ "requestId": id })).await?;
    end(stage, &turn).await
}

async fn cursor(stage: &mut Stage) -> Step {
    stage.accept(everything()).await?;
    let page = |id: &str| json!({ "sessions": [{ "sessionId": id, "cwd": "/" }] });
    let said = serve_rest(stage, |method, params| {
        let (id, next) = match params["cursor"].as_str() {
            None => ("sess-1", Some("attache-next")),
            Some("attache-next") => ("sess-2", Some("")),
            Some(_) => ("sess-3", None),
        };
        let mut page = page(id);
        if let Some(next) = next {
            page["nextCursor"] = json!(next);
        }
        (method == "session/list").then_some(Ok(page))
    })
    .await?;
    let asked: Vec<_> = said.iter().filter(|message| message.asks("session/list")).collect();
    match asked.as_slice() {
        [] | [_] => return Err(Stop::NotExercised("the client asked for no second page".to_owned())),
        [_, _] => stage.fail("V2-45", "the client took an empty cursor for the end of the list"),
        [_, _, third, ..] => {
            let kept = third.params()["cursor"] == "";
            stage.check("V2-45", kept, "the empty cursor was not sent back");
        }
    }
    Ok(())
}
