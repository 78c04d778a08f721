//! Changed answers and requests.

use super::{relative, remove};
use serde_json::{Value, json};

/// A result of the agent.
pub(super) fn answer(variant: &str, about: &str, result: &mut Value) {
    match (about, variant) {
        ("initialize", _) => initialize(variant, result),
        ("session/list", "LIST-03") => remove(result, "sessions"),
        ("session/list", "LIST-10") => {
            each(&mut result["sessions"], |info| info["updatedAt"] = json!("yesterday"))
        }
        ("session/list", "LIST-10/cwd") => each(&mut result["sessions"], |info| relative(&mut info["cwd"])),
        ("session/list", "SSTAT-05") => each(&mut result["sessions"], |info| remove(info, "archived")),
        ("session/list", "ROOT-04") => each(&mut result["sessions"], |info| {
            if let Some(roots) = info.get_mut("additionalDirectories") {
                each(roots, relative);
            }
        }),
        ("session/prompt", "PROMPT-07") if result["stopReason"] == "end_turn" => remove(result, "stopReason"),
        ("session/prompt", "PROMPT-08") if result["stopReason"] == "end_turn" => {
            result["stopReason"] = json!("done")
        }
        ("session/prompt", "PROMPT-19") => result["usage"] = json!({ "totalTokens": "many" }),
        ("session/set_mode", "MODE-11") => *result = json!("done"),
        ("session/new", "CONF-05") => result["configOptions"][1]["currentValue"] = json!("ghost"),
        ("session/new", "CONF-11") => result["configOptions"][3]["category"] = json!("style"),
        ("session/new" | "session/load" | "session/resume" | "session/fork", "MODE-02") => {
            remove(result, "modes");
        }
        ("session/new", "MODE-01") => result["modes"]["currentModeId"] = json!("ghost"),
        ("session/new", "EXT-02/answer") => result["mood"] = json!("good"),
        _ => {}
    }
}

fn initialize(variant: &str, result: &mut Value) {
    let able = &mut result["agentCapabilities"];
    match variant {
        "INIT-05" => result["protocolVersion"] = json!("1"),
        "INIT-31" => remove(result, "agentCapabilities"),
        "INIT-11" => remove(result, "protocolVersion"),
        "INIT-13" => remove(result, "agentInfo"),
        "INIT-28" | "EXT-09" => remove(able, "_meta"),
        "AUTH-01" => result["authMethods"] = json!([]),
        "PROMPT-04" => able["promptCapabilities"]["image"] = json!(false),
        "INIT-18" => able["loadSession"] = json!("yes"),
        "INIT-27" => able["superPowers"] = json!(true),
        "AUTH-14" => result["authMethods"][0]["command"] = json!("login"),
        "PROV-01" => able["providers"] = json!(true),
        "PROV-01/hidden" => remove(able, "providers"),
        "SSTAT-05/list" => remove(&mut able["sessionCapabilities"], "list"),
        "MODE-02" => {
            let modes = [json!({ "id": "ask", "name": "Ask" }), json!({ "id": "code", "name": "Code" })];
            result["modes"] = json!({ "currentModeId": "ask", "availableModes": modes });
        }
        "MCP-04" => able["mcpCapabilities"]["http"] = json!(false),
        _ => {}
    }
}

/// The params of a request or notification of the agent.
pub(super) fn call(variant: &str, method: &str, params: &mut Value) {
    match (method, variant) {
        ("session/request_permission", "PERM-02") => remove(params, "options"),
        ("session/request_permission", "PERM-02/tool") => remove(&mut params["toolCall"], "toolCallId"),
        ("session/request_permission", "PERM-16") => {
            params["options"][3]["optionId"] = params["options"][2]["optionId"].clone();
        }
        ("session/request_permission", "PERM-03") => params["options"][0]["kind"] = json!("allow"),
        ("fs/read_text_file", "FS-04") => relative(&mut params["path"]),
        ("fs/read_text_file", "FS-05" | "ROOT-05") => params["line"] = json!(0),
        ("fs/write_text_file", "FS-07") => remove(params, "sessionId"),
        ("terminal/create", "TERM-13") => relative(&mut params["cwd"]),
        ("elicitation/create", _) => elicitation(variant, params),
        ("mcp/message", "MCPA-03") if params.get("connectionId").is_some() => {
            params["connectionId"] = json!("ghost")
        }
        ("mcp/message", "MCPA-04") => remove(params, "requestId"),
        _ => {}
    }
}

fn elicitation(variant: &str, params: &mut Value) {
    match variant {
        "ELIC-04" => remove(params, "mode"),
        "ELIC-05" => {
            let session = params["sessionId"].take();
            remove(params, "sessionId");
            params["scope"] = json!({ "sessionId": session });
        }
        "ELIC-10" if params["mode"] == "form" => {
            params["requestedSchema"]["properties"]["more"] = json!({ "type": "object", "properties": {} });
        }
        "ELIC-26" if params["mode"] == "url" => params["url"] = json!("https://me:pass@service.example/"),
        "ELIC-27" if params["mode"] == "url" => params["url"] = json!("http://service.example/"),
        "ELIC-31" => params["message"] = json!("Please visit https://service.example/"),
        _ => {}
    }
}

fn each(list: &mut Value, change: impl FnMut(&mut Value)) {
    list.as_array_mut().into_iter().flatten().for_each(change);
}
