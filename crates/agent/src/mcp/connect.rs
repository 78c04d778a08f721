//! Connects to an MCP server, over each of its transports.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use attache::wire::v1::{HttpHeader, McpServer, McpServerStdio};
use attache_conn::process::{Child, ChildGuard, Command};
use attache_host::secrets::withheld_variables;
use rmcp::service::{RoleClient, RunningService, ServiceExt as _};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use super::bounded::Bounded;
use super::elicitation::McpClient;
use super::http::StreamableHttp;
use super::limits::STDERR_LINE_BYTES;
use super::sse::SseTransport;
use super::stdio::StdioTransport;
use crate::text::clip;
use attache_http::client::{HttpClient, check_url};

/// The other end of a connection.
pub(super) enum Remote {
    /// A process, which ends with this; and why reading from it stopped, if it violated a limit.
    Process(ChildGuard, Arc<OnceLock<String>>),
    /// A server that others run.
    Http,
}

impl Remote {
    /// Why a process ended, if known: a violated limit, or the last line of its stderr.
    pub(super) fn cause(&self) -> String {
        match self {
            Remote::Process(guard, refused) => match refused.get() {
                Some(why) => format!(": {why}"),
                None => last_line(&guard.stderr_tail()),
            },
            Remote::Http => String::new(),
        }
    }
}

type Service = RunningService<RoleClient, McpClient>;

/// Connects to a server and initializes it.
pub(super) async fn connect(
    config: &McpServer,
    cwd: &Path,
    http: &HttpClient,
    client: McpClient,
) -> Result<(Service, Remote), String> {
    match config {
        McpServer::Stdio(program) => start(program, cwd, client).await,
        McpServer::Http(server) => {
            check_url(&server.url).map_err(|error| error.to_string())?;
            let http = StreamableHttp::new(http.clone(), headers(&server.headers));
            let config = StreamableHttpClientTransportConfig::with_uri(server.url.clone());
            let transport = StreamableHttpClientTransport::with_client(http, config);
            let service = client.serve(Bounded::new(transport)).await.map_err(|error| error.to_string())?;
            Ok((service, Remote::Http))
        }
        McpServer::Sse(server) => {
            check_url(&server.url).map_err(|error| error.to_string())?;
            let transport = SseTransport::open(http.clone(), &server.url, headers(&server.headers)).await?;
            let service = client.serve(Bounded::new(transport)).await.map_err(|error| error.to_string())?;
            Ok((service, Remote::Http))
        }
        // MCP-08, MCPA-01: the capability is not announced.
        _ => Err("unknown kind of server".to_owned()),
    }
}

/// Every agent can start programs.
// MCP-02
async fn start(program: &McpServerStdio, cwd: &Path, client: McpClient) -> Result<(Service, Remote), String> {
    let mut command = Command::new(&program.command).args(&program.args).current_dir(cwd);
    // The keys in our environment are for models; a server gets only those that the client gives
    // it.
    for name in withheld_variables(&[]) {
        command = command.env_remove(name);
    }
    let command = command.envs(program.env.iter().map(|variable| (&variable.name, &variable.value)));
    let Child { stdin, stdout, guard } = command.spawn().map_err(|error| error.to_string())?;
    let refused = Arc::default();
    let transport = StdioTransport::new(stdout, stdin, Arc::clone(&refused));
    match client.serve(Bounded::new(transport)).await {
        Ok(service) => Ok((service, Remote::Process(guard, refused))),
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
