//! Elicitation: forms and URLs.

use super::Client;
use super::wire::{Answer, bad_params, failure};
use serde_json::{Map, Value, json};
use std::net::TcpStream;

pub(super) async fn create(client: &Client, params: &Value) -> Answer {
    let mode = params.get("mode").and_then(Value::as_str);
    let (Some(mode), true) = (mode, params.get("message").is_some_and(Value::is_string)) else {
        return Err(bad_params("mode and message are needed"));
    };
    match mode {
        "form" => form(client, params),
        "url" if client.acts("url") || client.acts("decline") => url(client, params).await,
        // ELIC-02: a mode that was not offered; ELIC-33: an unknown mode is not a known one.
        "url" if client.is("ELIC-02") => Ok(json!({ "action": "decline" })),
        _ if client.is("ELIC-33") && mode != "url" => Ok(json!({ "action": "accept", "content": {} })),
        _ => Err(bad_params("this mode was not offered")),
    }
}

/// ELIC-18, ELIC-19: accepted, with content that fits the schema.
fn form(client: &Client, params: &Value) -> Answer {
    let Some(schema) = params.get("requestedSchema").filter(|schema| schema.is_object()) else {
        return Err(bad_params("requestedSchema is needed"));
    };
    if client.acts("decline") {
        return Ok(json!({ "action": "decline" }));
    }
    let mut content = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(value) = filled(property) {
            content.insert(name.clone(), value);
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).any(|name| !content.contains_key(name));
    match client.setup.variant.as_deref() {
        Some("ELIC-18") => return Ok(json!({ "action": "ok", "content": content })),
        // A text where a number is asked for; a text that is too short.
        Some("ELIC-19") if content.contains_key("count") => {
            drop(content.insert("count".to_owned(), json!("two")))
        }
        Some("ELIC-11") if content.contains_key("name") => drop(content.insert("name".to_owned(), json!(""))),
        _ => {}
    }
    // ELIC-33: a property of a kind that we do not know cannot be filled in.
    if missing {
        Ok(json!({ "action": "decline" }))
    } else {
        Ok(json!({ "action": "accept", "content": content }))
    }
}

/// A value that the schema of the property allows.
fn filled(property: &Value) -> Option<Value> {
    if let Some(default) = property.get("default") {
        return Some(default.clone());
    }
    let first = |list: &Value| list.get(0).cloned();
    let choice = |schema: &Value, list: &str| {
        let named = |entry: Value| entry.get("const").cloned();
        schema.get("enum").and_then(first).or_else(|| schema.get(list).and_then(first).and_then(named))
    };
    let smallest = |name: &str| property.get(name).cloned();
    match property.get("type").and_then(Value::as_str)? {
        "string" => choice(property, "oneOf").or_else(|| {
            let length = property.get("minLength").and_then(Value::as_u64).unwrap_or(1);
            let text = match property.get("format").and_then(Value::as_str) {
                Some("email") => "someone@example.com".to_owned(),
                Some("uri") => "https://example.com/".to_owned(),
                Some("date") => "2026-01-02".to_owned(),
                Some("date-time") => "2026-01-02T03:04:05Z".to_owned(),
                _ => "x".repeat(usize::try_from(length.max(1)).unwrap_or(1)),
            };
            Some(json!(text))
        }),
        "number" | "integer" => Some(smallest("minimum").unwrap_or(json!(1))),
        "boolean" => Some(json!(true)),
        "array" => choice(property.get("items")?, "anyOf").map(|item| json!([item])),
        _ => None,
    }
}

/// ELIC-17: consent to open the address, at once. ELIC-28: the address is not visited before.
async fn url(client: &Client, params: &Value) -> Answer {
    let id = params.get("elicitationId").and_then(Value::as_str);
    let (Some(id), Some(url)) = (id, params.get("url").and_then(Value::as_str)) else {
        return Err(bad_params("elicitationId and url are needed"));
    };
    // ELIC-22: the id is theirs, whatever it looks like.
    if client.is("ELIC-22") && !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(failure(-32602, "elicitationId is no identifier"));
    }
    if client.is("ELIC-28") {
        let host = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let _ = host.map(TcpStream::connect);
    }
    if client.acts("decline") {
        return Ok(json!({ "action": "decline" }));
    }
    if client.is("ELIC-17") {
        client.completed(id).await;
    }
    Ok(json!({ "action": "accept" }))
}

impl Client {
    /// Waits until the agent says that the elicitation `id` is complete.
    async fn completed(&self, id: &str) {
        let mut completed = self.completed.subscribe();
        let _ = completed.wait_for(|ids| ids.iter().any(|done| done == id)).await;
    }
}
