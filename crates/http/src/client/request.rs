//! Requests.

use std::fmt;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use super::HttpError;
use super::target::Target;
use crate::proxy::Proxy;

const USER_AGENT: &str = concat!("attache/", env!("CARGO_PKG_VERSION"));

/// One request.
#[derive(Clone)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// An absolute URL, `http` or `https`.
    pub url: String,
    /// Headers; `host`, `content-length` and `user-agent` are added if missing.
    pub headers: Vec<(String, String)>,
    /// The body, empty for none. Cheap to clone.
    pub body: Bytes,
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
            body: Bytes::new(),
            addresses: Vec::new(),
        }
    }

    /// A request with a JSON body.
    pub fn post_json(url: impl Into<String>, body: &serde_json::Value) -> Self {
        Request::post(url, body.to_string().into_bytes()).header("content-type", "application/json")
    }

    /// A request with a body.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Request { method: "POST".to_owned(), body: body.into(), ..Request::get(url) }
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

/// The kind of connection that a request is written for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    /// HTTP/1.1, one request only.
    Once,
    /// HTTP/1.1, one request only, through a proxy that gets the whole URL.
    OnceByProxy(&'a Proxy),
    /// HTTP/1.1, kept open or upgraded.
    Kept,
    Http2,
}

/// Builds the request for hyper.
pub(super) fn build(
    request: &Request,
    target: &Target,
    wire: Wire<'_>,
) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
    let wrong = |what: &str| HttpError::invalid(what);
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    // A proxy for plain HTTP and HTTP/2 get the whole URL, any other server only the path.
    let uri = match wire {
        Wire::Http2 | Wire::OnceByProxy(_) => target.uri.to_string(),
        Wire::Once | Wire::Kept => path.to_owned(),
    };
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| wrong("the method is invalid"))?;
    let mut message = hyper::Request::new(Full::from(request.body.clone()));
    *message.method_mut() = method;
    *message.uri_mut() = uri.parse().map_err(|_| wrong("the path is invalid"))?;
    let headers = message.headers_mut();
    headers.insert("user-agent", header_value("user-agent", USER_AGENT)?);
    if wire != Wire::Http2 {
        headers.insert("host", header_value("host", target.host_header())?);
    }
    if let Wire::Once | Wire::OnceByProxy(_) = wire {
        headers.insert("connection", HeaderValue::from_static("close"));
    }
    if let Wire::OnceByProxy(Proxy { credentials: Some(credentials), .. }) = wire {
        headers.insert("proxy-authorization", header_value("proxy-authorization", credentials)?);
    }
    for (name, value) in &request.headers {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("a header name is invalid"))?;
        headers.insert(known, header_value(name, value)?);
    }
    Ok(message)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, HttpError> {
    let mut built = HeaderValue::from_str(value)
        .map_err(|_| HttpError::invalid(format!("the header `{name}` contains invalid characters")))?;
    // Keeps it out of debug output.
    built.set_sensitive(true);
    Ok(built)
}
