//! Agents of which every word is hostile.

use serde_json::{Value, json};

use super::clean_cases::{evil, forgeries, parts};

/// A line of a script.
fn act(name: &str, value: &Value) -> String {
    format!("  {name} {value}\n")
}

fn update(value: Value) -> String {
    act("update", &value)
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A turn in which everything is hostile.
pub(crate) fn turn() -> String {
    let evil = evil();
    let mut script = String::from("on session/prompt\n");
    script += &update(json!({ "sessionUpdate": "agent_thought_chunk", "content": text(&evil) }));
    script += &update(json!({ "sessionUpdate": "agent_message_chunk", "content": text(&evil) }));
    // In pieces: a sequence that is cut in two, and a question that comes letter by letter.
    for piece in ["\u{1b}", "[", "2", "J", "\u{1b}]0;", "title", "\u{7}", "a\r", "\nb\r", "c"] {
        script += &update(json!({ "sessionUpdate": "agent_message_chunk", "content": text(piece) }));
    }
    for letter in "\n[permission] FORGED?\n? FORGED ".chars() {
        script +=
            &update(json!({ "sessionUpdate": "agent_message_chunk", "content": text(&letter.to_string()) }));
    }
    for (number, part) in parts().iter().enumerate() {
        let call = |status: &str| {
            json!({
                "sessionUpdate": "tool_call", "toolCallId": format!("{number}{part}"), "title": part, "kind": "read", "status": status,
                "rawInput": { "command": part, "args": [part] }, "rawOutput": { "stdout": part, "stderr": part },
                "locations": [{ "path": part, "line": 1 }],
                "content": [
                    { "type": "content", "content": text(part) },
                    { "type": "diff", "path": part, "oldText": part, "newText": evil },
                    { "type": "terminal", "terminalId": part },
                    { "type": "content", "content": { "type": "resource_link", "name": part, "uri": part } },
                    { "type": "content", "content": { "type": "image", "mimeType": part, "data": "" } },
                ],
                "_meta": { "terminal_output_delta": { "data": part } },
            })
        };
        script += &update(call("in_progress"));
        script += &update(call("completed"));
        script += &update(
            json!({ "sessionUpdate": "tool_call", "toolCallId": part, "title": forgeries(), "status": "failed" }),
        );
        script += &format!("  stderr {}\n", part.replace('\n', " "));
    }
    script += &update(
        json!({ "sessionUpdate": "plan", "entries": [{ "content": evil, "priority": "high", "status": "pending" }] }),
    );
    for content in [
        json!({ "type": "resource_link", "name": evil, "uri": evil }),
        json!({ "type": "resource", "resource": { "uri": evil, "text": evil } }),
        json!({ "type": "image", "mimeType": evil, "data": "" }),
    ] {
        script += &update(json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    }
    script += &format!("  call fs/read_text_file {}\n", json!({ "path": evil }));
    script += &format!("  call terminal/create {}\n", json!({ "command": evil, "args": [evil] }));
    let options = json!([
        { "optionId": "y", "name": evil, "kind": "allow_once" },
        { "optionId": "a", "name": "Always  [n] No", "kind": "allow_always" },
        { "optionId": "n", "name": parts()[0], "kind": "reject_once" },
    ]);
    let asked = json!({
        "toolCall": {
            "toolCallId": "q", "title": parts()[1], "kind": "execute", "rawInput": { "command": evil },
            "content": [{ "type": "diff", "path": parts()[2], "oldText": evil, "newText": format!("{evil}more") }],
        },
        "options": options,
    });
    script += &format!("  call session/request_permission {asked}\n");
    let form = json!({
        "mode": "form", "message": evil,
        "requestedSchema": { "type": "object", "title": evil, "description": evil, "properties": {
            "a": { "type": "string", "title": evil, "description": evil, "default": evil },
            "b": { "type": "string", "oneOf": [{ "const": "c", "title": evil }] },
        } },
    });
    script += &format!("  call elicitation/create {form}\n");
    let page = json!({ "mode": "url", "message": evil, "elicitationId": "e", "url": format!("https://host.example/{}", parts().concat()) });
    script += &format!("  call elicitation/create {page}\n");
    script += &format!("  raw {}\n", parts().concat().replace('\n', " "));
    script += "  reply {\"stopReason\":\"end_turn\",\"usage\":{\"totalTokens\":1},\"cost\":{\"amount\":1,\"currency\":\"X\\u001b[2J\"}}\n";
    script
}

/// Fails with everything hostile, in a way that names the number of the prompt.
pub(crate) fn failures() -> String {
    let evil = evil();
    let mut script = format!("on session/prompt 1\n  stderr {}\n", parts().concat().replace('\n', " "));
    let error =
        json!({ "code": -32603, "message": evil, "data": { "details": format!("{evil} more"), "x": evil } });
    script += &format!("  raw {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{error}}}\n");
    script + "on session/prompt 2\n  exit 3\n"
}

/// What an agent says of itself and its sessions.
pub(crate) fn identity() -> String {
    let part = &parts()[0];
    let evil = evil();
    let hello = json!({
        "protocolVersion": 1,
        "agentInfo": { "name": evil, "title": evil, "version": evil },
        "agentCapabilities": {
            "loadSession": true, "auth": { "status": {}, "logout": {} },
            "sessionCapabilities": { "list": {}, "delete": {}, "fork": {}, "resume": {} },
        },
        "authMethods": [
            { "id": "first", "name": evil, "description": evil },
            { "id": part, "name": evil, "type": "env_var", "vars": [{ "name": "A_KEY", "label": evil }], "link": evil },
        ],
    });
    let sessions: Vec<Value> = parts()
        .iter()
        .map(|part| json!({ "sessionId": part, "title": part, "cwd": part, "updatedAt": part, "_meta": { "x": part } }))
        .chain([json!({ "sessionId": forgeries(), "title": forgeries(), "cwd": "/" })])
        .collect();
    let modes = json!({ "currentModeId": evil, "availableModes": [{ "id": evil, "name": evil }] });
    let options = json!([{ "id": "model", "name": evil, "category": "model", "type": "select", "currentValue": evil,
        "options": [{ "value": evil, "name": evil }] }]);
    let mut script = format!("on initialize\n{}", act("reply", &hello));
    script +=
        &format!("on session/list\n{}", act("reply", &json!({ "sessions": sessions, "nextCursor": evil })));
    script += &format!(
        "on session/new\n{}",
        act(
            "reply",
            &json!({
                "sessionId": format!("{part}-$pid"), "modes": modes, "configOptions": options, "_meta": { "agentSessionId": evil },
            })
        )
    );
    script += &format!("on session/fork\n{}", act("reply", &json!({ "sessionId": format!("fork-{part}") })));
    for method in ["session/set_mode", "session/set_config_option", "session/delete", "session/set_model"] {
        script += &format!(
            "on {method}\n  raw {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{}}}\n",
            json!({ "code": -32603, "message": evil, "data": evil })
        );
    }
    script
}
