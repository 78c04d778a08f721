//! Settings of a server.

use super::access::Access;
use super::tls::Tls;
use crate::ws;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`Server`](super::Server).
///
/// ```
/// use attache_http::server::{Access, Options, Tokens};
///
/// let (token, entry) = Tokens::generate("laptop")?;
/// let options = Options {
///     access: Access::tokens(Tokens::parse(&entry)?),
///     origins: vec!["https://app.example.com".to_owned()],
///     ..Options::default()
/// };
/// # drop((token, options));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The path of the endpoint.
    // HTTP-01
    pub path: String,
    /// Names below the path that are served as well, as `PATH/NAME`.
    pub names: Vec<String>,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<Tls>,
    /// Who may connect.
    pub access: Access,
    /// On a loopback address, processes of other users are refused. Works on Linux only.
    pub same_user: bool,
    /// Another address than loopback is allowed without TLS, because a proxy in front has it.
    pub behind_proxy: bool,
    /// Origins of web pages that may connect, such as `https://example.com`. Pages of this server
    /// may always.
    pub origins: Vec<String>,
    /// Names of this server in `Host` headers. On a loopback address its own names are always
    /// accepted, and all others refused.
    pub hosts: Vec<String>,
    /// Limits.
    pub limits: Limits,
    /// Settings of WebSockets.
    pub ws: ws::Settings,
    /// The text of `/metrics`, which clients on this machine may read.
    pub metrics: Option<Metrics>,
}

/// A source of metrics in the text format of Prometheus.
///
/// ```
/// use attache_http::server::{Metrics, Options};
///
/// let options = Options { metrics: Some(Metrics::new(|| "up 1\n".to_owned())), ..Options::default() };
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Metrics(pub(super) Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// Metrics that a function returns.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Metrics {
        Metrics(Arc::new(text))
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            path: "/acp".to_owned(),
            names: Vec::new(),
            tls: None,
            access: Access::Open,
            same_user: false,
            behind_proxy: false,
            origins: Vec::new(),
            hosts: Vec::new(),
            limits: Limits::default(),
            ws: ws::Settings::default(),
            metrics: None,
        }
    }
}

impl Options {
    /// Refuses a server that would be open by accident.
    pub(super) fn validate(&self, address: SocketAddr) -> io::Result<()> {
        let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if address.ip().is_loopback() {
            return Ok(());
        }
        if matches!(self.access, Access::Open) {
            return refuse("an address that others can reach needs a token");
        }
        if self.tls.is_none() && !self.behind_proxy {
            return refuse("an address that others can reach needs TLS, or a proxy in front that has it");
        }
        Ok(())
    }
}

/// Limits of a [`Server`](super::Server).
///
/// ```
/// use attache_http::server::{Limits, Options};
///
/// let limits = Limits { connections: 100, ..Limits::default() };
/// let options = Options { limits, ..Options::default() };
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients at once; more get 503.
    pub connections: usize,
    /// Clients of one token at once; more get 429.
    pub connections_per_identity: usize,
    /// The longest message in bytes; longer POST bodies get 413, longer WebSocket messages 1009.
    pub message: usize,
    /// Bytes of messages of all clients that are being received or wait for their agents, except 64
    /// KiB for each WebSocket. One more is refused with 503, and a WebSocket is closed with 1013. A
    /// message of the largest size always has room where there is no other.
    pub received: usize,
    /// Those of all clients of one token. One more is refused with 429, and a WebSocket is closed
    /// with 1013.
    pub received_per_identity: usize,
    /// Bytes that are kept for a client that does not read; then the agent waits.
    pub held: usize,
    /// Bytes that are kept for all clients that do not read; then the agents of those with more
    /// than 64 KiB wait.
    pub held_total: usize,
    /// Bytes that are kept for all clients of one token that do not read; then the agents of those
    /// with more than 64 KiB wait.
    pub held_per_identity: usize,
    /// Sessions of a client over Streamable HTTP; more get 429.
    pub sessions: usize,
    /// Sessions of all clients of one token over Streamable HTTP; more get 429.
    pub sessions_per_identity: usize,
    /// Open requests of a client over Streamable HTTP; more get 429.
    pub open_requests: usize,
    /// Open requests of all clients of one token over Streamable HTTP; more get 429.
    pub open_requests_per_identity: usize,
    /// Sessions of a client over WebSocket that it has not closed. One more closes the WebSocket
    /// with 1008, so there may be more of them than over HTTP, where a single request is refused.
    pub socket_sessions: usize,
    /// Sessions of all clients of one token over WebSocket; one more closes a WebSocket with 1008.
    pub socket_sessions_per_identity: usize,
    /// Open requests of a client over WebSocket; one more closes it with 1013.
    pub socket_requests: usize,
    /// Open requests of all clients of one token over WebSocket; one more closes a WebSocket
    /// with 1013.
    pub socket_requests_per_identity: usize,
    /// How long a client may take to send the head of a request, and for the TLS handshake.
    pub head: Duration,
    /// How long a client may take to send a body; then it gets 408.
    pub body: Duration,
    /// How long the agent may take to answer `initialize`.
    pub initialize: Duration,
    /// A client over Streamable HTTP with no stream and no request for this long is removed.
    pub idle: Duration,
    /// Time between two comments on a silent stream.
    pub comment: Duration,
    /// How long a message waits for its session's stream before the connection's stream is used.
    pub patience: Duration,
    /// Time between two looks for idle clients and revoked tokens.
    pub sweep: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 10_000,
            connections_per_identity: 1_000,
            message: 16 << 20,
            received: 256 << 20,
            received_per_identity: 64 << 20,
            held: 4 << 20,
            held_total: 256 << 20,
            held_per_identity: 64 << 20,
            sessions: 1_024,
            sessions_per_identity: 16_384,
            open_requests: 4_096,
            open_requests_per_identity: 16_384,
            socket_sessions: 250_000,
            socket_sessions_per_identity: 1_000_000,
            socket_requests: 65_536,
            socket_requests_per_identity: 262_144,
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            initialize: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            comment: Duration::from_secs(15),
            patience: Duration::from_secs(1),
            sweep: Duration::from_secs(5),
        }
    }
}
