//! Changed updates.

use super::{relative, remove};
use serde_json::{Value, json};

/// An update of a session.
pub(super) fn update(variant: &str, update: &mut Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "agent_message_chunk" => chunk(variant, update),
        "tool_call" | "tool_call_update" => tool(variant, &kind, update),
        "plan" if variant == "PLAN-06" => update["entries"][0]["priority"] = json!("urgent"),
        "plan_update" => match variant {
            "PLAN-06" if update["plan"]["type"] == "items" => {
                update["plan"]["entries"][0]["priority"] = json!("urgent");
            }
            "PLAN-09" => remove(&mut update["plan"], "planId"),
            _ => {}
        },
        "available_commands_update" if variant == "CMD-03" => {
            remove(&mut update["availableCommands"][0], "description");
        }
        "current_mode_update" if variant == "MODE-07" => {
            update["modeId"] = update["currentModeId"].take();
            remove(update, "currentModeId");
        }
        "session_info_update" if variant == "LIST-13" => update["cwd"] = json!("/"),
        "usage_update" if variant == "MSG-05" => remove(update, "size"),
        "notice" if variant == "NOTE-02" => update["title"] = json!(""),
        "compaction_update" if variant == "NOTE-09" && !update["summary"].is_null() => {
            update["summary"] = json!("We talked");
        }
        "subagent_update" => match variant {
            "SUBA-05" => update["title"] = json!(5),
            "ROOT-04/child" => relative(&mut update["cwd"]),
            _ => {}
        },
        _ => {}
    }
}

fn chunk(variant: &str, update: &mut Value) {
    let content = &mut update["content"];
    let kind = content["type"].as_str().unwrap_or_default().to_owned();
    match (variant, kind.as_str()) {
        ("INIT-10", "text") if content["text"] == "hello" => {
            let content = json!([content]);
            update["sessionUpdate"] = json!("agent_message");
            update["content"] = content;
        }
        ("CONT-01", "image") => content["type"] = json!("video"),
        ("CONT-03", "image") => remove(content, "mimeType"),
        ("CONT-03/data", "audio") => content["data"] = json!("not base64!"),
        ("CONT-04", "resource") => {
            remove(&mut content["resource"], "text");
            remove(&mut content["resource"], "blob");
        }
        ("CONT-05", "resource_link") => remove(content, "name"),
        ("MSG-02", _) => update["messageId"] = json!(5),
        ("EXT-02", _) => update["mood"] = json!("good"),
        ("RPC-19", _) => update["message_id"] = update["messageId"].clone(),
        _ => {}
    }
}

fn tool(variant: &str, kind: &str, update: &mut Value) {
    let item = update
        .get("content")
        .and_then(|list| list.get(0))
        .map_or("", |item| item["type"].as_str().unwrap_or_default());
    let (item, place) = (item.to_owned(), 0);
    match (variant, kind) {
        ("TOOL-03", "tool_call") => remove(update, "title"),
        ("TOOL-05", "tool_call_update") => remove(update, "toolCallId"),
        ("TOOL-11", _) if update["status"] == "completed" => update["status"] = json!("done"),
        ("TOOL-12", "tool_call") => update["kind"] = json!("paint"),
        ("TOOL-14", _) if item == "content" => {
            update["content"][place] = json!({ "type": "text", "text": "bare" });
        }
        ("TOOL-15", _) if item == "diff" => relative(&mut update["content"][place]["path"]),
        ("TOOL-15/text", _) if item == "diff" => remove(&mut update["content"][place], "newText"),
        ("TOOL-16", _) if item == "terminal" => update["content"][place]["terminalId"] = json!("ghost"),
        ("TOOL-18", "tool_call") if update["locations"].is_array() => {
            relative(&mut update["locations"][place]["path"]);
        }
        ("TOOL-18/line", "tool_call") if update["locations"].is_array() => {
            update["locations"][place]["line"] = json!(0);
        }
        ("TOOL-20", "tool_call_update") => update["name"] = json!("something_else"),
        _ => {}
    }
}
