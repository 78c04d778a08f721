//! The MCP servers of a session, whose tools become the session's own.
//!
//! Servers are connected in the background; the first prompt waits for them, at most
//! [`CONNECT_TIMEOUT`]. A server that fails or ends is reported: its tools fail with the reason,
//! and the next call connects again.
//!
//! Read `server.rs` (one server), `tool.rs` (its tools), `elicitation.rs` (its questions to the
//! user), then the transports: `connect.rs`, `stdio.rs`, `http.rs`, `sse.rs`. `limits.rs` bounds
//! all that a server sends, and `bounded.rs` its requests.
//!
//! Invariants: no server is trusted because of its own description; no key of the agent's
//! environment reaches one; no process outlives its session.

mod bounded;
mod connect;
mod elicitation;
mod http;
mod limits;
mod server;
mod sse;
mod stdio;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::McpServer;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::tools::AnyTool;
use attache_http::client::HttpClient;
use server::Server;

/// The time limit for a connection and its list of tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The servers of a session.
pub(crate) struct Servers {
    ready: watch::Receiver<Option<ServerTools>>,
}

/// The tools of all servers.
#[derive(Clone, Default)]
pub(crate) struct ServerTools {
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    /// Messages for the user: which server cannot be used, and why.
    pub(crate) problems: Vec<String>,
}

impl Servers {
    /// Connects to servers in the background.
    pub(crate) fn connect(configs: Vec<McpServer>, cwd: PathBuf, http: HttpClient) -> Servers {
        let (done, ready) = watch::channel(configs.is_empty().then(ServerTools::default));
        if !configs.is_empty() {
            tokio::spawn(async move {
                let found = tokio::select! {
                    found = connect_all(configs, cwd, http) => found,
                    // The session was closed.
                    () = done.closed() => return,
                };
                let _ = done.send(Some(found));
            });
        }
        Servers { ready }
    }

    /// Waits until every server is connected or has failed.
    pub(crate) async fn ready(&self) -> ServerTools {
        let mut ready = self.ready.clone();
        match ready.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_default(),
            Err(_) => ServerTools::default(),
        }
    }
}

async fn connect_all(configs: Vec<McpServer>, cwd: PathBuf, http: HttpClient) -> ServerTools {
    let mut found = ServerTools::default();
    let tasks: Vec<_> = configs
        .into_iter()
        .map(|config| {
            let server = Arc::new(Server::new(config, cwd.clone(), http.clone()));
            let span = tracing::info_span!("mcp_server", server = server.name());
            let connect = async move {
                let tools = tool::of(&server).await;
                if let Err(error) = &tools {
                    tracing::warn!(%error, "the server cannot be used");
                }
                (server, tools)
            };
            tokio::spawn(connect.instrument(span))
        })
        .collect();
    for task in tasks {
        match task.await {
            Ok((server, Ok((tools, left_out)))) => {
                found.tools.extend(tools);
                let problem = |why| format!("The MCP server {}: {why}", server.name());
                found.problems.extend(left_out.into_iter().map(problem));
            }
            Ok((server, Err(why))) => {
                found.problems.push(format!("The MCP server {} cannot be used: {why}", server.name()))
            }
            Err(_) => found.problems.push("An MCP server cannot be used.".to_owned()),
        }
    }
    found
}
