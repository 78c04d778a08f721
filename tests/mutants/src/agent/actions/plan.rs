//! Plans.

use super::files;
use crate::agent::turn::{Act, Context, Turn};
use crate::agent::wire::Agent;
use serde_json::{Value, json};

fn entry(content: &str, priority: &str, status: &str) -> Value {
    json!({ "content": content, "priority": priority, "status": status })
}

/// The entries of a plan on its way.
pub(crate) fn steps() -> [[Value; 3]; 3] {
    [
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
    ]
}

/// PLAN-03: all entries; the variant sends only the one that changed.
pub(crate) fn entries(agent: &Agent, at: usize, step: &[Value; 3]) -> Value {
    match step.get(at) {
        Some(changed) if agent.is("PLAN-03") && at > 0 => json!([changed]),
        _ => json!(step),
    }
}

/// PLAN-03, PLAN-07, PLAN-08: each time all of it, in the form that the client knows.
pub(super) async fn plan(turn: &Turn) -> Act {
    let steps = steps();
    let agent = &turn.agent;
    let modern = turn.client_has("plan") || agent.is("PLAN-07") || agent.is("PLAN-08");
    if agent.is("PLAN-01") {
        // A plan that only its tool knows.
        let tool = turn.tool("think", "Make a plan", json!({ "rawInput": { "todos": steps[0] } })).await;
        turn.tool_end(&tool, true, "planned").await;
        return Ok(());
    }
    for (at, step) in steps.iter().enumerate() {
        tell(turn, modern, entries(agent, at, step)).await;
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

async fn tell(turn: &Turn, modern: bool, entries: Value) {
    let update = if modern {
        let plan = json!({ "type": "items", "planId": "plan", "entries": entries });
        json!({ "sessionUpdate": "plan_update", "plan": plan })
    } else {
        json!({ "sessionUpdate": "plan", "entries": entries })
    };
    turn.tell(update).await;
}

/// PLAN-02: the plan is sent again after each step.
pub(super) async fn carry(turn: &Turn, paths: &[String]) -> Act {
    let modern = turn.client_has("plan");
    for (done, path) in paths.iter().enumerate() {
        let step = |(at, path): (usize, &String)| {
            let status = match at.cmp(&done) {
                std::cmp::Ordering::Less => "completed",
                std::cmp::Ordering::Equal => "in_progress",
                std::cmp::Ordering::Greater => "pending",
            };
            entry(path, "medium", status)
        };
        if done == 0 || !turn.agent.is("PLAN-02") {
            // PLAN-03 broken: only the step that changed.
            let is_partial = done > 0 && turn.agent.is("PLAN-03/partial");
            let steps = paths.iter().enumerate().filter(|(at, _)| !is_partial || *at == done);
            tell(turn, modern, steps.map(step).collect()).await;
        }
        files::write(turn, path, "a step").await?;
    }
    Ok(())
}
