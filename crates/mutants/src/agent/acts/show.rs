//! Telling: texts, content, plans.

use crate::agent::turn::{Act, Turn};
use serde_json::{Value, json};

/// PROMPT-13, SESS-06: the words again, in their session.
pub(super) async fn say(turn: &Turn, text: &str) -> Act {
    turn.wait(tokio::task::yield_now()).await?;
    if turn.agent.is("PROMPT-12") {
        turn.agent.update("another-session", json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })).await;
    }
    // CMD-05 broken: what follows a command is lost.
    let lost = turn.agent.is("CMD-05") && text.starts_with("/echo");
    turn.say(if lost { "echo" } else { text }).await;
    turn.update(json!({
        "sessionUpdate": "usage_update", "used": 1200, "size": 200_000,
        "cost": { "amount": 0.02, "currency": "USD" },
    }))
    .await;
    Ok(())
}

/// CONT-01: every type of content.
pub(super) async fn everything(turn: &Turn) {
    let marks = json!({ "audience": ["user"], "priority": 0.5 });
    let blocks = [
        json!({ "type": "text", "text": "Look", "annotations": marks }),
        json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "uri": "file:///a.png" }),
        json!({ "type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav" }),
        json!({ "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "size": 5, "title": "A" }),
        json!({ "type": "resource", "resource": { "uri": "file:///a.txt", "text": "hello", "mimeType": "text/plain" } }),
        json!({ "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "aGVsbG8=" } }),
    ];
    for block in blocks {
        turn.show(block).await;
    }
    // INIT-28, EXT-09: a name of its own, announced in `_meta` of its capabilities.
    turn.agent.notify("_mutants.attache/shown", json!({})).await;
}

fn entry(content: &str, priority: &str, status: &str) -> Value {
    json!({ "content": content, "priority": priority, "status": status })
}

/// PLAN-03, PLAN-07, PLAN-08: each time all of it, in the form that the client knows.
pub(super) async fn plan(turn: &Turn) -> Act {
    let steps = [
        [
            entry("look", "high", "in_progress"),
            entry("think", "medium", "pending"),
            entry("act", "low", "pending"),
        ],
        [
            entry("look", "high", "completed"),
            entry("think", "medium", "in_progress"),
            entry("act", "low", "pending"),
        ],
        [
            entry("look", "high", "completed"),
            entry("think", "medium", "completed"),
            entry("act", "low", "in_progress"),
        ],
    ];
    let agent = &turn.agent;
    let modern = turn.client_has("plan") || agent.is("PLAN-07") || agent.is("PLAN-08");
    for (at, entries) in steps.iter().enumerate() {
        let entries = match entries.get(at) {
            // Only what changed.
            Some(changed) if agent.is("PLAN-03") && at > 0 => json!([changed]),
            _ => json!(entries),
        };
        if modern {
            let plan = json!({ "type": "items", "planId": "plan", "entries": entries });
            turn.tell(json!({ "sessionUpdate": "plan_update", "plan": plan })).await;
        } else {
            turn.tell(json!({ "sessionUpdate": "plan", "entries": entries })).await;
        }
        turn.wait(tokio::task::yield_now()).await?;
    }
    if modern {
        let notes = json!({ "type": "markdown", "planId": "notes", "content": "# Notes" });
        turn.update(json!({ "sessionUpdate": "plan_update", "plan": notes })).await;
        turn.update(json!({ "sessionUpdate": "plan_removed", "planId": "notes" })).await;
    }
    turn.say("That is the plan").await;
    Ok(())
}
