//! Bytes that go from one connection to another.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

const BUFFER_BYTES: usize = 16 * 1024;

/// Notices when nothing happens in any direction.
#[derive(Debug)]
pub(super) struct Idle {
    limit: Duration,
    progress: AtomicU64,
}

impl Idle {
    pub(super) fn new(limit: Duration) -> Self {
        Idle { limit, progress: AtomicU64::new(0) }
    }

    /// Waits for one read or write. It fails if neither this one nor any other makes progress for
    /// too long.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut work = pin!(work);
        let mut seen = self.progress.load(Ordering::Relaxed);
        loop {
            match tokio::time::timeout(self.limit, &mut work).await {
                Ok(result) => {
                    self.progress.fetch_add(1, Ordering::Relaxed);
                    return result;
                }
                Err(_) => {
                    let now = self.progress.load(Ordering::Relaxed);
                    if now == seen {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    seen = now;
                }
            }
        }
    }
}

/// Copies until the end, and ends the other side then.
pub(super) async fn copy_all(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    idle: &Idle,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match idle.watch(from.read(&mut buffer)).await? {
            0 => return to.shutdown().await,
            count => idle.watch(to.write_all(&buffer[..count])).await?,
        }
    }
}

/// Connects two streams until both directions have ended. `pending` was read from the client
/// before.
pub(super) async fn tunnel(
    mut client: UnixStream,
    pending: Vec<u8>,
    mut server: TcpStream,
    idle: Duration,
) -> io::Result<()> {
    let idle = Idle::new(idle);
    idle.watch(server.write_all(&pending)).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = copy_all(&mut from_client, &mut to_server, &idle);
    let down = copy_all(&mut from_server, &mut to_client, &idle);
    tokio::try_join!(up, down).map(|_| ())
}

/// Waits for a decision, unless the client closes the connection. Data that it sends meanwhile is
/// kept, up to a limit.
pub(super) async fn unless_gone<T>(
    client: &mut UnixStream,
    pending: &mut Vec<u8>,
    most: usize,
    work: impl Future<Output = T>,
) -> io::Result<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return Ok(result),
            count = client.read_buf(pending), if pending.len() < most => {
                if count? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}
