//! One MCP server: reached when it is needed, reached again after it has ended.

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

use super::asked::{Asked, Place};
use super::limits::{CURSOR_BYTES, ERROR_BYTES, LIST_BYTES, LIST_ENTRIES, LIST_PAGES};
use super::{START, link};
use crate::http::Http;
use crate::tools::clip;

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
        let asked = Asked::new(self.name(), self.place.clone());
        let reached =
            tokio::time::timeout(START, link::reach(&self.wanted, &self.cwd, &self.http, asked)).await;
        let (service, link) =
            reached.map_err(|_| format!("it did not answer within {} s", START.as_secs()))??;
        let new = Arc::new(Running { service, link });
        *running = Some(new.clone());
        Ok(new)
    }

    /// Its tools, and whether it has resources.
    pub(super) async fn offers(&self) -> Result<(Listed<Tool>, bool), String> {
        let running = self.running().await?;
        let can = running.service.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let tools = match can.tools {
            Some(_) => {
                let list = async {
                    let mut list = Listed::default();
                    while let Some(page) = list.next_page() {
                        let listed = running.service.list_tools(Some(page)).await?;
                        list.add(listed.tools, listed.next_cursor);
                    }
                    Ok(list)
                };
                limited(START, list).await.map_err(|error| running.explain(error))?
            }
            None => Listed::default(),
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

    pub(super) async fn resources(&self) -> Result<Listed<Resource>, String> {
        let running = self.running().await?;
        let list = async {
            let mut list = Listed::default();
            while let Some(page) = list.next_page() {
                let listed = running.service.list_resources(Some(page)).await?;
                list.add(listed.resources, listed.next_cursor);
            }
            Ok(list)
        };
        limited(START, list).await.map_err(|error| running.explain(error))
    }

    pub(super) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, String> {
        let running = self.running().await?;
        let params = ReadResourceRequestParams::new(uri.to_owned());
        limited(CALL, running.service.read_resource(params)).await.map_err(|error| running.explain(error))
    }
}

/// The entries of a list that is read page by page, until it ends or is more than anybody needs.
pub(super) struct Listed<T> {
    pub(super) entries: Vec<T>,
    /// Why there are not more, if the list went on.
    pub(super) cut: Option<String>,
    bytes: usize,
    pages: usize,
    /// The cursors so far; the last one leads to the next page.
    cursors: Vec<String>,
    ended: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Listed { entries: Vec::new(), cut: None, bytes: 0, pages: 0, cursors: Vec::new(), ended: false }
    }
}

impl<T: Serialize> Listed<T> {
    /// What to ask for next, if there is more to come.
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
                self.cut("pages that lead nowhere".to_owned());
            }
            Some(next) => self.cursors.push(next),
        }
    }

    fn cut(&mut self, why: String) {
        self.cut = Some(format!("its list has {why}; the rest is left out"));
        self.ended = true;
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
            Failure::Service(ServiceError::McpError(error)) => clip(&error.message, ERROR_BYTES).0.to_owned(),
            Failure::Service(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                format!("it has ended{}; the next call tries to reach it again", self.link.cause())
            }
            Failure::Service(error) => clip(&error.to_string(), ERROR_BYTES).0.to_owned(),
        }
    }
}
