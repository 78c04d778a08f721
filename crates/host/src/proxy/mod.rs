//! A proxy for confined commands: every new destination is a question.
//!
//! It listens on a Unix socket in a private directory and speaks HTTP (`CONNECT`, and requests with
//! a whole address) and SOCKS5 on it. A name is asked about first and looked up afterwards, once:
//! its addresses are judged, and a connection goes to one of those and to no other. A
//! [sandbox](crate::sandbox) leads the connections of a command here with
//! [`Network::Proxy`](crate::sandbox::Network).
//!
//! ```no_run
//! # async fn demo() -> std::io::Result<()> {
//! use attache_host::net::Reach;
//! use attache_host::proxy::{Options, Proxy};
//!
//! let proxy = Proxy::start(Options::from_env(), |destination| async move {
//!     destination.reach == Reach::Internet && destination.host == "crates.io"
//! })?;
//! let socket = proxy.socket().to_owned();
//! # let _ = socket; Ok(()) }
//! ```
//!
//! Everything has a bound: connections, the size of heads, time without traffic, decisions that are
//! remembered. A slow reader slows its peer down.
//!
//! Reading order: this file, `destination.rs`, `http.rs`, `socks.rs`, `relay.rs`, `upstream.rs`.

mod destination;
mod head;
mod http;
mod relay;
mod socks;
mod upstream;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

pub use destination::Destination;
pub use upstream::Upstream;

use self::destination::{Decisions, Refusal, Traffic};
use crate::sandbox::PrivateDirectory;

/// The name of the socket in its directory.
const SOCKET_NAME: &str = "proxy";
/// Paths of sockets have to be shorter than this, on all systems.
const LONGEST_SOCKET_PATH: usize = 100;

/// How a proxy works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at the same time; further ones wait.
    pub connections: usize,
    /// The size of the head of a request or response, in bytes.
    pub head_bytes: usize,
    /// How long a request may take to arrive, and a connection to be made.
    pub patience: Duration,
    /// How long a connection may be without traffic.
    pub idle: Duration,
    /// Another proxy that all connections go through.
    pub upstream: Option<Upstream>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connections: 128,
            head_bytes: 64 * 1024,
            patience: Duration::from_secs(30),
            idle: Duration::from_secs(300),
            upstream: None,
        }
    }
}

impl Options {
    /// The defaults, with the upstream proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY` describe.
    pub fn from_env() -> Self {
        Options { upstream: Upstream::from_vars(|name| std::env::var(name).ok()), ..Options::default() }
    }
}

/// A running proxy. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    directory: Option<PrivateDirectory>,
    decisions: Arc<Decisions>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy, within a tokio runtime.
    ///
    /// `decide` is called for every destination that it has not been called for; the connections to
    /// it wait for its answer. The answer holds until the proxy ends, or
    /// [`forget_decisions`](Self::forget_decisions) is called, or the destination turns out to be
    /// nearer (see [`Destination::addresses`]). Dropping the last waiting connection drops the
    /// future.
    ///
    /// # Errors
    /// When no private directory or no socket can be created.
    pub fn start<F>(
        options: Options,
        decide: impl Fn(Destination) -> F + Send + Sync + 'static,
    ) -> io::Result<Proxy>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut directory = PrivateDirectory::create_in(&[std::env::temp_dir()])?;
        if directory.path().join(SOCKET_NAME).as_os_str().len() > LONGEST_SOCKET_PATH {
            directory.remove();
            directory = PrivateDirectory::create_in(&["/tmp".into()])?;
        }
        let socket = directory.path().join(SOCKET_NAME);
        let listener = match UnixListener::bind(&socket) {
            Ok(listener) => listener,
            Err(error) => {
                directory.remove();
                return Err(error);
            }
        };
        let decisions = Arc::new(Decisions::new(Box::new(move |destination| Box::pin(decide(destination)))));
        let task = tokio::spawn(accept(listener, Arc::new(options), decisions.clone()));
        Ok(Proxy { socket, directory: Some(directory), decisions, task })
    }

    /// The path of the socket, for [`Network::Proxy`](crate::sandbox::Network).
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Forgets all answers, so that every destination is asked about again. Open connections stay.
    pub fn forget_decisions(&self) {
        self.decisions.forget();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(directory) = self.directory.take() {
            directory.remove();
        }
    }
}

/// State that all connections share.
struct Shared {
    options: Arc<Options>,
    decisions: Arc<Decisions>,
}

impl Shared {
    /// The upstream proxy for a host, if there is one.
    fn upstream(&self, host: &str, traffic: Traffic) -> Option<upstream::Server<'_>> {
        self.options.upstream.as_ref().and_then(|upstream| upstream.server(host, traffic))
    }

    /// Makes a connection for bytes that the proxy does not understand, through an upstream proxy
    /// if there is one.
    async fn connect(&self, destination: &Destination) -> Result<TcpStream, Refusal> {
        let connected = match self.upstream(&destination.host, Traffic::Tunnel) {
            Some(server) => server.tunnel(destination, &self.options).await,
            None => destination::connect_to(&destination.addresses, self.options.patience).await,
        };
        connected.map_err(Refusal::Unreachable)
    }
}

async fn accept(listener: UnixListener, options: Arc<Options>, decisions: Arc<Decisions>) {
    let slots = Arc::new(Semaphore::new(options.connections));
    // Dropping the set ends all connections.
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Too many open files: others have to close some first.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if !is_own_user(&stream) {
            continue;
        }
        let shared = Shared { options: options.clone(), decisions: decisions.clone() };
        connections.spawn(async move {
            let _slot = slot;
            // A connection that fails is closed, which is all that its client can notice.
            let _ = serve(stream, &shared).await;
        });
    }
}

/// Whether the peer is a process of this user. The directory keeps others away already.
fn is_own_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == crate::sys::process::user())
}

async fn serve(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let mut first = [0];
    let patience = shared.options.patience;
    tokio::time::timeout(patience, stream.read_exact(&mut first)).await??;
    match first[0] {
        socks::VERSION => socks::serve(stream, shared).await,
        byte => http::serve(stream, byte, shared).await,
    }
}
