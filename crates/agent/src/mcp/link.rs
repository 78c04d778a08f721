//! The ways to an MCP server.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use attache::wire::v1::{HttpHeader, McpServer, McpServerStdio};
use attache_conn::process::{Child, ChildGuard, Command};
use attache_host::secrets::withheld_variables;
use rmcp::service::{RoleClient, RunningService, ServiceExt as _};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use super::asked::Asked;
use super::bounded::Bounded;
use super::http::Streamable;
use super::limits::STDERR_LINE_BYTES;
use super::lines::Lines;
use super::sse::Sse;
use crate::http::{Http, check_url};
use crate::tools::clip;

/// What keeps a server's other end alive.
pub(super) enum Ends {
    /// A process, which ends with this; and why we stopped to listen to it, if it was for something that it sent.
    Process(ChildGuard, Arc<OnceLock<String>>),
    /// Nothing of ours.
    Elsewhere,
}

impl Ends {
    /// Why a process ended, as far as that is known: what it sent, or the last line of its stderr.
    pub(super) fn cause(&self) -> String {
        match self {
            Ends::Process(guard, refused) => match refused.get() {
                Some(why) => format!(": {why}"),
                None => last_line(&guard.stderr_tail()),
            },
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
            let service = asked.serve(Bounded::new(transport)).await.map_err(|error| error.to_string())?;
            Ok((service, Ends::Elsewhere))
        }
        McpServer::Sse(server) => {
            check_url(&server.url).map_err(|error| error.to_string())?;
            let transport = Sse::open(http.clone()?, &server.url, headers(&server.headers)).await?;
            let service = asked.serve(Bounded::new(transport)).await.map_err(|error| error.to_string())?;
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
    let refused = Arc::default();
    let lines = Lines::new(stdout, stdin, Arc::clone(&refused));
    match asked.serve(Bounded::new(lines)).await {
        Ok(service) => Ok((service, Ends::Process(guard, refused))),
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
        .map(|line| format!("; stderr: {}", clip(line.trim(), STDERR_LINE_BYTES).0))
        .unwrap_or_default()
}
