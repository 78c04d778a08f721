//! An agent process as the hub sees it: a link with the handshake behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_conn::rpc::{ErrorObject, Frame, Id};
use attache_conn::{FrameReader, FrameWriter, Limits};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tracing::debug;

use crate::message::{self, DEPTH, Outcome};
use crate::options::Options;

/// Bytes of messages that may come before the response of `session/new`.
const PARKED: usize = 1 << 20;
/// Messages and bytes that wait for an agent that does not read.
const QUEUED: usize = 1024;
const QUEUED_BYTES: usize = 64 << 20;

/// The parts of an agent's capabilities that the hub uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Initialized {
    agent_capabilities: Capabilities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Capabilities {
    load_session: bool,
    session_capabilities: SessionCapabilities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SessionCapabilities {
    resume: Option<Box<RawValue>>,
}

/// A connection to an agent that has answered `initialize`.
pub(crate) struct AgentLink {
    reader: FrameReader,
    writer: FrameWriter,
    next_id: i64,
    /// The result of `initialize`.
    pub(crate) initialized: Box<RawValue>,
    /// Elicitation was offered.
    pub(crate) elicitation: bool,
    /// Notifications that came before a response.
    parked: Vec<u8>,
    /// It ended, or cannot be written to.
    pub(crate) is_gone: bool,
}

impl AgentLink {
    /// Starts an agent.
    pub(crate) async fn start(options: &Options, elicitation: bool) -> Result<AgentLink, ErrorObject> {
        let starting = async {
            let link = (options.start)().await.map_err(|error| {
                // The reason may hold paths and stays here.
                tracing::warn!(%error, "the agent cannot be started");
                ErrorObject::internal("the agent cannot be started on the hub")
            })?;
            let (reader, writer) = link.split();
            let reader = reader.with_limit(Limits::for_client().frame);
            let initialized = RawValue::NULL.to_owned();
            let mut agent = AgentLink {
                reader,
                writer,
                next_id: 0,
                initialized,
                elicitation,
                parked: Vec::new(),
                is_gone: false,
            };
            let has = options.provides();
            let mut capabilities =
                json!({"fs": {"readTextFile": has, "writeTextFile": has}, "terminal": has});
            if elicitation && let Some(capabilities) = capabilities.as_object_mut() {
                capabilities.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}));
            }
            let (name, version) = &options.info;
            let params = json!({
                "protocolVersion": 1,
                "clientCapabilities": capabilities,
                "clientInfo": {"name": name, "version": version},
            });
            agent.initialized = agent.call("initialize", &message::raw(&params)).await?;
            Ok(agent)
        };
        match tokio::time::timeout(options.start_timeout, starting).await {
            Ok(started) => started,
            Err(_) => Err(ErrorObject::internal("the agent took too long to start")),
        }
    }

    /// Sends a request and waits for its response. Notifications that come before it are kept,
    /// requests are refused.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, ErrorObject> {
        self.is_gone = true;
        let (outcome, is_gone) = match self.exchange(method, params).await {
            Ok(outcome) => (outcome, false),
            Err(gone) => (Err(gone), true),
        };
        self.is_gone = is_gone;
        outcome
    }

    /// Sends a request. The outer error is the end of the agent.
    async fn exchange(
        &mut self,
        method: &str,
        params: &RawValue,
    ) -> Result<Result<Box<RawValue>, ErrorObject>, ErrorObject> {
        let gone = || message::interrupted("the agent has ended");
        let own = Id::Int(self.next_id);
        self.next_id += 1;
        self.writer.feed(message::request(&own, method, params).trim_ascii_end());
        self.writer.flush().await.map_err(|_| gone())?;
        loop {
            let line = match self.reader.next().await {
                Ok(Some(line)) => line,
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => continue,
                _ => return Err(gone()),
            };
            match Frame::parse(line, DEPTH) {
                Frame::Response { id, outcome } if id == own => return Ok(outcome.map(ToOwned::to_owned)),
                Frame::Request { id, method, .. } => {
                    let refusal = Outcome::error(&ErrorObject::method_not_found(&method));
                    let answer = message::response(&id, &refusal);
                    self.writer.feed(answer.trim_ascii_end());
                    self.writer.flush().await.map_err(|_| gone())?;
                }
                Frame::Notification { .. } if self.parked.len() + line.len() < PARKED => {
                    self.parked.extend_from_slice(line);
                    self.parked.push(b'\n');
                }
                _ => debug!("a line of the agent was skipped"),
            }
        }
    }

    /// Takes up a stored session again. What the agent replays is dropped, because the journal has
    /// it.
    pub(crate) async fn reopen(&mut self, session: &str, params: &RawValue) -> Result<(), ErrorObject> {
        let capabilities: Initialized = serde_json::from_str(self.initialized.get()).unwrap_or_default();
        let capabilities = capabilities.agent_capabilities;
        let method = match (capabilities.session_capabilities.resume, capabilities.load_session) {
            (Some(_), _) => "session/resume",
            (None, true) => "session/load",
            (None, false) => {
                return Err(ErrorObject::internal("the agent has ended and cannot resume sessions"));
            }
        };
        let mut params: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(params.get()).unwrap_or_default();
        params.insert("sessionId".to_owned(), json!(session));
        params.remove("_meta");
        let reopened = self.call(method, &message::raw(&params)).await;
        self.parked.clear();
        reopened.map(|_| ())
    }

    /// Its process, if it is one of this machine.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.reader.child().map(|child| child.pid())
    }

    /// Splits it for a session. The lines that were kept come first.
    pub(crate) fn into_session(self) -> (FrameReader, AgentWriter, Vec<u8>, i64) {
        (self.reader, AgentWriter::start(self.writer), self.parked, self.next_id)
    }

    /// Ends the process.
    pub(crate) async fn shut_down(self) {
        drop(self.writer);
        end(self.reader).await;
    }
}

/// Ends an agent whose input is closed.
pub(crate) async fn end(mut reader: FrameReader) {
    if let Some(child) = reader.take_child() {
        drop(reader);
        child.shutdown().await;
    }
}

/// The sending half of an agent. Its task writes, so that a session that reads never waits for an
/// agent that does not.
#[derive(Clone, Debug)]
pub(crate) struct AgentWriter {
    queue: mpsc::Sender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
}

/// The agent does not read.
#[derive(Debug)]
pub(crate) struct Stuck;

impl AgentWriter {
    fn start(mut writer: FrameWriter) -> AgentWriter {
        let (queue, mut lines) = mpsc::channel::<Vec<u8>>(QUEUED);
        let queued = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&queued);
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                writer.feed(line.trim_ascii_end());
                counter.fetch_sub(line.len(), Ordering::Relaxed);
                if writer.flush().await.is_err() {
                    return;
                }
            }
            let _ = writer.close().await;
        });
        AgentWriter { queue, queued }
    }

    /// Queues a line when there is room. For those who may wait.
    #[cfg(unix)]
    pub(crate) async fn send_later(&self, line: Vec<u8>) {
        self.queued.fetch_add(line.len(), Ordering::Relaxed);
        let _ = self.queue.send(line).await;
    }

    /// Queues a line.
    pub(crate) fn send(&self, line: Vec<u8>) -> Result<(), Stuck> {
        let size = line.len();
        if self.queued.fetch_add(size, Ordering::Relaxed) + size > QUEUED_BYTES {
            return Err(Stuck);
        }
        match self.queue.try_send(line) {
            Err(mpsc::error::TrySendError::Full(_)) => Err(Stuck),
            // Its end is seen by the reader.
            _ => Ok(()),
        }
    }
}
