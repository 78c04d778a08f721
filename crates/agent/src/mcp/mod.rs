//! The MCP servers of a session, whose tools become the session's own.
//!
//! Servers are reached while the session already answers; a prompt waits for them, but not longer than [`START`]. One that cannot be
//! reached, or that ends, is told about and survived: its tools fail with the reason, and the next call tries to reach it again.
//!
//! Read `server.rs` (one server), `tool.rs` (what the model sees of it), `asked.rs` (what servers may ask of us), then the ways to reach
//! one: `link.rs`, `lines.rs`, `http.rs`, `sse.rs`. What a server may cost is in `limits.rs`, and `bounded.rs` holds floods back.
//!
//! What never happens here: a server is trusted because of what it says about itself; a key of the agent's environment reaches
//! one; a process outlives its session.

mod asked;
mod bounded;
mod http;
mod limits;
mod lines;
mod link;
mod server;
mod sse;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::McpServer;
use tokio::sync::watch;

use crate::http::Http;
use crate::tools::Tool;
use server::Server;

/// How long a server may take until it can be used.
const START: Duration = Duration::from_secs(30);

/// The servers of a session.
pub(crate) struct Servers {
    ready: watch::Receiver<Option<Found>>,
}

/// What came of reaching the servers.
#[derive(Clone, Default)]
pub(crate) struct Found {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// What to tell the user: which server cannot be used, and why.
    pub(crate) problems: Vec<String>,
}

impl Servers {
    /// Begins to reach them.
    pub(crate) fn reach(wanted: Vec<McpServer>, cwd: PathBuf, http: Result<Http, String>) -> Servers {
        let (done, ready) = watch::channel(wanted.is_empty().then(Found::default));
        if !wanted.is_empty() {
            tokio::spawn(async move {
                let found = tokio::select! {
                    found = reach_all(wanted, cwd, http) => found,
                    // Nobody waits any more: the session has gone.
                    () = done.closed() => return,
                };
                let _ = done.send(Some(found));
            });
        }
        Servers { ready }
    }

    /// Waits until all servers are there, or are known not to come.
    pub(crate) async fn found(&self) -> Found {
        let mut ready = self.ready.clone();
        match ready.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_default(),
            Err(_) => Found::default(),
        }
    }
}

async fn reach_all(wanted: Vec<McpServer>, cwd: PathBuf, http: Result<Http, String>) -> Found {
    let mut found = Found::default();
    let reached: Vec<_> = wanted
        .into_iter()
        .map(|wanted| {
            let server = Arc::new(Server::new(wanted, cwd.clone(), http.clone()));
            tokio::spawn(async move {
                let tools = tool::of(&server).await;
                (server, tools)
            })
        })
        .collect();
    for one in reached {
        match one.await {
            Ok((server, Ok((tools, left_out)))) => {
                found.tools.extend(tools);
                let problem = |why| format!("The MCP server {}: {why}", server.name());
                found.problems.extend(left_out.into_iter().map(problem));
            }
            Ok((server, Err(why))) => {
                found.problems.push(format!("The MCP server {} cannot be used: {why}", server.name()))
            }
            Err(_) => found.problems.push("An MCP server could not be reached.".to_owned()),
        }
    }
    found
}
