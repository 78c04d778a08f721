//! MCP over the stdin and stdout of a program: one message per line.

use std::io;
use std::sync::{Arc, OnceLock};

use attache_conn::process::{ChildStdin, ChildStdout};
use attache_conn::rpc::{Frame, Id};
use attache_conn::{FrameReader, FrameWriter, Link};
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::sync::Mutex;

use super::limits::MESSAGE_BYTES;

/// A transport over a program's standard streams.
pub(super) struct StdioTransport {
    reader: FrameReader,
    writer: Arc<Mutex<FrameWriter>>,
    /// Why reading stopped, if the server violated a limit.
    refused: Arc<OnceLock<String>>,
}

impl StdioTransport {
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin, refused: Arc<OnceLock<String>>) -> Self {
        let (reader, writer) = Link::from_io(stdout, stdin).split();
        StdioTransport {
            reader: reader.with_limit(MESSAGE_BYTES),
            writer: Arc::new(Mutex::new(writer)),
            refused,
        }
    }

    /// Identifies the call of a message that is too long.
    async fn oversize(&mut self) -> Oversize {
        let why = too_long();
        match Frame::parse_head(self.reader.head(), &why) {
            Frame::Response { id: Id::Int(id), .. } => Oversize::Answer(Box::new(failure(id, why))),
            Frame::Malformed(malformed) if malformed.fault == attache_conn::rpc::Fault::BadResponse => {
                Oversize::Unknown
            }
            Frame::Malformed(malformed) => {
                // A request is refused.
                if let Some((id, error)) = malformed.answer
                    && id != Id::Null
                {
                    let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
                    let _ = self.writer.lock().await.send(refusal.as_bytes()).await;
                }
                Oversize::Ignored
            }
            _ => Oversize::Unknown,
        }
    }
}

/// Reads a line. Lines that are not messages are skipped, because some servers print to stdout; but
/// a malformed response fails its call.
fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(message);
    }
    match Frame::parse(line, usize::MAX) {
        Frame::Response { id: Id::Int(id), .. } => Some(failure(id, "the response is malformed".to_owned())),
        _ => None,
    }
}

/// A response with an error.
pub(super) fn failure(id: i64, why: String) -> RxJsonRpcMessage<RoleClient> {
    RxJsonRpcMessage::<RoleClient>::error(ErrorData::internal_error(why, None), Some(RequestId::Number(id)))
}

enum Oversize {
    /// The waiting call gets this instead.
    Answer(Box<RxJsonRpcMessage<RoleClient>>),
    /// No call waits for it.
    Ignored,
    /// A call may wait for it, but it is unknown which.
    Unknown,
}

/// The error of a call whose response is too long.
pub(super) fn too_long() -> String {
    format!("the response is larger than {} MiB", MESSAGE_BYTES >> 20)
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let line = serde_json::to_vec(&item)?;
            writer.lock().await.send(&line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.reader.next().await {
                Ok(Some(line)) => match read(line) {
                    Some(message) => return Some(message),
                    None => continue,
                },
                Ok(None) => return None,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return None,
            }
            match self.oversize().await {
                Oversize::Answer(message) => return Some(*message),
                Oversize::Ignored => {}
                Oversize::Unknown => {
                    let _ = self.refused.set(too_long());
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.close().await
    }
}
