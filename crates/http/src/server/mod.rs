//! A server for clients over WebSocket and Streamable HTTP, on one endpoint.
//!
//! [`Server::bind`] listens; [`Server::accept`] returns each client as a [`Link`]. It works with
//! HTTP/1.1 and HTTP/2, with or without TLS. Requests are checked in this order: path, `Host`,
//! `Origin`, token, connection id, session id.
//!
//! Reading order: `listen.rs` (sockets), `router.rs` (requests become responses), `body.rs`,
//! `connection.rs` (a client over Streamable HTTP), `streams.rs` (which stream a message takes),
//! `sse.rs` (bodies), `access.rs` (tokens, origins, hosts), `registry.rs`, `usage.rs` and
//! `meter.rs` (limits).

mod access;
mod body;
mod connection;
#[cfg(fuzzing)]
pub mod fuzzing;
mod listen;
mod meter;
mod options;
mod peer_user;
mod registry;
mod response;
mod router;
mod scope;
mod sse;
mod streams;
mod tls;
mod token_file;
mod upgrade;
mod usage;

pub use access::{Access, Authenticate, Identity, Tokens};
pub use options::{Limits, Metrics, Options};
#[cfg(feature = "self-signed")]
pub use tls::SelfSigned;
pub use tls::Tls;
pub use token_file::TokenFile;

use crate::Transport;
use crate::ws::Closer;
use attache_conn::{Link, Listener};
use listen::Shared;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::ToSocketAddrs;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A listening server. Dropping it ends its sockets; links that were accepted over WebSocket live
/// on.
///
/// ```
/// use attache_http::server::{Options, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let mut server = Server::bind("127.0.0.1:0", Options::default()).await?;
/// println!("clients connect to {}", server.url());
/// # if false {
/// let client = server.accept().await?;
/// # drop(client.link);
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    accepted: mpsc::Receiver<Accepted>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// A client of a [`Server`].
///
/// Example: [`Server`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted {
    /// Its connection. Over WebSocket, its sessions and requests are counted while it is opened or
    /// bridged, not after [`Link::split`].
    pub link: Link,
    /// The part of the path after that of the endpoint: `NAME` for `/acp/NAME`.
    pub name: Option<String>,
    /// The owner of its token.
    pub identity: Option<Identity>,
    /// Its address, or that of the proxy before it.
    pub remote: SocketAddr,
    /// How it is connected.
    pub transport: Transport,
    /// Closes its WebSocket with a status; `None` over Streamable HTTP.
    pub closer: Option<Closer>,
}

impl Server {
    /// Listens on an address; port 0 lets the system choose.
    ///
    /// # Errors
    /// The address cannot be used, or it is not a loopback address and the options have no token.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Server> {
        Server::listen(tokio::net::TcpListener::bind(address).await?, options)
    }

    /// Listens on a socket that exists already, such as one of a service manager. Must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// The socket cannot be used, or its address is not a loopback address and the options have no
    /// token.
    pub fn from_listener(listener: std::net::TcpListener, options: Options) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        Server::listen(tokio::net::TcpListener::from_std(listener)?, options)
    }

    fn listen(listener: tokio::net::TcpListener, options: Options) -> io::Result<Server> {
        let address = listener.local_addr()?;
        options.validate(address)?;
        let (sender, accepted) = mpsc::channel(64);
        let shared = Arc::new(Shared::new(options, address, sender));
        let task = tokio::spawn(listen::run(Arc::clone(&shared), listener));
        Ok(Server { shared, accepted, address, task })
    }

    /// Returns the address with the chosen port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL for clients.
    pub fn url(&self) -> String {
        let scheme = if self.shared.options.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.address, self.shared.options.path)
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// The server is over.
    pub async fn accept(&mut self) -> io::Result<Accepted> {
        self.accepted.recv().await.ok_or_else(|| io::Error::other("the server has ended"))
    }

    /// Refuses new clients from now on, with status 503.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Refuses new clients and ends those there are: WebSockets with status 1012, streams of events
    /// after their last message.
    pub fn shut_down(&self) {
        self.drain();
        self.shared.connections.close_sockets(registry::status::RESTART, "the server restarts");
        self.shared.connections.close();
    }
}

impl Listener for Server {
    async fn accept(&mut self) -> io::Result<Link> {
        Server::accept(self).await.map(|accepted| accepted.link)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.connections.close();
    }
}
