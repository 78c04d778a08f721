//! MCP servers behind the connection.

use std::collections::BTreeSet;

use super::super::{Book, Findings, Kind, Said, Watcher};
use super::{is_text, items};
use crate::Role;

/// MCPA-03, MCPA-04.
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

    fn see(&mut self, _: &Book, said: &Said<'_>, out: &mut Findings) {
        match said.kind {
            Kind::Request { method, params, .. }
                if said.from == Role::Client && method.starts_with("session/") =>
            {
                let acp = items(&params["mcpServers"]).filter(|server| server["type"] == "acp");
                self.servers.extend(acp.filter_map(|server| server["serverId"].as_str()).map(str::to_owned));
            }
            Kind::Answer { to: Some(asked), outcome: Ok(result), .. } if asked.method == "mcp/connect" => {
                self.connections.extend(result["connectionId"].as_str().map(str::to_owned));
            }
            Kind::Request { method: "mcp/message", params, .. } if said.from == Role::Agent => {
                if let Some(connection) = params.get("connectionId") {
                    let known = connection.as_str().is_some_and(|id| self.connections.contains(id));
                    out.check("MCPA-03", said, known, || {
                        format!("no mcp/connect gave the connection {connection}")
                    });
                } else {
                    let server = params["serverId"].as_str().is_some_and(|id| self.servers.contains(id));
                    let whole = server && is_text(&params["requestId"]);
                    out.check("MCPA-04", said, whole, || {
                        "`serverId` of a server that the client named and a `requestId` are needed".to_owned()
                    });
                }
            }
            _ => {}
        }
    }
}
