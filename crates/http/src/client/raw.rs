//! Connections without HTTP, for programs that write their requests themselves.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls::ClientConfig;

use super::connect::{Opened, ReadWrite, Route};
use super::target::Target;
use super::{HttpClient, HttpError};

/// A connection to the server of a URL: TCP, and TLS for `https`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use attache_http::client::HttpClient;
/// use tokio::io::AsyncWriteExt;
///
/// let mut stream = HttpClient::from_env()?.open_raw("https://agents.example.com", &["http/1.1"]).await?;
/// stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
/// # Ok(()) }
/// ```
pub struct RawStream {
    stream: Box<dyn ReadWrite>,
    is_http2: bool,
}

impl HttpClient {
    /// Opens a connection and sends nothing on it. `alpn` are the protocols to offer in the TLS
    /// handshake.
    ///
    /// # Errors
    /// The URL is invalid, or the server cannot be reached.
    pub async fn open_raw(&self, url: &str, alpn: &[&str]) -> Result<RawStream, HttpError> {
        let target = Target::parse(url)?;
        let proxy = self.proxy(&target);
        let route = Route { target: &target, addresses: &[], proxy, always_tunnel: true };
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let Opened { io, is_http2 } = self.open(route, &Arc::new(tls)).await?;
        Ok(RawStream { stream: io.into_inner(), is_http2 })
    }
}

impl RawStream {
    /// Whether the server chose HTTP/2 in the TLS handshake.
    pub fn is_http2(&self) -> bool {
        self.is_http2
    }
}

impl std::fmt::Debug for RawStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawStream").field("is_http2", &self.is_http2).finish_non_exhaustive()
    }
}

impl AsyncRead for RawStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for RawStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
