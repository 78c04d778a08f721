//! Sockets.

use super::Link;
use std::io;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

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
        // Writes are batched here already. Without this the last small message of a batch could wait for an
        // acknowledgement of the one before; if the option cannot be set the connection still works.
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
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, PathBuf),
}

/// Listens on a TCP address; port 0 lets the system choose.
///
/// Example: [`Listener`].
///
/// # Errors
/// The address cannot be used.
pub async fn listen_tcp(address: impl ToSocketAddrs) -> io::Result<Listener> {
    TcpListener::bind(address).await.map(|listener| Listener(Kind::Tcp(listener)))
}

/// Listens on a Unix socket. A stale socket file is replaced, and the file is removed when the listener is
/// dropped.
///
/// Example: [`Listener`].
///
/// # Errors
/// The path cannot be used, or another process listens on it.
#[cfg(unix)]
pub fn listen_unix(path: impl AsRef<Path>) -> io::Result<Listener> {
    let path = path.as_ref();
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }?;
    Ok(Listener(Kind::Unix(listener, path.to_owned())))
}

#[cfg(unix)]
fn is_stale(path: &Path) -> bool {
    let refused = std::os::unix::net::UnixStream::connect(path);
    refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Listener {
    /// Accepts the next peer.
    ///
    /// # Errors
    /// The system cannot accept; the next call usually succeeds.
    pub async fn accept(&self) -> io::Result<Link> {
        match &self.0 {
            Kind::Tcp(listener) => listener.accept().await.map(|(stream, _)| Link::from(stream)),
            #[cfg(unix)]
            Kind::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Link::from(stream)),
        }
    }

    /// Returns the TCP address with the chosen port; `None` for other sockets.
    pub fn local_addr(&self) -> Option<std::net::SocketAddr> {
        match &self.0 {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Kind::Unix(..) => None,
        }
    }
}

#[cfg(unix)]
impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix(_, path) = &self.0 {
            // It may be gone already, which is just as well.
            let _ = std::fs::remove_file(path);
        }
    }
}
