//! Updates that a client must accept, each followed by a probe.

use serde_json::{Value, json};

use super::steps::{end, lives, open_turn, probe};
use crate::judge::Kind;
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Version};

scenario_table! { Client:
    "many-updates": "a hundred updates are not answered", ["PROMPT-15"] in BOTH => many;
    "message-ids": "any text is the id of a message", ["MSG-02", "MSG-03"] in BOTH => message_ids;
    "tool-statuses": "a tool call goes through every status", ["TOOL-11"] => statuses;
    "tool-kinds": "every kind of tool, and an unknown one", ["TOOL-12"] in BOTH => kinds;
    "tool-minimal": "a tool call without anything optional", ["TOOL-04"]
        => one(&["TOOL-04"], "a minimal tool call", "tool_call",
            json!({ "toolCallId": "call-minimal", "title": "A tool" }));
    "tool-null": "null in an update says nothing", ["TOOL-07"]
        => one(&["TOOL-07"], "a title of null", "tool_call_update",
            json!({ "toolCallId": "call-1", "title": null, "status": "in_progress" }));
    "tool-raw": "raw input of any form", ["TOOL-19"]
        => one(&["TOOL-19"], "raw input that is a text", "tool_call_update",
            json!({ "toolCallId": "call-1", "rawInput": "text", "rawOutput": [1] }));
    "tool-unknown": "an update of an unannounced tool call", ["TOOL-21"]
        => one(&["TOOL-21"], "an update of an unknown tool call", "tool_call_update",
            json!({ "toolCallId": "call-nobody-announced", "status": "completed" }));
    "unknown-update": "an update of an unknown kind", ["PROMPT-16"]
        => one(&["PROMPT-16"], "an unknown update", "future_update",
            json!({ "content": { "type": "text", "text": "later" } }));
    "old-update": "the form of update that no schema has", ["PROMPT-18"] => old_update;
    "plan-entry": "a plan with an entry that is none", ["PLAN-10"]
        => one(&["PLAN-10"], "a plan entry that is none", "plan",
            json!({ "entries": [5, { "content": "Look", "priority": "high", "status": "pending" }] }));
    "annotations": "annotations of a block", ["CONT-06"]
        => one(&["CONT-06"], "annotations", "agent_message_chunk",
            json!({ "content": { "type": "text", "text": "hello",
                "annotations": { "audience": ["user"], "priority": 0.5 } } }));
    "unknown-block": "a block of an unknown type", ["CONT-07"]
        => one(&["CONT-07"], "an unknown block", "agent_message_chunk",
            json!({ "content": { "type": "hologram", "data": "x" } }));
    "notice": "a notice of unknown severity", ["NOTE-03", "NOTE-05"] in BOTH
        => one(&["NOTE-03", "NOTE-05"], "a notice", "notice",
            json!({ "severity": "_x", "title": "Something happened" }));
    "unknown-session": "an update for a session that the client does not know",
        ["SESS-32"] in BOTH => unknown_session;
    "child-session": "a child session gets only messages that it supports",
        ["SUBA-03"] needs [Need::Act("subagent")] in BOTH => child;
}

/// Sends one update in a turn and probes the client.
async fn one(stage: &mut Stage, rules: &[&'static str], what: &str, kind: &str, mut update: Value) -> Step {
    update["sessionUpdate"] = json!(kind);
    let turn = open_turn(stage).await?;
    stage.update(&turn.session, update).await?;
    lives(stage, &turn, rules, what).await?;
    end(stage, &turn).await
}

async fn many(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let mark = stage.mark();
    for number in 0..100 {
        stage.say(&turn.session, &format!("{number} ")).await?;
    }
    probe(stage).await?;
    // One answer is that to the question whether the client is there.
    let said =
        stage.received(mark).iter().filter(|message| matches!(message.kind, Kind::Response { .. })).count();
    stage.check("PROMPT-15", said == 1, format!("to 100 updates came {} answers", said.saturating_sub(1)));
    end(stage, &turn).await
}

async fn message_ids(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    for id in ["1", "01", "an id with ünïcode / and \"quotes\"", ""] {
        let content = json!({ "type": "text", "text": "part" });
        stage
            .update(
                &turn.session,
                json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": content }),
            )
            .await?;
    }
    lives(stage, &turn, &["MSG-02", "MSG-03"], "message ids that are no UUIDs").await?;
    end(stage, &turn).await
}

async fn statuses(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    for (number, last) in ["completed", "failed"].into_iter().enumerate() {
        let id = format!("call-{number}");
        stage.update(&turn.session, json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": "A tool", "kind": "read", "status": "pending",
        })).await?;
        for status in ["in_progress", last] {
            stage
                .update(
                    &turn.session,
                    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status }),
                )
                .await?;
        }
    }
    lives(stage, &turn, &["TOOL-11"], "the four statuses of a tool call").await?;
    end(stage, &turn).await
}

async fn kinds(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let known =
        ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
    // V2-22: in version 2 a kind of one's own has an underscore.
    let (update, odd) = match stage.version() {
        Version::V1 => ("tool_call", "paint"),
        Version::V2 => ("tool_call_update", "_paint"),
    };
    for kind in known.into_iter().chain([odd]) {
        stage.update(&turn.session, json!({
            "sessionUpdate": update, "toolCallId": format!("call-{kind}"), "title": kind, "kind": kind, "status": "completed",
        })).await?;
    }
    lives(stage, &turn, &["TOOL-12"], &format!("a tool call of the kind `{odd}`")).await?;
    end(stage, &turn).await
}

async fn old_update(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let params =
        turn.with(json!({ "kind": "agent_message_chunk", "content": { "type": "text", "text": "old" } }));
    stage.notify("session/update", params).await?;
    lives(stage, &turn, &["PROMPT-18"], "an update of another form").await?;
    end(stage, &turn).await
}

async fn unknown_session(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    stage.say("sess-nobody-knows", "hello").await?;
    lives(stage, &turn, &["SESS-32"], "an update for an unknown session").await?;
    end(stage, &turn).await
}

async fn child(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    turn.must_answer()?;
    let child = |id: &str| json!({ "sessionUpdate": "subagent_update", "sessionId": id, "title": "A child" });
    stage.update(&turn.session, child("sess-child-deaf")).await?;
    probe(stage).await?;
    let mut able = child("sess-child-able");
    able["capabilities"] = json!({ "cancel": {} });
    stage.update(&turn.session, able).await?;
    probe(stage).await?;
    let named = |id: &str| {
        stage
            .received(0)
            .iter()
            .any(|message| message.method() == Some("session/cancel") && message.params()["sessionId"] == id)
    };
    let (deaf, able) = (named("sess-child-deaf"), named("sess-child-able"));
    if deaf || able {
        stage.check("SUBA-03", !deaf, "session/cancel was sent to a child that does not take it");
    }
    end(stage, &turn).await
}
