//! Peers in this process, for tests: no time passes and nothing is on disk.

use std::future::Future;
use std::io;
use std::pin::Pin;

use attache_conn::Link;

use super::{BoxFuture, Connection, StartOptions, Target};

type Serve = Box<dyn Fn(Link, &StartOptions) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Each scenario gets a new peer on a link in memory.
pub struct Memory(Serve);

impl Memory {
    /// `serve` is the peer; it is spawned on the runtime.
    pub fn new<F>(serve: impl Fn(Link, &StartOptions) -> F + 'static) -> Memory
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Memory(Box::new(move |link, fresh| Box::pin(serve(link, fresh))))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

impl Target for Memory {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            // One pair per direction: each can be closed alone.
            let (our_writer, their_reader) = tokio::io::duplex(64 << 10);
            let (their_writer, our_reader) = tokio::io::duplex(64 << 10);
            tokio::spawn((self.0)(Link::from_io(their_reader, their_writer), fresh));
            Ok(Connection::from_io(our_reader, our_writer))
        })
    }

    fn is_real(&self) -> bool {
        false
    }
}
