//! The sending half of a client: a queue with a bound in bytes, and the task that writes it.

use std::sync::Arc;
use std::time::Duration;

use attache_conn::FrameWriter;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::debug;

/// Bytes that wait for a client. Those who send more wait; what a session adds meanwhile stays in
/// the journal.
const QUEUED: usize = 1 << 20;
/// Messages that wait for a client.
const MESSAGES: usize = 1024;
/// Bytes of one write.
const BATCH: usize = 256 << 10;

/// The queue to a client. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// The client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Outbox {
    /// Starts to write. The task ends when all clones are dropped, or when the client takes nothing
    /// for `stall`.
    pub(crate) fn start(writer: FrameWriter, stall: Duration) -> (Outbox, tokio::task::JoinHandle<()>) {
        let (queue, messages) = mpsc::channel(MESSAGES);
        let room = Arc::new(Semaphore::new(QUEUED));
        (Outbox { queue, room }, tokio::spawn(write(writer, messages, stall)))
    }

    /// Queues complete lines, each with its line feed. Waits for room.
    pub(crate) async fn send(&self, lines: impl Into<Bytes>) -> Result<(), Gone> {
        let lines = lines.into();
        if lines.is_empty() {
            return Ok(());
        }
        let size = lines.len().min(QUEUED) as u32;
        let permit = Arc::clone(&self.room).acquire_many_owned(size).await.map_err(|_| Gone)?;
        self.queue.send((lines, permit)).await.map_err(|_| Gone)
    }
}

async fn write(
    mut writer: FrameWriter,
    mut messages: mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>,
    stall: Duration,
) {
    let mut permits = Vec::new();
    while let Some(first) = messages.recv().await {
        let mut next = Some(first);
        let mut size = 0;
        while let Some((lines, permit)) = next {
            size += lines.len();
            // The writer adds the last line feed.
            writer.feed(lines.strip_suffix(b"\n").unwrap_or(&lines));
            permits.push(permit);
            next = if size < BATCH { messages.try_recv().ok() } else { None };
        }
        match tokio::time::timeout(stall, writer.flush()).await {
            Ok(Ok(())) => permits.clear(),
            Ok(Err(error)) => return debug!(%error, "a client cannot be written to"),
            Err(_) => return debug!("a client does not read and is disconnected"),
        }
    }
    let _ = tokio::time::timeout(stall, writer.close()).await;
}
