//! One MCP server: reached when it is needed, reached again after it has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ReadResourceRequestParams, ReadResourceResult, Resource, Tool,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::asked::{Asked, Place};
use super::{START, link};
use crate::http::Http;

/// How long a call may take.
const CALL: Duration = Duration::from_secs(300);

/// One server.
pub(super) struct Server {
    wanted: McpServer,
    cwd: PathBuf,
    http: Result<Http, String>,
    /// Where its questions to the user go while one of its tools runs.
    place: Arc<Place>,
    running: Mutex<Option<Arc<Running>>>,
}

/// A server that was reached.
struct Running {
    service: RunningService<RoleClient, Asked>,
    link: link::Ends,
}

impl Server {
    pub(super) fn new(wanted: McpServer, cwd: PathBuf, http: Result<Http, String>) -> Self {
        Server { wanted, cwd, http, place: Arc::default(), running: Mutex::new(None) }
    }

    pub(super) fn name(&self) -> &str {
        self.wanted.name()
    }

    pub(super) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// The server, reached if it is not.
    async fn running(&self) -> Result<Arc<Running>, String> {
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| !running.service.is_closed()) {
            return Ok(running.clone());
        }
        let asked = Asked { place: self.place.clone(), server: self.name().to_owned() };
        let reached =
            tokio::time::timeout(START, link::reach(&self.wanted, &self.cwd, &self.http, asked)).await;
        let (service, link) =
            reached.map_err(|_| format!("it did not answer within {} s", START.as_secs()))??;
        let new = Arc::new(Running { service, link });
        *running = Some(new.clone());
        Ok(new)
    }

    /// Its tools, and its resources if it has any.
    pub(super) async fn offers(&self) -> Result<(Vec<Tool>, bool), String> {
        let running = self.running().await?;
        let can = running.service.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let tools = match can.tools {
            Some(_) => limited(START, running.service.list_all_tools())
                .await
                .map_err(|error| running.explain(error))?,
            None => Vec::new(),
        };
        Ok((tools, can.resources.is_some()))
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, String> {
        let running = self.running().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        limited(CALL, running.service.call_tool(params)).await.map_err(|error| running.explain(error))
    }

    pub(super) async fn resources(&self) -> Result<Vec<Resource>, String> {
        let running = self.running().await?;
        limited(START, running.service.list_all_resources()).await.map_err(|error| running.explain(error))
    }

    pub(super) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, String> {
        let running = self.running().await?;
        let params = ReadResourceRequestParams::new(uri.to_owned());
        limited(CALL, running.service.read_resource(params)).await.map_err(|error| running.explain(error))
    }
}

/// Why a call came to nothing.
enum Failure {
    Late(Duration),
    Service(ServiceError),
}

async fn limited<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(Failure::Service),
        Err(_) => Err(Failure::Late(limit)),
    }
}

impl Running {
    fn explain(&self, failure: Failure) -> String {
        match failure {
            Failure::Late(limit) => format!("it did not answer within {} s", limit.as_secs()),
            Failure::Service(ServiceError::McpError(error)) => error.message.to_string(),
            Failure::Service(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                format!("it has ended{}; the next call tries to reach it again", self.link.last_words())
            }
            Failure::Service(error) => error.to_string(),
        }
    }
}
