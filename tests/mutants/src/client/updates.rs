//! Notifications of the agent.

use super::Client;
use super::wire::failure;
use serde_json::{Value, json};

/// RPC-04, EXT-08: none is ever answered, and none that is wrong or unknown does harm.
pub(super) async fn notified(client: &Client, method: &str, params: &Value) {
    let known =
        matches!(method, "session/update" | "elicitation/complete" | "auth/status_update" | "mcp/message");
    if client.is("RPC-04") && !known && !method.starts_with("$/") {
        client.answer(&Value::Null, method, Err(failure(-32601, "there is no such notification"))).await;
    }
    if client.is("EXT-08") && !known && !method.starts_with("$/") {
        client.halt();
    }
    if client.is("CANCEL-14") && method.starts_with("$/") && method != "$/cancel_request" {
        client.halt();
    }
    match method {
        "session/update" => update(client, params).await,
        "$/cancel_request" => {
            if let Some(id) = params.get("requestId") {
                let again = client.is("V2-42")
                    && id.is_u64()
                    && !client.state().serving.contains_key(&id.to_string());
                if again {
                    client.answer(id, method, Err(failure(-32800, "the request was cancelled"))).await;
                }
                if client.is("CANCEL-20") && !client.state().serving.contains_key(&id.to_string()) {
                    client.answer(id, method, Err(failure(-32800, "the request was cancelled"))).await;
                }
                // CANCEL-21: the id is one of the agent's, never one of ours.
                if client.is("CANCEL-21") {
                    client.resolve(id, Err(json!({ "code": -32800, "message": "cancelled" })));
                }
                client.withdraw(id);
            }
        }
        "elicitation/complete" => {
            let Some(id) = params.get("elicitationId").and_then(Value::as_str) else { return };
            // ELIC-25: an id that is not waited for is ignored.
            if client.is("ELIC-25") && id.contains("ghost") {
                client.halt();
            }
            client.completed.send_modify(|ids| ids.push(id.to_owned()));
        }
        "auth/status_update" => odd_state(client, params).await,
        _ => {}
    }
}

/// AUTH-23: an unlisted state is `unknown`.
pub(super) async fn odd_state(client: &Client, status: &Value) {
    let known = ["authenticated", "unauthenticated", "not_required", "unknown"];
    let state = status.get("state").and_then(Value::as_str).unwrap_or_default();
    if client.is("AUTH-23") && !known.contains(&state) {
        client.halt();
    }
}

async fn update(client: &Client, params: &Value) {
    let Some(session) = params.get("sessionId").and_then(Value::as_str) else { return };
    let update = params.get("update").unwrap_or(&Value::Null);
    if client.is("PROMPT-15") {
        client.say(&json!({ "jsonrpc": "2.0", "id": null, "result": { "ok": true } })).await;
    }
    if trips(client, session, update) || (client.is("PROMPT-18") && params.get("kind").is_some()) {
        client.halt();
    }
    if client.speaks_2() {
        super::v2::updated(client, session, update).await;
    }
    match update.get("sessionUpdate").and_then(Value::as_str) {
        Some("available_commands_update") => {
            let list = update.get("availableCommands").and_then(Value::as_array).into_iter().flatten();
            let names = list.filter_map(|command| command.get("name")?.as_str().map(str::to_owned)).collect();
            client.state().commands = names;
            client.heard_commands.notify_one();
        }
        Some("subagent_update") if client.acts("subagent") => child(client, update).await,
        // PROMPT-16: what is unknown is dropped.
        _ => {}
    }
}

/// SUBA-03: a child gets only the messages that it announced.
async fn child(client: &Client, update: &Value) {
    let Some(id) = update.get("sessionId").and_then(Value::as_str) else { return };
    let able = update.pointer("/capabilities/cancel").is_some_and(Value::is_object);
    if able || client.is("SUBA-03") {
        client.tell("session/cancel", json!({ "sessionId": id })).await;
    }
}

/// Whether the update makes this variant fail.
fn trips(client: &Client, session: &str, update: &Value) -> bool {
    let is = |pointer: &str, value: &str| update.pointer(pointer).is_some_and(|found| found == value);
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    let uuid = |id: &Value| id.as_str().is_some_and(|id| id.len() == 36);
    match client.setup.variant.as_deref() {
        // Version 2 always has ids, so any other would break more than this.
        Some("MSG-02") if client.speaks_2() => is("/messageId", "01"),
        Some("MSG-02" | "MSG-03") => update.get("messageId").is_some_and(|id| !uuid(id)),
        Some("TOOL-11") => is("/status", "failed"),
        Some("TOOL-12") => is("/kind", "paint") || is("/kind", "_paint"),
        Some("TOOL-04") => kind == "tool_call" && update.get("kind").is_none(),
        Some("TOOL-07") => update.get("title").is_some_and(Value::is_null),
        Some("TOOL-19") => update.get("rawInput").is_some_and(Value::is_string),
        Some("TOOL-21") => kind == "tool_call_update" && is("/toolCallId", "call-nobody-announced"),
        Some("PROMPT-16") => kind == "future_update",
        Some("PLAN-10") => update.pointer("/entries/0").is_some_and(|entry| !entry.is_object()),
        Some("CONT-06") => update.pointer("/content/annotations").is_some(),
        Some("CONT-07") => is("/content/type", "hologram"),
        Some("NOTE-05") => kind == "notice",
        Some("NOTE-03") => is("/severity", "_x"),
        Some("CANCEL-09") => client.state().sessions.get(session).is_some_and(|session| session.cancelled),
        Some("SESS-32") => !client.state().sessions.contains_key(session),
        Some("V2-19") => is("/toolCallId", "call-unseen"),
        Some("V2-34") => is("/content/0/type", "diff") && update.pointer("/content/0/patch").is_none(),
        Some("V2-32") => is("/data", "ww=="),
        Some("CONF-10") => {
            update.pointer("/configOptions/0/category").is_some_and(|category| category == "zz")
        }
        _ => false,
    }
}
