//! One MCP server: connected when it is needed, and again after it has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResult, Resource, Tool,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::elicitation::{ActiveCalls, McpClient};
use super::limits::{CURSOR_BYTES, ERROR_BYTES, LIST_BYTES, LIST_ENTRIES, LIST_PAGES};
use super::{CONNECT_TIMEOUT, connect};
use crate::text::clip;
use attache_http::client::HttpClient;

/// The time limit of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// One server.
pub(super) struct Server {
    config: McpServer,
    cwd: PathBuf,
    http: HttpClient,
    /// The running calls, whose turns can ask the user.
    calls: Arc<ActiveCalls>,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// A connection to a server.
struct Connection {
    service: RunningService<RoleClient, McpClient>,
    remote: connect::Remote,
}

/// Requests all pages of a list.
macro_rules! list_pages {
    ($connection:expr, $method:ident, $entries:ident) => {{
        let list = async {
            let mut list = PagedList::default();
            while let Some(page) = list.next_page() {
                let result = $connection.service.$method(Some(page)).await?;
                list.add(result.$entries, result.next_cursor);
            }
            Ok(list)
        };
        $connection.limited(CONNECT_TIMEOUT, list).await
    }};
}

impl Server {
    pub(super) fn new(config: McpServer, cwd: PathBuf, http: HttpClient) -> Self {
        Server { config, cwd, http, calls: Arc::default(), connection: Mutex::new(None) }
    }

    pub(super) fn name(&self) -> &str {
        self.config.name()
    }

    pub(super) fn calls(&self) -> &Arc<ActiveCalls> {
        &self.calls
    }

    /// The open connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| !open.service.is_closed()) {
            return Ok(open.clone());
        }
        let client = McpClient::new(self.name(), self.calls.clone());
        let connecting = connect::connect(&self.config, &self.cwd, &self.http, client);
        let (service, remote) = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_) => return Err(late(CONNECT_TIMEOUT)),
        };
        Ok(connection.insert(Arc::new(Connection { service, remote })).clone())
    }

    /// Its tools, and whether it has resources.
    pub(super) async fn tools(&self) -> Result<(PagedList<Tool>, bool), String> {
        let connection = self.connection().await?;
        let info = connection.service.peer_info();
        let capabilities = info.map(|info| info.capabilities.clone()).unwrap_or_default();
        let tools = match capabilities.tools {
            Some(_) => list_pages!(connection, list_tools, tools)?,
            None => PagedList::default(),
        };
        Ok((tools, capabilities.resources.is_some()))
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, String> {
        let connection = self.connection().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        connection.limited(CALL_TIMEOUT, connection.service.call_tool(params)).await
    }

    pub(super) async fn resources(&self) -> Result<PagedList<Resource>, String> {
        let connection = self.connection().await?;
        list_pages!(connection, list_resources, resources)
    }

    pub(super) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, String> {
        let connection = self.connection().await?;
        let params = ReadResourceRequestParams::new(uri.to_owned());
        connection.limited(CALL_TIMEOUT, connection.service.read_resource(params)).await
    }
}

impl Connection {
    /// Awaits a call, and explains its failure.
    async fn limited<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, String> {
        let Ok(result) = tokio::time::timeout(limit, call).await else { return Err(late(limit)) };
        result.map_err(|error| match error {
            ServiceError::McpError(error) => clip(&error.message, ERROR_BYTES).0.to_owned(),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                format!("it has ended{}; the next call connects again", self.remote.cause())
            }
            error => clip(&error.to_string(), ERROR_BYTES).0.to_owned(),
        })
    }
}

fn late(limit: Duration) -> String {
    format!("it did not answer within {} s", limit.as_secs())
}

/// The entries of a list that is read page by page, up to the limits.
pub(super) struct PagedList<T> {
    pub(super) entries: Vec<T>,
    /// Why the rest is missing, if the list was cut.
    pub(super) cut: Option<String>,
    bytes: usize,
    pages: usize,
    /// The cursors so far; the last one is the next page's.
    cursors: Vec<String>,
    ended: bool,
}

impl<T> Default for PagedList<T> {
    fn default() -> Self {
        PagedList { entries: Vec::new(), cut: None, bytes: 0, pages: 0, cursors: Vec::new(), ended: false }
    }
}

impl<T: Serialize> PagedList<T> {
    /// The next request, if there are more pages.
    fn next_page(&mut self) -> Option<PaginatedRequestParams> {
        if self.ended {
            return None;
        }
        if self.pages == LIST_PAGES {
            self.cut(format!("more than {LIST_PAGES} pages"));
            return None;
        }
        self.pages += 1;
        Some(PaginatedRequestParams::default().with_cursor(self.cursors.last().cloned()))
    }

    fn add(&mut self, entries: Vec<T>, next: Option<String>) {
        for entry in entries {
            self.bytes += serde_json::to_string(&entry).map_or(0, |json| json.len());
            if self.bytes > LIST_BYTES {
                return self.cut(format!("more than {} KiB", LIST_BYTES >> 10));
            }
            if self.entries.len() == LIST_ENTRIES {
                return self.cut(format!("more than {LIST_ENTRIES} entries"));
            }
            self.entries.push(entry);
        }
        match next {
            None => self.ended = true,
            Some(next) if next.len() > CURSOR_BYTES || self.cursors.contains(&next) => {
                self.cut("a cursor that is invalid or repeated".to_owned());
            }
            Some(next) => self.cursors.push(next),
        }
    }

    fn cut(&mut self, why: String) {
        self.cut = Some(format!("its list has {why}; the rest is left out"));
        self.ended = true;
    }
}
