//! MCP servers from the settings or from a file.

use attache::wire::v1::McpServer;
use serde_json::{Map, Value, json};

use crate::config::to_json;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};

/// The servers for new sessions, as they go over the wire.
pub(super) fn servers(cx: &Cx) -> Result<Vec<Value>> {
    let (list, source) = if let Some(file) = cx.flags.mcp_config.as_deref() {
        let path = cx.cwd.join(file);
        let text = std::fs::read_to_string(&path).context(path.display())?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format_args!("{} is not JSON: {error}", path.display())))?;
        let servers = value
            .get("mcpServers")
            .cloned()
            .ok_or_else(|| Failure::usage(format_args!("{} has no `mcpServers`", path.display())))?;
        (servers, path.display().to_string())
    } else if let Some(setting) = cx.config.tables.get("mcp_servers") {
        (to_json(&setting.value), setting.source.to_string())
    } else {
        return Ok(Vec::new());
    };
    let wrong = |what: String| Failure::usage(format_args!("MCP servers in {source}: {what}"));
    let entries: Vec<Value> = match list {
        Value::Array(entries) => entries,
        // Editors write them as an object by name.
        Value::Object(entries) => entries.into_iter().map(named).collect(),
        _ => return Err(wrong("this is a list".to_owned())),
    };
    let mut servers = Vec::new();
    for entry in entries {
        let entry = normal(entry);
        let server: McpServer = serde_json::from_value(entry).map_err(|error| wrong(error.to_string()))?;
        servers.push(serde_json::to_value(&server).context("an MCP server")?);
    }
    Ok(servers)
}

fn named((name, mut entry): (String, Value)) -> Value {
    if let Some(object) = entry.as_object_mut() {
        object.entry("name").or_insert(json!(name));
    }
    entry
}

/// Variables and headers may be written as an object; lists may be left out.
fn normal(mut entry: Value) -> Value {
    if let Some(object) = entry.as_object_mut() {
        let remote = object.contains_key("url");
        if remote {
            object.entry("type").or_insert(json!("http"));
            pairs(object, "headers");
        } else {
            object.entry("args").or_insert(json!([]));
            pairs(object, "env");
        }
    }
    entry
}

fn pairs(object: &mut Map<String, Value>, key: &str) {
    let value = object.entry(key).or_insert(json!([]));
    if let Value::Object(map) = value {
        *value = map.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    }
}
