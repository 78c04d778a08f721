//! Version 2: `initialize`, states, permission subjects, tool calls that can be cancelled.

use super::Client;
use serde_json::{Value, json};

impl Client {
    /// V2-03: version, name and capabilities.
    pub(super) fn introduction_2(&self) -> Value {
        let version = match self.setup.variant.as_deref() {
            Some("INIT-04") => json!(0),
            Some("INIT-05") => json!("2"),
            _ => json!(2),
        };
        let mut elicitation = json!({ "form": {} });
        if self.acts("url") || self.acts("decline") {
            elicitation["url"] = json!({});
        }
        let mut params = json!({
            "protocolVersion": version,
            "info": { "name": "mutant-client", "title": "The good client", "version": "0.1.0" },
            "capabilities": { "elicitation": elicitation },
        });
        if self.setup.relaunch.is_some() {
            params["capabilities"]["auth"] = json!({ "terminal": {} });
        }
        if self.is("EXT-09") {
            // Announced by itself, which says nothing of the agent.
            params["capabilities"]["_meta"] = json!({ "attache.dev": { "hello": true } });
        }
        match self.setup.variant.as_deref() {
            Some("V2-03") => drop(params.as_object_mut().map(|params| params.remove("info"))),
            Some("V2-03/capabilities") => {
                drop(params.as_object_mut().map(|params| params.remove("capabilities")));
            }
            Some("INIT-24") => {
                params["_meta"] = json!({ "attache.dev/apiKey": "sk-not-a-real-key-0123456789" });
            }
            Some("INIT-27") => params["capabilities"]["hologram"] = json!({}),
            _ => {}
        }
        params
    }

    /// How often the session became idle.
    pub(super) fn idles(&self, session: &str) -> usize {
        self.state().sessions.get(session).map_or(0, |session| session.idles)
    }

    /// Waits until the session is idle once more than `before`.
    pub(super) async fn until_idle(&self, session: &str, before: usize) {
        loop {
            let changed = self.idle.notified();
            if self.idles(session) > before {
                return;
            }
            changed.await;
        }
    }
}

/// The capability that version 1 has at `pointer`, if the agent announced it.
pub(super) fn capability<'a>(agent: &'a Value, pointer: &str) -> Option<&'a Value> {
    let path = match pointer.trim_start_matches('/').split_once('/') {
        Some(("sessionCapabilities", "list" | "resume" | "close")) => "session".to_owned(),
        Some(("sessionCapabilities", name)) => format!("session/{name}"),
        Some(("promptCapabilities", name)) => format!("session/prompt/{name}"),
        Some(("mcpCapabilities", name)) => format!("session/mcp/{name}"),
        None if pointer == "/providers" => "providers".to_owned(),
        Some(("auth", "status")) => "auth/status".to_owned(),
        _ => return None,
    };
    agent.pointer(&format!("/capabilities/{path}"))
}

/// The tool call of a permission request, or its title if it is about none. V2-20: a subject of a
/// known type is whole.
pub(super) fn subject<'a>(client: &Client, params: &'a Value) -> Option<&'a str> {
    let title = params["title"].as_str()?;
    match params["subject"]["type"].as_str() {
        Some("tool_call") if client.is("V2-20") => Some(title),
        Some("tool_call") => params.pointer("/subject/toolCall/toolCallId")?.as_str(),
        _ => Some(title),
    }
}

/// An update of version 2.
pub(super) async fn updated(client: &Client, session: &str, update: &Value) {
    match update["sessionUpdate"].as_str() {
        Some("state_update") => {
            // V2-35: a state that is not known is not idle.
            let idle = match update["state"].as_str() {
                Some("idle") => true,
                Some("running" | "requires_action") => false,
                _ => client.is("V2-35"),
            };
            if let Some(session) = client.state().sessions.get_mut(session).filter(|_| idle) {
                session.idles += 1;
            }
            client.idle.notify_waiters();
        }
        Some("tool_call_update") if client.acts("cancel_tool") => {
            // V2-30: only what can be cancelled.
            let able = update["capabilities"]["cancel"].is_object();
            if able || client.is("V2-30") {
                let params = json!({ "sessionId": session, "toolCallId": update["toolCallId"] });
                client.ask("tool_call/cancel", params).await;
            }
        }
        _ => {}
    }
}
