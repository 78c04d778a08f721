//! Sockets.

use super::Link;
use std::future::Future;
use std::io;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tracing::debug;

impl Link {
    /// Connects to a TCP address.
    ///
    /// # Errors
    /// Nothing listens there.
    pub async fn tcp(address: impl ToSocketAddrs) -> io::Result<Link> {
        TcpStream::connect(address).await.map(Link::from)
    }

    /// Connects to a Unix socket.
    ///
    /// # Errors
    /// Nothing listens there.
    #[cfg(unix)]
    pub async fn unix(path: impl AsRef<Path>) -> io::Result<Link> {
        UnixStream::connect(path).await.map(Link::from)
    }
}

impl From<TcpStream> for Link {
    fn from(stream: TcpStream) -> Link {
        // Writes are batched here already. Without this the last small message of a batch could
        // wait for an acknowledgement of the one before; if the option cannot be set the connection
        // still works.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        Link::from_io(reader, writer)
    }
}

#[cfg(unix)]
impl From<UnixStream> for Link {
    fn from(stream: UnixStream) -> Link {
        let (reader, writer) = stream.into_split();
        Link::from_io(reader, writer)
    }
}

/// A source of connections, such as a listening socket.
///
/// ```
/// use attache_conn::{Link, Listener};
/// use std::io;
///
/// /// Links that were made elsewhere.
/// struct Prepared(Vec<Link>);
///
/// impl Listener for Prepared {
///     async fn accept(&mut self) -> io::Result<Link> {
///         self.0.pop().ok_or_else(|| io::Error::other("there are no more"))
///     }
/// }
/// ```
pub trait Listener: Send {
    /// Waits for the next peer. Dropping the future loses none.
    ///
    /// # Errors
    /// No more peers can be accepted, ever.
    fn accept(&mut self) -> impl Future<Output = io::Result<Link>> + Send;
}

/// A listening socket.
///
/// ```
/// # async fn run() -> std::io::Result<()> {
/// let listener = attache_conn::listen_tcp("127.0.0.1:0").await?;
/// println!("{:?}", listener.local_addr());
/// let link = listener.accept().await?;
/// # drop(link); Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SocketListener {
    kind: Kind,
    /// Peers of other users are refused.
    own_user_only: bool,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    /// The path is that of a file to be removed at the end.
    Unix(UnixListener, Option<PathBuf>),
}

/// Time after a socket could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens on a TCP address; port 0 lets the system choose.
///
/// Example: [`SocketListener`].
///
/// # Errors
/// The address cannot be used.
pub async fn listen_tcp(address: impl ToSocketAddrs) -> io::Result<SocketListener> {
    TcpListener::bind(address).await.map(|listener| SocketListener::new(Kind::Tcp(listener)))
}

/// Listens on a Unix socket. A stale socket file is replaced, and the file is removed when the
/// listener is dropped.
///
/// Example: [`SocketListener`].
///
/// # Errors
/// The path cannot be used, or another process listens on it.
#[cfg(unix)]
pub fn listen_unix(path: impl AsRef<Path>) -> io::Result<SocketListener> {
    let path = path.as_ref();
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }?;
    Ok(SocketListener::new(Kind::Unix(listener, Some(path.to_owned()))))
}

/// A socket that the service manager opened for this process.
#[cfg(unix)]
#[derive(Debug)]
#[non_exhaustive]
pub enum ActivatedSocket {
    /// A Unix socket, whose file stays.
    Unix(SocketListener),
    /// A TCP socket.
    Tcp(std::net::TcpListener),
}

/// Takes the sockets of systemd's socket activation (`LISTEN_FDS`). There are none for a process
/// that was started otherwise, and none at a second call. Must be called within a tokio runtime.
///
/// # Errors
/// One of them listens neither on a path nor on a TCP address.
#[cfg(unix)]
pub fn activated_sockets() -> io::Result<Vec<ActivatedSocket>> {
    let sockets = crate::sys::activation::take().into_iter().map(|socket| {
        let tcp = std::net::TcpListener::from(socket);
        tcp.set_nonblocking(true)?;
        // Fails for a socket of another family.
        if tcp.local_addr().is_ok() {
            return Ok(ActivatedSocket::Tcp(tcp));
        }
        let unix = std::os::unix::net::UnixListener::from(std::os::fd::OwnedFd::from(tcp));
        unix.local_addr()?;
        let listener = UnixListener::from_std(unix)?;
        Ok(ActivatedSocket::Unix(SocketListener::new(Kind::Unix(listener, None))))
    });
    sockets.collect()
}

#[cfg(unix)]
fn is_stale(path: &Path) -> bool {
    let refused = std::os::unix::net::UnixStream::connect(path);
    refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl SocketListener {
    fn new(kind: Kind) -> SocketListener {
        SocketListener { kind, own_user_only: false }
    }

    /// Refuses peers of other users on a Unix socket, whatever the permissions of its file are.
    #[must_use]
    pub fn own_user_only(mut self) -> SocketListener {
        self.own_user_only = true;
        self
    }

    /// Accepts the next peer.
    ///
    /// # Errors
    /// The system cannot accept; the next call usually succeeds.
    pub async fn accept(&self) -> io::Result<Link> {
        match &self.kind {
            Kind::Tcp(listener) => listener.accept().await.map(|(stream, _)| Link::from(stream)),
            #[cfg(unix)]
            Kind::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                if self.own_user_only && stream.peer_cred()?.uid() != crate::sys::user::effective_uid() {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a peer of another user"));
                }
                Ok(Link::from(stream))
            }
        }
    }

    /// Returns the TCP address with the chosen port; `None` for other sockets.
    pub fn local_addr(&self) -> Option<std::net::SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Kind::Unix(..) => None,
        }
    }
}

impl Listener for SocketListener {
    async fn accept(&mut self) -> io::Result<Link> {
        loop {
            match SocketListener::accept(self).await {
                Ok(link) => return Ok(link),
                // The peer left meanwhile, or this process has too many files open for now.
                Err(error) => {
                    debug!(%error, "a socket could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

#[cfg(unix)]
impl Drop for SocketListener {
    fn drop(&mut self) {
        if let Kind::Unix(_, Some(path)) = &self.kind {
            // It may be gone already, which is just as well.
            let _ = std::fs::remove_file(path);
        }
    }
}
