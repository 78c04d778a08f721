//! Opens connections for hyper: lookup, TCP, proxy, TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::target::Target;
use super::{ErrorKind, HttpError};
use crate::proxy::Proxy;

/// The TLS settings with the trusted authorities: Mozilla's, and those of a file.
pub(super) fn tls(extra: Option<&Path>) -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra {
        let unusable = |why: String| {
            HttpError::invalid(format!(
                "certificates in {}: {why}; fix or unset SSL_CERT_FILE",
                path.display()
            ))
        };
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        roots.add_parsable_certificates(certificates.flatten());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::invalid(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// A route to a server.
pub(super) struct Route<'a> {
    pub(super) target: &'a Target,
    /// The only addresses to connect to; any if empty.
    pub(super) addresses: &'a [SocketAddr],
    pub(super) proxy: Option<&'a Proxy>,
    /// Whether a proxy makes a tunnel also without TLS.
    pub(super) always_tunnel: bool,
}

/// An open connection.
pub(super) struct Opened {
    pub(super) io: Io,
    /// Whether the server chose HTTP/2 in the TLS handshake.
    pub(super) is_http2: bool,
}

/// Opens a connection to the target, or to the proxy that leads to it.
pub(super) async fn open(route: Route<'_>, tls: &Arc<ClientConfig>) -> Result<Opened, HttpError> {
    let target = route.target;
    let failed = |kind: ErrorKind, error: io::Error| {
        HttpError::connect(kind, format!("{}: {error}", target.authority()))
    };
    let stream = match route.proxy {
        None => {
            let addresses = match route.addresses {
                [] => {
                    resolve(&target.host, target.port).await.map_err(|error| failed(ErrorKind::Dns, error))?
                }
                addresses => addresses.to_vec(),
            };
            tcp(&addresses).await.map_err(|error| failed(ErrorKind::Refused, error))?
        }
        Some(proxy) => {
            let through = |error: io::Error| {
                let place = format!("{}:{}", proxy.host, proxy.port);
                let text = format!("{} through the proxy {place}: {error}", target.authority());
                HttpError::connect(ErrorKind::Proxy, text)
            };
            let addresses = resolve(&proxy.host, proxy.port).await.map_err(through)?;
            let mut stream = tcp(&addresses).await.map_err(through)?;
            if target.tls || route.always_tunnel {
                tunnel(&mut stream, target, proxy).await.map_err(through)?;
            }
            stream
        }
    };
    if !target.tls {
        return Ok(Opened { io: Io::new(Box::new(stream)), is_http2: false });
    }
    let name = ServerName::try_from(target.host.clone())
        .map_err(|_| HttpError::invalid("the host name is invalid"))?;
    let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
    let stream = stream.map_err(|error| failed(ErrorKind::Tls, error))?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(Opened { io: Io::new(Box::new(stream)), is_http2 })
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

async fn tcp(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses).await?;
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

/// A byte stream in both directions.
pub(super) trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// A stream for hyper.
pub(super) type Io = TokioIo<Box<dyn ReadWrite>>;
