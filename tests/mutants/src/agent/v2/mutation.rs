//! Variants that change outgoing messages of version 2.

use crate::agent::mutation::{self, relative, remove};
use serde_json::{Value, json};

/// Sections of rules whose messages are alike in both versions.
const SHARED: [&str; 8] = ["CONF-", "CONT-", "ELIC-", "LIST-", "MCPA-", "NOTE-", "SSTAT-", "SUBA-"];

/// Changes a message as the variant does; `about` is its method, or the method that it answers.
pub(crate) fn message(variant: &str, about: &str, message: &mut Value) {
    let answers = message.get("method").is_none();
    match (variant, about) {
        ("RPC-02", "session/list") if answers => remove(message, "result"),
        ("RPC-23", "session/list") if answers && message.get("result").is_some() => {
            message["error"] = Value::Null;
        }
        ("V2-02", "") => remove(message, "id"),
        ("EXT-02/answer", "session/new") if message.get("result").is_some() => {
            message["result"]["mood"] = json!("good")
        }
        ("V2-04", "initialize") if message.get("result").is_some() => remove(&mut message["result"], "info"),
        ("INIT-27", "initialize") if message.get("result").is_some() => {
            message["result"]["capabilities"]["superPowers"] = json!({})
        }
        ("INIT-28" | "EXT-09", "initialize") if message.get("result").is_some() => {
            remove(&mut message["result"]["capabilities"], "_meta")
        }
        ("AUTH-01", "initialize") if message.get("result").is_some() => {
            message["result"]["authMethods"] = json!([])
        }
        ("AUTH-14", "initialize") if message.get("result").is_some() => {
            message["result"]["authMethods"][0]["command"] = json!("login")
        }
        ("ROOT-04", "session/list") => mutation::message(variant, about, message),
        ("PROV-01/hidden", "initialize") if message.get("result").is_some() => {
            remove(&mut message["result"]["capabilities"], "providers")
        }
        ("V2-44", "session/new") if message.get("result").is_some() => {
            message["result"]["configOptions"] = Value::Null
        }
        ("V2-24", "session/request_permission") => remove(&mut message["params"], "title"),
        ("V2-24/ids", "session/request_permission") => {
            message["params"]["options"][1]["optionId"] = json!("yes");
        }
        ("RPC-01" | "RPC-03" | "RPC-05" | "RPC-17", _) => mutation::message(variant, about, message),
        _ if SHARED.iter().any(|section| variant.starts_with(section)) => {
            mutation::message(variant, about, message)
        }
        (_, "session/update") => update(variant, &mut message["params"]["update"]),
        _ => {}
    }
}

fn update(variant: &str, update: &mut Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    match (variant, kind.as_str()) {
        ("V2-10", "user_message") => update["messageId"] = json!("another"),
        ("V2-12", "state_update") if update["stopReason"] == "end_turn" => remove(update, "stopReason"),
        ("V2-16", "agent_message_chunk") => remove(update, "messageId"),
        ("MSG-02", "agent_message_chunk") => update["messageId"] = json!(5),
        ("PLAN-09", "plan_update") => remove(&mut update["plan"], "planId"),
        ("PLAN-06", "plan_update") => remove(&mut update["plan"]["entries"][0], "priority"),
        ("INIT-10", "terminal_update") => update["command"] = json!(5),
        ("ROOT-04/terminal", "terminal_update") => relative(&mut update["cwd"]),
        ("V2-36", "state_update") if update["state"] == "idle" => remove(update, "background"),
        ("V2-36/end", "state_update") if update["state"] == "running" => update["background"] = json!([]),
        ("V2-41", "available_commands_update") => update["availableCommands"][0]["name"] = json!("/echo"),
        ("V2-41/type", "available_commands_update") => remove(&mut update["availableCommands"][0], "type"),
        ("V2-41/twice", "available_commands_update") => {
            update["availableCommands"][1]["name"] = json!("echo")
        }
        ("TOOL-18", "tool_call_update") if update["locations"].is_array() => {
            relative(&mut update["locations"][0]["path"]);
        }
        ("TOOL-18/line", "tool_call_update") if update["locations"].is_array() => {
            update["locations"][0]["line"] = json!(0);
        }
        ("EXT-02", "agent_message_chunk") => update["mood"] = json!("good"),
        _ => {}
    }
}

/// The lines of a message.
pub(crate) fn bytes(variant: &str, about: &str, message: &Value) -> Vec<Vec<u8>> {
    let line = message.to_string();
    let answers = message.get("method").is_none();
    match (variant, about) {
        ("RPC-24", "session/list") if answers => vec![],
        ("RPC-24/twice", "session/list") if answers => vec![line.clone().into(), line.into()],
        ("STDIO-04", _) if line.contains("available_commands_update") => {
            vec![format!("{line}{line}").into()]
        }
        _ => mutation::bytes(variant, about, message),
    }
}
