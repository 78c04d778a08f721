//! Reads the agents in the settings of other programs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::agents::split;
use crate::lenient::lenient;

/// The settings of another program.
#[derive(Debug, Default)]
pub(super) struct Imported {
    pub(super) agents: Vec<ImportedAgent>,
    /// Our names of settings and their values.
    pub(super) settings: Vec<(&'static str, toml::Value)>,
    /// Credentials by the way to authenticate.
    pub(super) auth: BTreeMap<String, String>,
    pub(super) mcp_servers: Vec<Value>,
    /// Notes about settings that are not imported.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) struct ImportedAgent {
    pub(super) name: String,
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The mode and the model of new sessions.
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
}

/// A name that can be typed: `Example Agent` is `example-agent`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().flat_map(char::to_lowercase) {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => slug.push(letter),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

/// The settings of an editor.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EditorSettings {
    #[serde(deserialize_with = "lenient")]
    agent_servers: Option<Map<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    context_servers: Option<Map<String, Value>>,
}

/// An agent in one of the ways in which they are written: a program with arguments, a line, a list,
/// an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentEntry {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    command: Option<CommandEntry>,
    argv: Value,
    args: Value,
    #[serde(deserialize_with = "lenient")]
    env: Option<Map<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    default_mode: Option<String>,
    #[serde(deserialize_with = "lenient")]
    default_model: Option<String>,
    /// Members that are not imported.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The `command` of an agent or an MCP server.
#[derive(Deserialize)]
#[serde(untagged)]
enum CommandEntry {
    Text(String),
    Object(Box<CommandObject>),
}

/// A command as an object of its own, as in older settings.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandObject {
    #[serde(alias = "command", deserialize_with = "lenient")]
    path: Option<String>,
    argv: Value,
    args: Value,
    env: Value,
}

/// An MCP server of Zed: a program or an address.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContextServer {
    #[serde(deserialize_with = "lenient")]
    enabled: Option<bool>,
    #[serde(alias = "path", deserialize_with = "lenient")]
    command: Option<CommandEntry>,
    args: Value,
    env: Value,
    url: Value,
    headers: Value,
}

/// `agent_servers` of Zed and of JetBrains. Zed has agents without a command too: its own, and
/// those of registries and extensions.
pub(super) fn agent_servers(settings: &Value, program: &str) -> Imported {
    let settings = EditorSettings::deserialize(settings).unwrap_or_default();
    let mcp_servers =
        settings.context_servers.unwrap_or_default().iter().filter_map(context_server).collect();
    let mut imported = Imported { mcp_servers, ..Imported::default() };
    for (name, server) in settings.agent_servers.unwrap_or_default() {
        let Ok(server) = AgentEntry::deserialize(&server) else {
            imported.notes.push(format!("`{name}` is skipped: it is not an object"));
            continue;
        };
        let kind = server.kind.as_deref().unwrap_or("custom");
        if kind == "registry" {
            imported.notes.push(format!("`{name}` comes from the registry: attache registry install {name}"));
            continue;
        }
        let is_known = kind == "custom" && server.command.is_some();
        let more: Vec<String> = server.rest.keys().cloned().collect();
        match agent(&name, server) {
            Ok(agent) => imported.agents.push(agent),
            Err(_) if !is_known => {
                imported.notes.push(format!("`{name}` is skipped: only {program} knows its command"));
            }
            Err(reason) => imported.notes.push(format!("`{name}` is skipped: {reason}")),
        }
        if !more.is_empty() {
            imported.notes.push(format!("{} of `{name}` is not imported", more.join(", ")));
        }
    }
    imported
}

/// Returns an MCP server as in the protocol. `None` if it is disabled, or known to Zed alone.
fn context_server((name, server): (&String, &Value)) -> Option<Value> {
    let server = ContextServer::deserialize(server).ok().filter(|server| server.enabled != Some(false))?;
    let members = match (server.url, server.command) {
        (url, _) if !url.is_null() => vec![("url", url), ("headers", server.headers)],
        (_, Some(CommandEntry::Text(program))) => {
            vec![("command", program.into()), ("args", server.args), ("env", server.env)]
        }
        (_, Some(CommandEntry::Object(command))) => {
            vec![("command", command.path?.into()), ("args", command.args), ("env", command.env)]
        }
        _ => return None,
    };
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let mut entry = Map::from_iter(members.map(|(key, value)| (key.to_owned(), value)));
    entry.insert("name".to_owned(), Value::String(name.clone()));
    Some(Value::Object(entry))
}

/// Returns the words of a list; `None` if there is none.
fn texts(key: &str, value: Value) -> Result<Option<Vec<String>>, String> {
    serde_json::from_value(value).map_err(|_| format!("`{key}` is not a list of texts"))
}

fn agent(name: &str, entry: AgentEntry) -> Result<ImportedAgent, String> {
    let (command, argv, args, variables) = match entry.command {
        Some(CommandEntry::Object(command)) => {
            let CommandObject { path, argv, args, env } = *command;
            (path, argv, args, env.as_object().cloned().unwrap_or_default())
        }
        Some(CommandEntry::Text(command)) => {
            (Some(command), entry.argv, entry.args, entry.env.unwrap_or_default())
        }
        None => (None, entry.argv, entry.args, entry.env.unwrap_or_default()),
    };
    let argv = match (texts("argv", argv)?, command, texts("args", args)?) {
        (Some(argv), _, _) => argv,
        (None, Some(command), Some(args)) => std::iter::once(command).chain(args).collect(),
        // A path may contain blanks; anything but an existing file is a command line.
        (None, Some(command), None) if std::path::Path::new(&command).exists() => vec![command],
        (None, Some(command), None) => split(&command).map_err(|failure| failure.message)?,
        (None, None, _) => return Err("it has no command".to_owned()),
    };
    if argv.first().is_none_or(String::is_empty) {
        return Err("its command is empty".to_owned());
    }
    let mut env = BTreeMap::new();
    for (key, value) in variables {
        let Value::String(value) = value else {
            return Err(format!("the variable `{key}` is not a text"));
        };
        env.insert(key, value);
    }
    let argv =
        argv.into_iter().enumerate().map(|(at, word)| if at == 0 { expand(&word) } else { word }).collect();
    Ok(ImportedAgent { name: slug(name), argv, env, mode: entry.default_mode, model: entry.default_model })
}

/// `~/bin/agent` with the home directory.
fn expand(program: &str) -> String {
    match program.strip_prefix("~/") {
        Some(rest) => crate::paths::home().join(rest).to_string_lossy().into_owned(),
        None => program.to_owned(),
    }
}

/// The settings of acpx.
pub(super) fn acpx(settings: &Value) -> Imported {
    let mut imported = Imported::default();
    for (name, value) in settings.as_object().into_iter().flatten() {
        match name.as_str() {
            "agents" => {
                for (name, entry) in value.as_object().into_iter().flatten() {
                    let entry = match entry {
                        Value::String(line) => AgentEntry {
                            command: Some(CommandEntry::Text(line.clone())),
                            ..AgentEntry::default()
                        },
                        entry => AgentEntry::deserialize(entry).unwrap_or_default(),
                    };
                    match agent(name, entry) {
                        Ok(agent) => imported.agents.push(agent),
                        Err(reason) => imported.notes.push(format!("`{name}` is skipped: {reason}")),
                    }
                }
            }
            "auth" => {
                for (method, credential) in value.as_object().into_iter().flatten() {
                    if let Some(credential) = credential.as_str().filter(|credential| !credential.is_empty())
                    {
                        imported.auth.insert(method.clone(), credential.to_owned());
                    }
                }
            }
            "mcpServers" => imported.mcp_servers = value.as_array().cloned().unwrap_or_default(),
            _ => setting(name, value, &mut imported),
        }
    }
    imported
}

/// Names of acpx and ours.
const SETTINGS: &[(&str, &str)] = &[
    ("defaultAgent", "default_agent"),
    ("defaultPermissions", "permissions"),
    ("nonInteractivePermissions", "non_interactive_permissions"),
    ("authPolicy", "auth_policy"),
    ("ttl", "ttl"),
    ("timeout", "timeout"),
    ("queueMaxDepth", "queue_max_depth"),
    ("format", "format"),
];

fn setting(name: &str, value: &Value, imported: &mut Imported) {
    // Theirs forbids, ours allows.
    if let ("disableExec", Some(disabled)) = (name, value.as_bool()) {
        imported.settings.push(("exec", toml::Value::Boolean(!disabled)));
        return;
    }
    let Some((_, ours)) = SETTINGS.iter().find(|(theirs, _)| *theirs == name) else {
        imported.notes.push(format!("`{name}` is skipped: attache has no such setting"));
        return;
    };
    let value = match value {
        // Nothing is set.
        Value::Null => return,
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Bool(yes) => toml::Value::Boolean(*yes),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => toml::Value::Integer(number),
            (None, Some(number)) => toml::Value::Float(number),
            (None, None) => return,
        },
        _ => {
            imported.notes.push(format!("`{name}` is skipped: it is not a single value"));
            return;
        }
    };
    imported.settings.push((ours, value));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_can_be_typed() {
        assert_eq!(slug("Example Agent"), "example-agent");
        assert_eq!(slug("  Ünï (v2)!"), "n-v2");
        assert_eq!(slug("***"), "agent");
    }

    #[test]
    fn the_agents_of_editors() {
        let imported = agent_servers(
            &json!({ "agent_servers": {
                "My Agent": { "type": "custom", "command": "my-agent", "args": ["--acp"], "env": { "A": "1" } },
                "Old": { "command": { "path": "/bin/old", "args": ["x y"] } },
                "claude-acp": { "type": "registry", "env": {} },
                "gemini": { "ignore_system_version": true },
                "odd": { "command": "x", "args": [1] },
            } }),
            "Zed",
        );
        let argv: Vec<(&str, Vec<&str>)> = imported
            .agents
            .iter()
            .map(|agent| (agent.name.as_str(), agent.argv.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(argv, [("my-agent", vec!["my-agent", "--acp"]), ("old", vec!["/bin/old", "x y"])]);
        assert_eq!(imported.notes.len(), 4, "{:?}", imported.notes);
        assert!(agent_servers(&json!({}), "Zed").agents.is_empty());
        let imported = agent_servers(
            &json!({
                "agent_servers": { "a": { "command": "a", "default_mode": "plan", "default_model": "large" } },
                "context_servers": {
                    "files": { "source": "custom", "command": "mcp-files", "args": ["/"], "env": { "A": "1" } },
                    "old": { "command": { "path": "/bin/old", "args": [] } },
                    "web": { "url": "https://example.org/mcp", "headers": { "X": "1" } },
                    "off": { "enabled": false, "command": "off" },
                    "extension": { "source": "extension", "settings": {} },
                },
            }),
            "Zed",
        );
        assert_eq!(
            (imported.agents[0].mode.as_deref(), imported.agents[0].model.as_deref()),
            (Some("plan"), Some("large"))
        );
        assert!(imported.notes.is_empty(), "{:?}", imported.notes);
        let names: Vec<&str> =
            imported.mcp_servers.iter().filter_map(|server| server["name"].as_str()).collect();
        assert_eq!(names, ["files", "old", "web"]);
        assert_eq!(imported.mcp_servers[1]["command"], "/bin/old");
    }

    #[test]
    fn the_settings_of_acpx() {
        let imported = acpx(&json!({
            "defaultAgent": "gemini", "timeout": null, "ttl": 1.5, "disableExec": true,
            "agents": { "a": { "argv": ["a", "b c"] }, "d": { "command": "d --acp" } },
            "auth": { "key": "secret" },
        }));
        assert_eq!(imported.settings.len(), 3);
        assert!(imported.settings.contains(&("exec", toml::Value::Boolean(false))));
        assert_eq!(imported.agents[1].argv, ["d", "--acp"]);
        assert_eq!(imported.auth["key"], "secret");
        assert!(imported.notes.is_empty());
    }
}
