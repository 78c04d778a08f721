//! Short labels of messages.

use serde_json::Value;

use crate::judge::{EventLog, Kind, Message, text};

/// A short label of a message: `session/prompt "fix it"`, `result of session/new`.
pub fn label(log: &EventLog, message: &Message) -> String {
    match &message.kind {
        Kind::Request { method, params, .. } | Kind::Notification { method, params } => {
            let hint = hint(method, params);
            if hint.is_empty() { method.to_owned() } else { format!("{method} {hint}") }
        }
        Kind::Response { outcome, id } => {
            let what = match log.response(message) {
                Some((asked, _)) => format!("of {}", asked.method),
                None if id.is_null() => "without an id".to_owned(),
                None => format!("to nothing (id {id})"),
            };
            match outcome {
                Ok(result) => match result["stopReason"].as_str() {
                    Some(stop) => format!("result {what}: {stop}"),
                    None => format!("result {what}"),
                },
                Err(error) => {
                    format!("error {what}: {} {}", error["code"], short(text(&error["message"]), 60))
                }
            }
        }
        Kind::Invalid { why } => format!("no message: {}", short(why, 60)),
    }
}

fn hint(method: &str, params: &Value) -> String {
    match method {
        "session/update" => {
            let update = &params["update"];
            let kind = text(&update["sessionUpdate"]);
            let said = [
                &update["content"]["text"],
                &update["content"][0]["text"],
                &update["title"],
                &update["status"],
                &update["currentModeId"],
                &update["state"],
                &update["command"],
            ];
            let more = said.iter().find_map(|value| value.as_str()).unwrap_or_default();
            if more.is_empty() { kind.to_owned() } else { format!("{kind} {}", quoted(more)) }
        }
        "session/prompt" => {
            let first = params["prompt"].as_array().and_then(|blocks| blocks.first());
            first.map_or_else(String::new, |block| match block["text"].as_str() {
                Some(text) => quoted(text),
                None => text(&block["type"]).to_owned(),
            })
        }
        "session/request_permission" => match params["title"].as_str() {
            Some(title) => quoted(title),
            None => quoted(text(&params["toolCall"]["title"])),
        },
        "fs/read_text_file" | "fs/write_text_file" => short(text(&params["path"]), 60),
        "terminal/create" => short(text(&params["command"]), 60),
        _ if method.starts_with("terminal/") => text(&params["terminalId"]).to_owned(),
        _ => String::new(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", short(text, 48))
}

/// The beginning of a text, on one line.
pub(super) fn short(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most + 1).collect();
    if line.chars().count() > most { line.chars().take(most - 1).chain(['…']).collect() } else { line }
}
