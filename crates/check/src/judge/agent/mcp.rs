//! MCP servers over the connection.

use std::collections::BTreeSet;

use super::super::{EventLog, Findings, Kind, Message, Watcher};
use super::{is_text, items};
use crate::Role;

// MCPA-03, MCPA-04
#[derive(Default)]
pub(super) struct Servers {
    /// Servers that the client named.
    servers: BTreeSet<String>,
    /// Connections that the client made.
    connections: BTreeSet<String>,
}

impl Watcher for Servers {
    fn rules(&self) -> &'static [&'static str] {
        &["MCPA-03", "MCPA-04"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((_, result)) = log.result_of(message, "mcp/connect") {
            self.connections.extend(result["connectionId"].as_str().map(str::to_owned));
        }
        let Kind::Request { method, params, .. } = &message.kind else { return };
        match message.from {
            Role::Client if method.starts_with("session/") => {
                let acp = items(&params["mcpServers"]).filter(|server| server["type"] == "acp");
                self.servers.extend(acp.filter_map(|server| server["serverId"].as_str()).map(str::to_owned));
            }
            Role::Agent if method == "mcp/message" => {
                if let Some(connection) = params.get("connectionId") {
                    let known = connection.as_str().is_some_and(|id| self.connections.contains(id));
                    out.check("MCPA-03", message, known, || {
                        format!("no mcp/connect gave the connection {connection}")
                    });
                } else {
                    let server = params["serverId"].as_str().is_some_and(|id| self.servers.contains(id));
                    let whole = server && is_text(&params["requestId"]);
                    out.check("MCPA-04", message, whole, || {
                        "`serverId` of a server that the client named and a `requestId` are needed".to_owned()
                    });
                }
            }
            _ => {}
        }
    }
}
