//! HTTP/1.1 client for models, MCP servers and web pages, on hyper and rustls.
//!
//! Each request has its own connection, and no task: dropping a [`Response`] closes its socket at
//! once. Redirects are not followed and nothing is decompressed.
//!
//! `https` trusts Mozilla's authorities and those in the file `SSL_CERT_FILE`. Proxies come from
//! `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; loopback addresses never use one.

mod connect;
pub(crate) mod lines;
mod proxy;
mod url;

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Uri};
use tokio_rustls::rustls::ClientConfig;

use connect::Io;
pub use proxy::Proxies;
pub(crate) use proxy::is_loopback;
pub(crate) use url::{absolute, same_server};

/// The time limit for a connection, with name lookup and TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// An HTTP client. Cheap to clone.
#[derive(Clone)]
pub struct Http {
    tls: Arc<ClientConfig>,
    proxies: Arc<Proxies>,
    connect_timeout: Duration,
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// An absolute URL, `http` or `https`.
    pub url: String,
    /// Headers; `host`, `content-length` and `user-agent` are added if missing.
    pub headers: Vec<(String, String)>,
    /// The body, empty for none.
    pub body: Vec<u8>,
    /// The only addresses to connect to, whatever the name resolves to; any if empty.
    pub addresses: Vec<SocketAddr>,
}

impl Request {
    /// A request without a body.
    pub fn get(url: impl Into<String>) -> Self {
        Request {
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// A request with a JSON body.
    pub fn post_json(url: impl Into<String>, body: &serde_json::Value) -> Self {
        let request = Request::get(url).header("content-type", "application/json");
        Request { method: "POST".to_owned(), body: body.to_string().into_bytes(), ..request }
    }

    /// Connects only to these addresses.
    #[must_use]
    pub fn only_to(mut self, addresses: Vec<SocketAddr>) -> Self {
        self.addresses = addresses;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Without header values and body, which may contain secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &url)
            .field("headers", &names)
            .finish()
    }
}

/// Why there is no response. Names the host, never a header or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// The URL or a header cannot be used.
    Invalid(String),
    /// The connection failed.
    Connect(String),
    /// The connection broke, or the peer does not speak HTTP.
    Broken(String),
    /// The response exceeds its limit.
    TooLong,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::Invalid(why) => write!(f, "cannot make this request: {why}"),
            HttpError::Connect(why) => write!(f, "cannot connect to {why}"),
            HttpError::Broken(why) => write!(f, "the connection broke: {why}"),
            HttpError::TooLong => f.write_str("the response is too long"),
        }
    }
}

impl std::error::Error for HttpError {}

impl Http {
    /// A client with the certificates and proxies of the environment.
    pub fn from_env() -> Result<Self, HttpError> {
        let extra = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty());
        Ok(Http::new(extra.as_deref().map(Path::new))?.with_proxies(Proxies::from_env()))
    }

    /// A client without proxies that trusts the authorities in this file besides Mozilla's.
    pub fn new(authorities: Option<&Path>) -> Result<Self, HttpError> {
        let tls = Arc::new(connect::tls(authorities)?);
        Ok(Http { tls, proxies: Arc::default(), connect_timeout: CONNECT_TIMEOUT })
    }

    /// With these proxies.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// With another time limit for connecting.
    #[must_use]
    pub fn with_connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// The host and port that a request connects to; `None` if a proxy resolves the name.
    pub fn direct_target(&self, url: &str) -> Result<Option<(String, u16)>, HttpError> {
        let target = Target::of(url)?;
        Ok(self.proxies.of(&target).is_none().then_some((target.host, target.port)))
    }

    /// Sends a request and waits for the head of the response, without a time limit.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let target = Target::of(&request.url)?;
        let proxy = self.proxies.of(&target);
        let connecting = connect::open(&target, &request.addresses, proxy.as_ref(), &self.tls);
        let io = match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(io) => io?,
            Err(_) => {
                let seconds = self.connect_timeout.as_secs_f32();
                return Err(HttpError::Connect(format!(
                    "{}: no response within {seconds} s",
                    target.authority()
                )));
            }
        };
        let message = message(request, &target, proxy.filter(|_| !target.tls))?;
        let (mut sender, connection) =
            http1::handshake(io).await.map_err(|error| HttpError::Broken(error.to_string()))?;
        let mut connection = Some(Box::pin(connection));
        let mut response = std::pin::pin!(sender.send_request(message));
        let response = poll_fn(|cx| {
            drive(&mut connection, cx);
            response.as_mut().poll(cx)
        })
        .await
        .map_err(|error| HttpError::Broken(reason(&error)))?;
        let (head, body) = response.into_parts();
        Ok(Response { status: head.status.as_u16(), headers: head.headers, body: Body { body, connection } })
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

type Connection = Pin<Box<http1::Connection<Io, Full<Bytes>>>>;

/// Drives the connection while a caller waits for its data.
fn drive(connection: &mut Option<Connection>, cx: &mut Context<'_>) {
    // Its error also reaches the body or the response.
    if let Some(open) = connection
        && open.as_mut().poll(cx).is_ready()
    {
        *connection = None;
    }
}

/// The head of a response, and its body to come.
pub struct Response {
    /// The status.
    pub status: u16,
    headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Response {
    /// The first header of this name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The body of a response, in chunks.
pub struct Body {
    body: Incoming,
    connection: Option<Connection>,
}

impl Body {
    /// The next chunk; `None` at the end. Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// See [`Body::chunk`].
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, HttpError>> {
        loop {
            drive(&mut self.connection, cx);
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are not used.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(HttpError::Broken(reason(&error)))),
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The whole body, if it is not longer than `limit`.
    pub async fn bytes(&mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > limit {
                return Err(HttpError::TooLong);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

/// hyper's own text says little; its source says more.
fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Checks that a URL can be requested.
pub fn check_url(url: &str) -> Result<(), HttpError> {
    Target::of(url).map(|_| ())
}

/// Where a request goes.
#[derive(Debug, Clone)]
struct Target {
    tls: bool,
    host: String,
    port: u16,
    uri: Uri,
}

impl Target {
    fn of(url: &str) -> Result<Self, HttpError> {
        let wrong = |why: &str| HttpError::Invalid(format!("{why}; write `https://host/path`"));
        let uri: Uri = url.parse().map_err(|_| wrong("this is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("the URL is neither http nor https")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("the URL contains a user name"));
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong("the URL has no host"));
        }
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Target { tls, host, port, uri })
    }

    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// The request for hyper. A proxy for plain HTTP gets the whole URL, any other server only the
/// path.
fn message(
    request: Request,
    target: &Target,
    proxy: Option<proxy::Proxy>,
) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
    let wrong = |what: &str| HttpError::Invalid(what.to_owned());
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = if proxy.is_some() { target.uri.to_string() } else { path.to_owned() };
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| wrong("the method is invalid"))?;
    let mut message = hyper::Request::new(Full::from(request.body));
    *message.method_mut() = method;
    *message.uri_mut() = uri.parse().map_err(|_| wrong("the path is invalid"))?;
    let headers = message.headers_mut();
    let host = target.uri.authority().map_or(target.host.as_str(), |authority| authority.as_str());
    let usual = [("host", host), ("user-agent", USER_AGENT), ("connection", "close")];
    for (name, value) in usual {
        headers.insert(HeaderName::from_static(name), header_value(name, value)?);
    }
    if let Some(credentials) = proxy.and_then(|proxy| proxy.credentials) {
        headers.insert("proxy-authorization", header_value("proxy-authorization", &credentials)?);
    }
    for (name, value) in &request.headers {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("a header name is invalid"))?;
        headers.insert(known, header_value(name, value)?);
    }
    Ok(message)
}

const USER_AGENT: &str = concat!("attache/", env!("CARGO_PKG_VERSION"));

fn header_value(name: &str, value: &str) -> Result<HeaderValue, HttpError> {
    let mut made = HeaderValue::from_str(value)
        .map_err(|_| HttpError::Invalid(format!("the header `{name}` contains invalid characters")))?;
    // Keeps it out of debug output.
    made.set_sensitive(true);
    Ok(made)
}
