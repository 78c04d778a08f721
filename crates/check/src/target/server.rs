//! A remote agent.

use std::io;
use std::time::Duration;

use attache_conn::Link;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::{BoxFuture, Connection, StartOptions, Target};
use crate::remote::Endpoint;
use crate::transport::Transport;

/// How long a server that is down may take to be up again.
const READY: Duration = Duration::from_secs(5);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A server under test. Each ordinary scenario has a connection of its own.
#[derive(Clone, Debug)]
pub struct Server {
    /// The server.
    pub endpoint: Endpoint,
    /// The transport of ordinary scenarios.
    pub transport: Transport,
}

impl Target for Server {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            if fresh.transport.is_some() {
                self.wait_ready().await;
                return Ok(Connection::from_io(tokio::io::empty(), tokio::io::sink()));
            }
            Ok(connection(self.endpoint.link(self.transport).await?))
        })
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn command(&self) -> Vec<String> {
        vec![self.endpoint.url().to_owned()]
    }
}

impl Server {
    /// Waits until the server accepts connections: one that a scenario brought down may be started
    /// again.
    async fn wait_ready(&self) {
        let ready = async {
            while self.endpoint.open().await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        // The scenario finds out by itself that nothing listens.
        let _ = tokio::time::timeout(READY, ready).await;
    }
}

/// A link as two streams of lines.
fn connection(link: Link) -> Connection {
    let (our_writer, lines_out) = tokio::io::duplex(64 << 10);
    let (mut lines_in, our_reader) = tokio::io::duplex(64 << 10);
    let (mut reader, mut writer) = link.split();
    tokio::spawn(async move {
        while let Ok(Some(line)) = reader.next().await {
            let line = [line, b"\n"].concat();
            if lines_in.write_all(&line).await.is_err() {
                break;
            }
        }
    });
    tokio::spawn(async move {
        let mut lines = BufReader::new(lines_out);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line).await, Ok(1..)) {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if writer.send(&line).await.is_err() {
                break;
            }
            line.clear();
        }
        // A peer that is gone needs no farewell.
        let _ = writer.close().await;
    });
    Connection::from_io(our_reader, our_writer)
}
