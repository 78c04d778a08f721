//! Draft features: notices, compaction, subagents, changes by the agent itself.

use crate::agent::turn::{Act, Context, Turn};
use crate::agent::wire::Refusal;
use serde_json::{Value, json};

/// NOTE-01, NOTE-04: a notice if the client supports them; nothing depends on it.
pub(crate) async fn notice(turn: &impl Context) -> Result<(), Refusal> {
    let agent = turn.agent();
    let wanted = turn.client_has("session.notices");
    let null = agent.is("INIT-19") && agent.state().client["session"].get("notices").is_some();
    if wanted || agent.is("NOTE-01") || null {
        let notice = json!({ "sessionUpdate": "notice", "severity": "info", "title": "The cache is warm" });
        if agent.is("SESS-16") {
            turn.tell(notice).await;
        } else {
            turn.update(notice).await;
        }
    } else if agent.is("NOTE-04") {
        return Err(Refusal::new(-32603, "nobody reads notices"));
    }
    turn.say("Noted").await;
    Ok(())
}

/// NOTE-06, NOTE-07, NOTE-08, NOTE-10: begun, summed up, ended once; twice in a turn, under two
/// ids.
pub(crate) async fn compact(turn: &impl Context) {
    let agent = turn.agent();
    if turn.client_has("session.compaction") || agent.is("NOTE-06") {
        for status in ["completed", "failed"] {
            let number = turn.count();
            let id =
                if agent.is("NOTE-10") { "compaction".to_owned() } else { format!("compaction-{number}") };
            let told = |status: &str, more: Value| {
                let mut update =
                    json!({ "sessionUpdate": "compaction_update", "compactionId": id, "status": status });
                if let (Some(update), Value::Object(more)) = (update.as_object_mut(), more) {
                    update.extend(more);
                }
                update
            };
            let text = json!({ "type": "text", "text": "We talked" });
            let chunk =
                json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": id, "content": text });
            if agent.is("NOTE-07") {
                turn.update(chunk.clone()).await;
            }
            turn.update(told("in_progress", json!({}))).await;
            turn.update(chunk).await;
            let more = if status == "failed" {
                json!({ "error": "no room", "summary": null })
            } else {
                json!({ "summary": [text] })
            };
            turn.update(told(status, more)).await;
            if agent.is("NOTE-08") {
                turn.update(told("cancelled", json!({}))).await;
            }
        }
    }
    turn.say("I have made room").await;
}

/// SUBA-01, SUBA-02: a child is announced, works and reports.
pub(crate) async fn delegate(turn: &impl Context) {
    let agent = turn.agent();
    if turn.client_has("subagents") || agent.is("SUBA-01") {
        let child = format!("child-{}", turn.count());
        let cwd = turn.change(|session| session.cwd.clone());
        let text = json!({ "type": "text", "text": "What time is it?" });
        let announced = json!({
            "sessionUpdate": "subagent_update", "sessionId": child, "title": "Clock", "description": null,
            "state": { "state": "running" }, "cwd": cwd, "capabilities": { "cancel": {} },
        });
        let message = json!({
            "sessionUpdate": "session_message", "messageId": "m-1", "senderSessionId": turn.session(),
            "recipientSessionId": child, "content": [text],
        });
        let noon = json!({ "type": "text", "text": "Noon" });
        let work = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "noon", "content": noon });
        if agent.is("SUBA-02") {
            agent.update(&child, work.clone()).await;
        }
        turn.update(announced).await;
        turn.update(message).await;
        turn.update(json!({ "sessionUpdate": "session_message_chunk", "messageId": "m-1", "content": text }))
            .await;
        if !agent.is("SUBA-02") {
            agent.update(&child, work).await;
        }
        turn.update(json!({
            "sessionUpdate": "subagent_update", "sessionId": child, "title": null,
            "state": { "state": "idle", "stopReason": "end_turn" },
        }))
        .await;
    }
    if turn.client_has("subagents") {
        let error = json!({ "code": -32603, "message": "Internal error" });
        let mut state = json!({ "state": "idle", "stopReason": "error", "error": error });
        if agent.is("SUBA-06") {
            state = json!({ "state": "idle", "stopReason": "error" });
        }
        let child = format!("child-{}", turn.count());
        turn.update(json!({ "sessionUpdate": "subagent_update", "sessionId": child, "state": state })).await;
    }
    turn.say("It is noon").await;
}

/// LIST-12, LIST-13, SSTAT-09: a title is made, shown, and taken back, unless the user chose one.
pub(crate) async fn title(turn: &impl Context) {
    let agent = turn.agent();
    let chosen = turn.change(|session| session.titled).unwrap_or(false);
    if !chosen || agent.is("SSTAT-09") {
        for title in [Some("A talk"), None, Some("A good talk")] {
            let cleared = title.is_none();
            turn.change(|session| session.title = title.map(str::to_owned));
            turn.update(json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": "2026-01-01T00:00:00Z" })).await;
            if cleared && agent.is("LIST-12") {
                break;
            }
        }
        if agent.is("LIST-12") {
            // Cleared for the client, kept for the list.
            turn.change(|session| session.title = Some("A talk".to_owned()));
        }
    }
    turn.say("This needed a name").await;
}

/// MODE-07, MODE-08: the agent asks, changes its mode, and says so.
pub(super) async fn mode(turn: &Turn) -> Act {
    let title = "Work without asking";
    let tool = turn.tool("switch_mode", title, json!({})).await;
    let allowed = turn.permitted(&tool, title).await?;
    turn.tool_end(&tool, allowed, "the mode").await;
    let options = {
        let mut state = turn.agent.state();
        let boolean = state.client_has("session.configOptions.boolean");
        state.open(&turn.session).filter(|_| allowed).map(|session| {
            "code".clone_into(&mut session.mode);
            session.options(boolean)
        })
    };
    if let Some(options) = options {
        turn.update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" })).await;
        turn.update(json!({ "sessionUpdate": "config_option_update", "configOptions": options })).await;
    }
    Ok(())
}

/// CONF-16: a change of the agent's own, with the complete list.
pub(crate) async fn option(turn: &impl Context) {
    let changed = turn.change(|session| session.config.insert("model".to_owned(), json!("large"))).is_some();
    if changed {
        let mut options = turn.options();
        if turn.agent().is("CONF-16")
            && let Some(list) = options.as_array_mut()
        {
            list.truncate(1);
        }
        turn.update(json!({ "sessionUpdate": "config_option_update", "configOptions": options })).await;
    }
    turn.say("Changed").await;
}

/// MCPA-03, MCPA-04: a server behind this connection, in the form of today and in that of August.
pub(crate) async fn mcp(turn: &impl Context) -> Act {
    for server in turn.change(|session| session.mcp.clone()).unwrap_or_default() {
        let call = json!({ "name": "time", "arguments": {} });
        let params = json!({
            "serverId": server, "requestId": format!("mcp-{}", turn.count()), "method": "tools/call", "params": call,
        });
        let modern = turn.ask("mcp/message", params).await?;
        if modern.is_ok() {
            continue;
        }
        if let Ok(connection) = turn.ask("mcp/connect", json!({ "serverId": server })).await? {
            let id = &connection["connectionId"];
            let params = json!({ "connectionId": id, "method": "tools/call", "params": call });
            turn.ask("mcp/message", params).await?.ok();
            turn.ask("mcp/disconnect", json!({ "connectionId": id })).await?.ok();
        }
    }
    turn.say("I have asked the server").await;
    Ok(())
}
