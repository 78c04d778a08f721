//! Opens connections for hyper: lookup, TCP, proxy, TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::proxy::Proxy;
use super::{HttpError, Target};

/// The TLS settings with the trusted authorities.
pub(super) fn tls(extra: Option<&Path>) -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra {
        let unusable = |why: String| {
            HttpError::Invalid(format!("SSL_CERT_FILE={}: {why}; fix or unset it", path.display()))
        };
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        roots.add_parsable_certificates(certificates.flatten());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Invalid(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Opens a connection to the target, or to the proxy that leads to it.
pub(super) async fn open(
    target: &Target,
    addresses: &[SocketAddr],
    proxy: Option<&Proxy>,
    tls: &Arc<ClientConfig>,
) -> Result<Io, HttpError> {
    let failed = |error: io::Error| HttpError::Connect(format!("{}: {error}", target.authority()));
    let stream = match proxy {
        None if addresses.is_empty() => tcp((target.host.as_str(), target.port)).await.map_err(failed)?,
        None => tcp(addresses).await.map_err(failed)?,
        Some(proxy) => {
            let through = |error: io::Error| {
                let place = format!("{}:{}", proxy.host, proxy.port);
                HttpError::Connect(format!("{} through the proxy {place}: {error}", target.authority()))
            };
            let mut stream = tcp((proxy.host.as_str(), proxy.port)).await.map_err(through)?;
            if target.tls {
                tunnel(&mut stream, target, proxy).await.map_err(through)?;
            }
            stream
        }
    };
    if !target.tls {
        return Ok(Io::new(stream));
    }
    let name = ServerName::try_from(target.host.clone())
        .map_err(|_| HttpError::Invalid("the host name is invalid".to_owned()))?;
    let stream = TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(failed)?;
    Ok(Io::new(stream))
}

async fn tcp(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    // Requests are written at once, so delaying them to fill packets only adds latency.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The longest response of a proxy to `CONNECT`.
const MAX_PROXY_HEAD: usize = 16 * 1024;

/// Asks a proxy for a tunnel to the target.
async fn tunnel(stream: &mut TcpStream, target: &Target, proxy: &Proxy) -> io::Result<()> {
    let authority = target.authority();
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n");
    if let Some(credentials) = &proxy.credentials {
        request.push_str(&format!("proxy-authorization: {credentials}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // Byte by byte, because bytes after the head belong to the target.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_PROXY_HEAD {
            return Err(io::Error::other("its response is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    match line.split(' ').nth(1) {
        Some(status) if status.starts_with('2') => Ok(()),
        Some(status) => Err(io::Error::other(format!("it responded with status {status}"))),
        None => Err(io::Error::other("it does not speak HTTP")),
    }
}

trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// Adapts a tokio stream to hyper.
pub(super) struct Io {
    stream: Box<dyn ReadWrite>,
    /// hyper's buffer is uninitialized, and safe code cannot read into that; so bytes are copied
    /// through this one.
    buffer: Box<[u8]>,
}

impl Io {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Io { stream: Box::new(stream), buffer: vec![0; 16 * 1024].into() }
    }
}

impl hyper::rt::Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut target: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Io { stream, buffer } = &mut *self;
        let room = target.remaining().min(buffer.len());
        let mut read = ReadBuf::new(&mut buffer[..room]);
        ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        target.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Io {
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
