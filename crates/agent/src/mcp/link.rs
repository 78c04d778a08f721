//! The ways to an MCP server.

use std::path::Path;

use attache::wire::v1::{HttpHeader, McpServer, McpServerStdio};
use attache_conn::process::{Child, ChildGuard, Command};
use attache_host::secrets::withheld_variables;
use rmcp::service::{RoleClient, RunningService, ServiceExt as _};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use super::asked::Asked;
use super::http::Streamable;
use super::sse::Sse;
use crate::http::{Http, check_url};

/// What keeps a server's other end alive.
pub(super) enum Ends {
    /// A process, which ends with this.
    Process(ChildGuard),
    /// Nothing of ours.
    Elsewhere,
}

impl Ends {
    /// What a process said last, for an error.
    pub(super) fn last_words(&self) -> String {
        match self {
            Ends::Process(guard) => last_line(&guard.stderr_tail()),
            Ends::Elsewhere => String::new(),
        }
    }
}

type Service = RunningService<RoleClient, Asked>;

/// Reaches a server and greets it.
pub(super) async fn reach(
    wanted: &McpServer,
    cwd: &Path,
    http: &Result<Http, String>,
    asked: Asked,
) -> Result<(Service, Ends), String> {
    match wanted {
        McpServer::Stdio(program) => start(program, cwd, asked).await,
        McpServer::Http(server) => {
            check_url(&server.url).map_err(|error| error.to_string())?;
            let client = Streamable::new(http.clone()?, headers(&server.headers));
            let config = StreamableHttpClientTransportConfig::with_uri(server.url.clone());
            let transport = StreamableHttpClientTransport::with_client(client, config);
            let service = asked.serve(transport).await.map_err(|error| error.to_string())?;
            Ok((service, Ends::Elsewhere))
        }
        McpServer::Sse(server) => {
            check_url(&server.url).map_err(|error| error.to_string())?;
            let transport = Sse::open(http.clone()?, &server.url, headers(&server.headers)).await?;
            let service = asked.serve(transport).await.map_err(|error| error.to_string())?;
            Ok((service, Ends::Elsewhere))
        }
        // MCP-08, MCPA-01: the capability is not offered.
        _ => Err("this way to reach a server is not known here".to_owned()),
    }
}

/// MCP-02: every agent can start programs.
async fn start(program: &McpServerStdio, cwd: &Path, asked: Asked) -> Result<(Service, Ends), String> {
    let mut command = Command::new(&program.command).args(&program.args).current_dir(cwd);
    // The keys of our own environment are for models; a server gets those that it is given.
    for name in withheld_variables(&[]) {
        command = command.env_remove(name);
    }
    let command = command.envs(program.env.iter().map(|variable| (&variable.name, &variable.value)));
    let Child { stdin, stdout, guard } = command.spawn().map_err(|error| error.to_string())?;
    match asked.serve((stdout, stdin)).await {
        Ok(service) => Ok((service, Ends::Process(guard))),
        Err(error) => {
            guard.kill();
            guard.wait().await;
            Err(format!("{error}{}", last_line(&guard.stderr_tail())))
        }
    }
}

fn headers(headers: &[HttpHeader]) -> Vec<(String, String)> {
    headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect()
}

fn last_line(tail: &str) -> String {
    tail.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!("; its last words: {}", line.trim()))
        .unwrap_or_default()
}
