//! The answer to `initialize`.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_text, items};
use crate::Role;

// INIT-05, INIT-10, INIT-11, INIT-13, INIT-27, INIT-31, AUTH-14, NES-10, SSTAT-05, PROV-01
pub(super) struct InitializeAnswer;

/// Updates that only version 2 has.
const OF_VERSION_2: [&str; 7] = [
    "user_message",
    "agent_message",
    "agent_thought",
    "state_update",
    "tool_call_content_chunk",
    "terminal_update",
    "terminal_output_chunk",
];

/// Capabilities of all drafts of version 1.
const CAPABILITIES: [&str; 9] = [
    "loadSession",
    "promptCapabilities",
    "mcpCapabilities",
    "sessionCapabilities",
    "auth",
    "providers",
    "nes",
    "positionEncoding",
    "_meta",
];

impl Watcher for InitializeAnswer {
    fn rules(&self) -> &'static [&'static str] {
        &[
            "INIT-05", "INIT-10", "INIT-11", "INIT-13", "INIT-27", "INIT-28", "INIT-31", "EXT-09", "AUTH-14",
            "NES-10", "SSTAT-05", "PROV-01",
        ]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        if let Some((asked, result)) = log.result_of(message, "initialize") {
            version(message, result, out);
            promises(message, result, out);
            encoding(message, &asked.params, result, out);
        }
        // INIT-28, EXT-09: an extension method is announced in `_meta` of a capability first.
        if let Some((method, _)) = message.call(Role::Agent).filter(|(method, _)| method.starts_with('_')) {
            let announced = log.announces_extensions();
            for rule in ["INIT-28", "EXT-09"] {
                out.check(rule, message, announced, || {
                    format!("{method} is called, and no `_meta` of a capability announces anything")
                });
            }
        }
        if let (None, Some((_, kind, _))) = (message.id(), message.update())
            && log.initialized["protocolVersion"] == 1
        {
            out.check("INIT-10", message, !OF_VERSION_2.contains(&kind), || {
                format!("version 1 was agreed, `{kind}` is of version 2")
            });
        }
    }
}

fn version(message: &Message, result: &Value, out: &mut Findings) {
    let version = &result["protocolVersion"];
    if !version.is_null() {
        let fits = version.as_u64().is_some_and(|number| number <= u64::from(u16::MAX));
        out.check("INIT-05", message, fits, || format!("`protocolVersion` is {version}"));
    }
    out.check("INIT-11", message, !version.is_null(), || "`protocolVersion` is missing".to_owned());
    // Version 2 names the capabilities otherwise.
    let has_capabilities = *version == 2 || !result["agentCapabilities"].is_null();
    out.check("INIT-31", message, has_capabilities, || "`agentCapabilities` is missing".to_owned());
}

fn promises(message: &Message, result: &Value, out: &mut Findings) {
    // An agent that answers with a later version says it under that version's name.
    let info = &result[if result["info"].is_object() { "info" } else { "agentInfo" }];
    out.check("INIT-13", message, is_text(&info["name"]) && is_text(&info["version"]), || {
        "`agentInfo` with name and version is missing".to_owned()
    });
    for method in items(&result["authMethods"]) {
        out.check("AUTH-14", message, method.get("command").is_none(), || {
            format!("the method {} names a command", method["name"])
        });
    }
    let able = &result["agentCapabilities"];
    if let Some(able) = able.as_object() {
        let custom = able.keys().find(|key| !CAPABILITIES.contains(&key.as_str()));
        out.check("INIT-27", message, custom.is_none(), || {
            format!("`{}` is no capability of the protocol", custom.map_or("", String::as_str))
        });
    }
    let sessions = &able["sessionCapabilities"];
    if sessions["archive"].is_object() {
        out.check("SSTAT-05", message, sessions["list"].is_object(), || {
            "`archive` is advertised and `list` is not".to_owned()
        });
    }
    if let Some(providers) = able.get("providers").filter(|providers| !providers.is_null()) {
        out.check("PROV-01", message, providers.is_object(), || {
            format!("`providers` is {providers} instead of {{}}")
        });
    }
}

/// One of those that the client named, UTF-16 if it named none.
// NES-10
fn encoding(message: &Message, params: &Value, result: &Value, out: &mut Findings) {
    let able = &result["agentCapabilities"];
    if !able["nes"].is_object() {
        return;
    }
    let chosen = &able["positionEncoding"];
    let offered = &params["clientCapabilities"]["positionEncodings"];
    let fits = chosen.is_null() || *chosen == "utf-16" || items(offered).any(|name| name == chosen);
    out.check("NES-10", message, fits, || format!("{chosen} was chosen, the client offered {offered}"));
}
