//! Validation of params (RPC-13).

use super::wire::{Agent, Refusal};
use serde_json::Value;

/// The string member `key`.
pub(crate) fn text<'a>(params: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    params[key].as_str().ok_or_else(|| Refusal::params(format!("`{key}` must be a string")))
}

/// The string member `key`, if it is there.
pub(crate) fn maybe<'a>(params: &'a Value, key: &str) -> Result<Option<&'a str>, Refusal> {
    if params[key].is_null() { Ok(None) } else { text(params, key).map(Some) }
}

/// ROOT-04: an absolute path.
pub(crate) fn absolute<'a>(params: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    let path = text(params, key)?;
    if std::path::Path::new(path).is_absolute() {
        Ok(path)
    } else {
        Err(Refusal::params(format!("`{key}` must be an absolute path")))
    }
}

/// The list member `key`; absent and null are empty.
pub(crate) fn list<'a>(params: &'a Value, key: &str) -> Result<&'a [Value], Refusal> {
    match &params[key] {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        _ => Err(Refusal::params(format!("`{key}` must be a list"))),
    }
}

/// ROOT-10, ROOT-11: the additional directories, each absolute.
pub(crate) fn roots(agent: &Agent, params: &Value) -> Result<Vec<String>, Refusal> {
    let given = list(params, "additionalDirectories")?;
    if agent.is("ROOT-11") && given.is_empty() && !params["additionalDirectories"].is_null() {
        return Err(Refusal::params("`additionalDirectories` must not be empty"));
    }
    let mut roots = Vec::new();
    for entry in given {
        match entry.as_str() {
            Some(path) if std::path::Path::new(path).is_absolute() => roots.push(path.to_owned()),
            _ if agent.is("ROOT-10") => {}
            _ => return Err(Refusal::params("`additionalDirectories` must hold absolute paths")),
        }
    }
    Ok(roots)
}

/// A program to start: command, arguments, environment.
type Program = (String, Vec<String>, Vec<(String, String)>);

/// The parsed list of MCP servers.
#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) programs: Vec<Program>,
    /// Ids of servers behind this connection.
    pub(crate) acp: Vec<String>,
}

/// MCP-02, MCP-08, MCP-11: every entry is understood, or all are refused.
pub(crate) fn servers(agent: &Agent, params: &Value, required: bool) -> Result<Servers, Refusal> {
    if agent.is("MCP-10") && params["mcpServers"].is_null() {
        return Err(Refusal::params("`mcpServers` must be a list"));
    }
    if required && params.get("mcpServers").is_none() {
        return Err(Refusal::params("`mcpServers` is missing"));
    }
    let mut servers = Servers::default();
    for entry in list(params, "mcpServers")? {
        // V2-20 broken: a known type need not be whole.
        if agent.is("V2-20") && entry["type"] == "stdio" {
            continue;
        }
        match server(agent, entry, &mut servers) {
            Err(_) if agent.is("MCP-11") && entry.get("type").is_none() => {}
            Err(_) if agent.is("MCP-08") && entry["type"] == "weird" => {}
            other => other?,
        }
    }
    if agent.is("MCP-02") && !servers.programs.is_empty() {
        return Err(Refusal::params("only http servers are known here"));
    }
    Ok(servers)
}

fn server(agent: &Agent, entry: &Value, into: &mut Servers) -> Result<(), Refusal> {
    if !entry.is_object() {
        return Err(Refusal::params("an MCP server must be an object"));
    }
    text(entry, "name")?;
    let kind = entry.get("type").map(|kind| kind.as_str().unwrap_or_default());
    let kind = match (agent.speaks_2(), kind) {
        // Version 2 names the type of programs too.
        (false, None) => "stdio",
        (false, Some("stdio")) | (true, None | Some("sse")) => "",
        (_, Some(kind)) => kind,
    };
    match kind {
        "stdio" => {
            let strings = |key| -> Result<Vec<String>, Refusal> {
                list(entry, key)?
                    .iter()
                    .map(|item| item.as_str().map(str::to_owned))
                    .collect::<Option<_>>()
                    .ok_or_else(|| Refusal::params(format!("`{key}` must hold strings")))
            };
            let mut env = Vec::new();
            for pair in list(entry, "env")? {
                env.push((text(pair, "name")?.to_owned(), text(pair, "value")?.to_owned()));
            }
            into.programs.push((absolute(entry, "command")?.to_owned(), strings("args")?, env));
        }
        "http" | "sse" => {
            text(entry, "url")?;
            list(entry, "headers")?;
        }
        "acp" => into.acp.push(text(entry, "serverId")?.to_owned()),
        _ => return Err(Refusal::params("an MCP server of an unknown type")),
    }
    Ok(())
}

/// SYSP-02: a system prompt of a mode that was advertised, with content that prompts may have.
pub(crate) fn system_prompt(agent: &Agent, params: &Value) -> Result<(), Refusal> {
    let given = &params["systemPrompt"];
    if given.is_null() || agent.is("SYSP-02") {
        return Ok(());
    }
    if !matches!(text(given, "mode")?, "append" | "override") {
        return Err(Refusal::params("a system prompt of an unknown mode"));
    }
    given["content"]
        .as_array()
        .ok_or_else(|| Refusal::params("`content` must be a list"))?
        .iter()
        .try_for_each(block)
}

/// CONT-01, CONT-07: one block of a prompt.
pub(crate) fn block(block: &Value) -> Result<(), Refusal> {
    match block["type"].as_str() {
        Some("text") => text(block, "text").map(|_| ()),
        Some("image" | "audio") => {
            text(block, "mimeType")?;
            base64(text(block, "data")?)
        }
        Some("resource_link") => {
            text(block, "name")?;
            text(block, "uri").map(|_| ())
        }
        Some("resource") => {
            let resource = &block["resource"];
            text(resource, "uri")?;
            match (resource["text"].is_string(), resource["blob"].as_str()) {
                (true, _) => Ok(()),
                (false, Some(blob)) => base64(blob),
                (false, None) => Err(Refusal::params("a resource needs `text` or `blob`")),
            }
        }
        _ => Err(Refusal::params("a block of an unknown type")),
    }
}

/// CONT-03: data is base64.
fn base64(data: &str) -> Result<(), Refusal> {
    let body = data.trim_end_matches('=');
    let plain = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    if plain && data.len().is_multiple_of(4) && data.len() - body.len() <= 2 {
        Ok(())
    } else {
        Err(Refusal::params("data must be base64"))
    }
}
