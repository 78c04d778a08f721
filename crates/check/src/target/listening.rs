//! A client as a program that connects to a URL.
//!
//! Its command line has the placeholders of [`Program`](super::Program), with `{url}` in place of
//! `{agent}`. The URL is in the variable `ATTACHE_URL` too.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use super::program::{Client, lacks, start};
use super::{Action, BoxFuture, Connection, Need, StartOptions, Target};
use crate::remote::{Behaviour, Listener};
use crate::transport::Transport;

/// A client under test that connects to a server.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The command line with placeholders.
    pub command: Vec<String>,
    /// Actions other than one prompt.
    pub actions: BTreeMap<String, Action>,
    /// The transport of the server.
    pub transport: Transport,
}

impl Target for Listening {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let listener = Listener::bind(self.transport, Behaviour::of(fresh.scenario)).await?;
            let url = url(self.transport, &listener);
            let guard = Arc::new(start(&self.command, &self.actions, fresh, &[], Some(&url))?);
            // A client need not say farewell.
            let (watched, end) = (Arc::clone(&guard), listener.end);
            tokio::spawn(async move {
                watched.wait().await;
                end.end();
            });
            Ok(Connection {
                reader: Box::new(listener.reader),
                writer: Box::new(listener.writer),
                process: Box::new(Client::new(guard, &self.actions, None)),
                observations: listener.observations,
            })
        })
    }

    fn lacks(&self, need: &Need) -> Option<String> {
        lacks(&self.actions, need)
    }

    fn command(&self) -> Vec<String> {
        self.command.clone()
    }
}

type Start = Box<dyn Fn(String, &StartOptions) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Clients in this process that connect to a URL, for tests.
pub struct Connecting {
    transport: Transport,
    start: Start,
}

impl Connecting {
    /// `start` is the client; it gets the URL and is spawned on the runtime.
    pub fn new<F>(transport: Transport, start: impl Fn(String, &StartOptions) -> F + 'static) -> Connecting
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Connecting { transport, start: Box::new(move |url, fresh| Box::pin(start(url, fresh))) }
    }
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connecting").field("transport", &self.transport).finish_non_exhaustive()
    }
}

impl Target for Connecting {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let listener = Listener::bind(self.transport, Behaviour::of(fresh.scenario)).await?;
            let (client, end) = ((self.start)(url(self.transport, &listener), fresh), listener.end);
            tokio::spawn(async move {
                client.await;
                end.end();
            });
            let opened = Connection::from_io(listener.reader, listener.writer);
            Ok(Connection { observations: listener.observations, ..opened })
        })
    }

    fn is_real(&self) -> bool {
        false
    }
}

/// The URL of a listener.
fn url(transport: Transport, listener: &Listener) -> String {
    let scheme = if transport == Transport::WebSocket { "ws" } else { "http" };
    format!("{scheme}://{}/acp", listener.address)
}
