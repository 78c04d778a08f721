//! The params of sessions and prompts.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::judge::agent::{is_base64, is_content_type};
use crate::{Role, Version};

#[derive(Debug, Default)]
pub(super) struct Setups {
    /// Ids of MCP servers over ACP that are passed, each with the session that it was passed for.
    servers: BTreeSet<(String, String)>,
}

impl Watcher for Setups {
    fn rules(&self) -> &'static [&'static str] {
        &[
            "SESS-33",
            "ROOT-01",
            "ROOT-04",
            "ROOT-09",
            "ROOT-19",
            "MCP-06",
            "MCPA-02",
            "MCPA-06",
            "SYSP-03",
            "CONT-01",
            "CONT-03",
            "CONT-04",
            "PROMPT-05",
        ]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let Some((method, params)) = message.call(Role::Client) else { return };
        match method {
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                if method == "session/new" {
                    let whole = params["cwd"].is_string() && params["mcpServers"].is_array();
                    out.check("SESS-33", message, whole, || {
                        "session/new lacks `cwd` or `mcpServers`".to_owned()
                    });
                }
                directories(message, params, out);
                self.servers(message, params, out);
                system_prompt(message, params, out);
            }
            "session/list" => {
                if let Some(cwd) = params["cwd"].as_str() {
                    out.check("ROOT-04", message, is_absolute(cwd), || {
                        format!("the directory {cwd:?} is not absolute")
                    });
                }
            }
            "session/prompt" => {
                items(&params["prompt"]).for_each(|block| content(log.version(), message, block, out));
            }
            _ => {}
        }
    }
}

/// Absolute here or on the platform where it was recorded.
fn is_absolute(path: &str) -> bool {
    let drive = |path: &str| {
        path.as_bytes().get(1) == Some(&b':') && matches!(path.as_bytes().get(2), Some(b'\\' | b'/'))
    };
    Path::new(path).is_absolute() || path.starts_with('/') || path.starts_with("\\\\") || drive(path)
}

fn directories(message: &Message, params: &Value, out: &mut Findings) {
    let cwd = params["cwd"].as_str();
    if let Some(cwd) = cwd {
        let absolute = is_absolute(cwd);
        out.check("ROOT-01", message, absolute, || format!("the directory {cwd:?} is not absolute"));
        if absolute {
            out.pass("ROOT-04", message);
        }
    }
    let roots: Vec<&str> = items(&params["additionalDirectories"]).filter_map(Value::as_str).collect();
    if roots.is_empty() {
        return;
    }
    let relative = roots.iter().find(|root| !is_absolute(root));
    out.check("ROOT-09", message, relative.is_none(), || {
        format!("the root {:?} is not absolute", relative.unwrap_or(&""))
    });
    let twice = roots
        .iter()
        .enumerate()
        .find(|(place, root)| cwd == Some(**root) || roots.iter().take(*place).any(|other| other == *root));
    out.check("ROOT-19", message, twice.is_none(), || {
        format!("the root {:?} is named twice", twice.map_or("", |(_, root)| root))
    });
}

impl Setups {
    fn servers(&mut self, message: &Message, params: &Value, out: &mut Findings) {
        let session =
            params["sessionId"].as_str().map_or_else(|| format!("#{}", message.index), str::to_owned);
        let mut here = BTreeSet::new();
        for server in items(&params["mcpServers"]) {
            match server["type"].as_str() {
                Some("acp") => {
                    let key = server["serverId"].as_str();
                    out.check("MCPA-06", message, key.is_some(), || {
                        "a server over ACP is not named by `serverId`".to_owned()
                    });
                    let Some(id) = key else { continue };
                    let again = !here.insert(id)
                        || self.servers.iter().any(|(known, of)| known == id && *of != session);
                    self.servers.insert((id.to_owned(), session.clone()));
                    out.check("MCPA-02", message, !again, || format!("two servers have the id {id:?}"));
                }
                None | Some("stdio") => {
                    if let Some(command) = server["command"].as_str() {
                        let absolute = is_absolute(command);
                        out.check("MCP-06", message, absolute, || {
                            format!("the command {command:?} is not absolute")
                        });
                    }
                }
                _ => {}
            }
        }
    }
}

fn system_prompt(message: &Message, params: &Value, out: &mut Findings) {
    let Some(content) = params["systemPrompt"]["content"].as_array() else { return };
    let kept = !content.is_empty() && content.iter().all(|block| block["type"] == "text");
    out.check("SYSP-03", message, kept, || "the system prompt is empty or holds more than text".to_owned());
}

/// Judges the encoding of a content block, which its shape does not show.
fn content(version: Version, message: &Message, block: &Value, out: &mut Findings) {
    let kind = &block["type"];
    let is_known = is_content_type(version, kind);
    out.check("CONT-01", message, is_known, || format!("a block of type {kind}"));
    match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) => {
            if let Some(data) = block["data"].as_str() {
                out.check("CONT-03", message, is_base64(data), || {
                    format!("the data of a block of type {kind} is not base64")
                });
            }
        }
        Some("resource") => {
            let resource = &block["resource"];
            if let Some(blob) = resource["blob"].as_str() {
                out.check("CONT-04", message, is_base64(blob), || {
                    "the blob of a resource is not base64".to_owned()
                });
            }
        }
        _ => {}
    }
}
