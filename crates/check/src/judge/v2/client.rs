//! Calls of clients: only the methods that the agent offers.

use std::collections::BTreeMap;

use super::items;
use crate::judge::message::text;
use crate::judge::{EventLog, Findings, Message, Watcher};
use crate::role::Role;
use crate::version::Version;

/// Judges the calls of a client.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Whether a tool call or terminal can be cancelled, by session, kind and id.
    cancellable: BTreeMap<(String, &'static str, String), bool>,
}

impl Watcher for Calls {
    fn rules(&self) -> &'static [&'static str] {
        &["AUTH-16", "V2-03", "V2-06", "V2-30", "V2-39"]
    }

    // AUTH-16 has another watcher in version 1.
    fn versions(&self) -> Vec<Version> {
        vec![Version::V2]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((session, kind, update)) = message.update() {
            let (kind, id, ended) = match kind {
                "tool_call_update" => {
                    let status = text(&update["status"]);
                    let ended = matches!(status, "completed" | "failed" | "cancelled");
                    ("tool_call/cancel", &update["toolCallId"], ended)
                }
                "terminal_update" => {
                    ("terminal/cancel", &update["terminalId"], update["exitStatus"].is_object())
                }
                _ => return,
            };
            let entry = self.cancellable.entry((session.to_owned(), kind, text(id).to_owned())).or_default();
            if let Some(capabilities) = update.get("capabilities") {
                *entry = capabilities["cancel"].is_object();
            }
            *entry &= !ended;
            return;
        }
        let Some((method, params)) = message.call(Role::Client) else { return };
        match method {
            "initialize" => {
                let able = params["capabilities"].is_object();
                out.check("V2-03", message, able, || "initialize has no `capabilities`".to_owned());
            }
            // V2-07: an agent without methods of authentication has no logout.
            "auth/logout" => {
                let any = items(&log.initialized["authMethods"]).next().is_some();
                out.check("AUTH-16", message, any, || format!("{method}, and `authMethods` is empty"));
            }
            "tool_call/cancel" | "terminal/cancel" => {
                let (kind, id) = match method {
                    "tool_call/cancel" => ("tool_call/cancel", &params["toolCallId"]),
                    _ => ("terminal/cancel", &params["terminalId"]),
                };
                let key = (text(&params["sessionId"]).to_owned(), kind, text(id).to_owned());
                let can = self.cancellable.get(&key).copied().unwrap_or(false);
                out.check("V2-30", message, can, || format!("{method} for {id}, which cannot be cancelled"));
            }
            "session/new" | "session/resume" if log.can(Role::Agent, "session") => {
                let sse = items(&params["mcpServers"]).any(|server| server["type"] == "sse");
                out.check("V2-39", message, !sse, || "an MCP server of the type sse".to_owned());
                out.pass("V2-06", message);
            }
            _ if method.starts_with("session/") && !log.initialized.is_null() => {
                let can = log.can(Role::Agent, "session");
                out.check("V2-06", message, can, || format!("{method}, and the agent has no sessions"));
            }
            _ => {}
        }
    }
}
