//! Sockets: TCP, TLS, and the HTTP connection on them.

use super::registry::{Registry, SocketClient};
use super::{Accepted, Options, Tls, peer_user, router};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tracing::debug;

/// The longest head of a request.
const HEAD: usize = 64 << 10;
/// Header lines of a request.
const HEADERS: usize = 100;
/// Requests and streams at once on a connection of HTTP/2.
const STREAMS: u32 = 256;
/// Sockets for each client, and sockets beyond those.
const SOCKETS: usize = 8;
const SPARE_SOCKETS: usize = 256;
/// Time after a socket could not be accepted, for example because there are too many.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) address: SocketAddr,
    pub(super) accepted: mpsc::Sender<Accepted>,
    pub(super) connections: Arc<Registry>,
    draining: AtomicBool,
}

impl Shared {
    pub(super) fn new(options: Options, address: SocketAddr, accepted: mpsc::Sender<Accepted>) -> Shared {
        let connections = Arc::new(Registry::new(&options.limits));
        Shared { options, address, accepted, connections, draining: AtomicBool::new(false) }
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.accepted.is_closed()
    }
}

/// Accepts sockets until the server is dropped.
pub(super) async fn run(shared: Arc<Shared>, listener: TcpListener) {
    let mut sockets = JoinSet::new();
    let most = shared.options.limits.connections.saturating_mul(SOCKETS).saturating_add(SPARE_SOCKETS);
    let mut sweep = tokio::time::interval(shared.options.limits.sweep);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // More sockets than clients can need: those of a flood are closed.
                Ok(_) if sockets.len() >= most => debug!("there are too many sockets"),
                Ok((stream, remote)) => {
                    sockets.spawn(serve(Arc::clone(&shared), stream, remote));
                }
                Err(error) => {
                    debug!(%error, "a socket could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            _ = sweep.tick() => {
                shared.connections.remove_idle(Instant::now());
                let access = &shared.options.access;
                shared.connections.remove_revoked(|identity| access.is_revoked(identity));
            }
            Some(_) = sockets.join_next() => {}
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, remote: SocketAddr) {
    if shared.options.same_user && !peer_user::is_own(&stream) {
        return debug!(%remote, "another user of this machine is refused");
    }
    // Messages are written in batches already.
    let _ = stream.set_nodelay(true);
    let io = match &shared.options.tls {
        None => Io::Plain(stream),
        Some(Tls(tls)) => match tokio::time::timeout(shared.options.limits.head, tls.accept(stream)).await {
            Ok(Ok(stream)) => Io::Tls(Box::new(stream)),
            Ok(Err(error)) => return debug!(%remote, %error, "TLS handshake failed"),
            Err(_) => return debug!(%remote, "TLS handshake took too long"),
        },
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.options.limits.head)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD as u32)
        .keep_alive_interval(shared.options.ws.ping)
        .keep_alive_timeout(shared.options.ws.silence);
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, std::convert::Infallible>(router::respond(&shared, remote, request).await) }
    });
    if let Err(error) =
        builder.serve_connection_with_upgrades(TokioIo::new(Stream { io, client: None }), service).await
    {
        debug!(%remote, %error, "connection ended");
    }
}

/// A socket.
pub(super) struct Stream {
    io: Io,
    /// Held by a socket that is a client of its own, a WebSocket.
    pub(super) client: Option<SocketClient>,
}

/// With or without TLS.
enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! forward {
    ($self:ident, $inner:ident => $call:expr) => {
        match &mut $self.get_mut().io {
            Io::Plain(stream) => {
                let $inner = Pin::new(stream);
                $call
            }
            Io::Tls(stream) => {
                let $inner = Pin::new(stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        forward!(self, inner => inner.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        forward!(self, inner => inner.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, inner => inner.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(self, inner => inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
