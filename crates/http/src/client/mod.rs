//! HTTP client for models, MCP servers, downloads, web pages and remote agents, on hyper and
//! rustls.
//!
//! [`HttpClient::send`] makes a connection for one request, without a task: dropping the
//! [`Response`] closes its socket at once. A [`Channel`] keeps its connection, or shares one of
//! HTTP/2. Redirects are not followed and nothing is decompressed.
//!
//! `https` trusts Mozilla's authorities and those in the file `SSL_CERT_FILE`. Proxies come from
//! `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; loopback addresses never use one.
//!
//! Reading order: this file, `request.rs`, `response.rs`, `connect.rs`, `channel.rs`, `upgrade.rs`,
//! `raw.rs`, `sse.rs`, `remote/`.

mod backoff;
mod channel;
mod connect;
mod date;
mod error;
mod raw;
pub mod remote;
mod request;
mod response;
pub mod sse;
mod target;
mod upgrade;

use std::fmt;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use tokio_rustls::rustls::ClientConfig;

use crate::proxy::{Proxies, Proxy, is_loopback};
pub use backoff::Backoff;
pub use channel::{Channel, Version};
use connect::{Opened, Route};
pub use error::{ErrorKind, HttpError};
pub use raw::RawStream;
pub use request::Request;
use request::Wire;
use response::drive;
pub use response::{Body, Response};
use target::Target;
pub use target::{absolute, check_url, same_server};
pub use upgrade::{Upgrade, Upgraded};

/// An HTTP client. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    tls: Arc<ClientConfig>,
    proxies: Arc<Proxies>,
    timeouts: Timeouts,
}

/// Time limits of a client.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection, with name lookup and TLS handshake.
    pub connect: Duration,
    /// From the request to the head of its response; `None` for no limit.
    pub response: Option<Duration>,
    /// Between two chunks of a body; `None` for no limit.
    pub silence: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(15), response: None, silence: None }
    }
}

impl HttpClient {
    /// A client with the certificates and proxies of the environment.
    ///
    /// # Errors
    /// The file in `SSL_CERT_FILE` cannot be read.
    pub fn from_env() -> Result<Self, HttpError> {
        let extra = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty());
        Ok(HttpClient::new(extra.as_deref().map(Path::new))?.with_proxies(Proxies::from_env()))
    }

    /// A client without proxies that trusts the authorities in this file in addition to Mozilla's.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(authorities: Option<&Path>) -> Result<Self, HttpError> {
        let tls = Arc::new(connect::tls(authorities)?);
        Ok(HttpClient { tls, proxies: Arc::default(), timeouts: Timeouts::default() })
    }

    /// Sets the proxies.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// Sets the time limits.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Returns the host and port that a request connects to; `None` if a proxy resolves the name.
    ///
    /// # Errors
    /// The URL is invalid.
    pub fn direct_target(&self, url: &str) -> Result<Option<(String, u16)>, HttpError> {
        let target = Target::parse(url)?;
        Ok(self.proxy(&target).is_none().then_some((target.host, target.port)))
    }

    fn proxy(&self, target: &Target) -> Option<&Proxy> {
        let proxy = self.proxies.find(&target.host, target.tls);
        proxy.filter(|proxy| proxy.is_http && !is_loopback(&target.host))
    }

    /// Sends a request on a connection of its own and waits for the head of the response.
    ///
    /// # Errors
    /// Every [`ErrorKind`] except `Status`: each response is one.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let target = Target::parse(&request.url)?;
        let proxy = self.proxy(&target);
        let route = Route { target: &target, addresses: &request.addresses, proxy, always_tunnel: false };
        let wire = match proxy {
            Some(proxy) if !target.tls => Wire::OnceByProxy(proxy),
            _ => Wire::Once,
        };
        let message = request::build(&request, &target, wire)?;
        let Opened { io, .. } = self.open(route, &self.tls).await?;
        let (mut sender, connection) = http1::handshake(io).await?;
        let mut connection = Some(Box::pin(connection));
        let response = {
            let mut response = std::pin::pin!(sender.send_request(message));
            let head = poll_fn(|cx| {
                drive(&mut connection, cx);
                response.as_mut().poll(cx)
            });
            self.within_response_limit(async { Ok(head.await?) }).await?
        };
        Ok(Response::new(response, connection, self.timeouts.silence))
    }

    async fn open(&self, route: Route<'_>, tls: &Arc<ClientConfig>) -> Result<Opened, HttpError> {
        let authority = route.target.authority();
        let limit = self.timeouts.connect;
        tokio::time::timeout(limit, connect::open(route, tls)).await.unwrap_or_else(|_| {
            let text = format!("{authority}: no response within {} s", limit.as_secs_f32());
            Err(HttpError::timeout(text).unsent())
        })
    }

    async fn within_response_limit<T>(
        &self,
        head: impl Future<Output = Result<T, HttpError>>,
    ) -> Result<T, HttpError> {
        let Some(limit) = self.timeouts.response else { return head.await };
        tokio::time::timeout(limit, head).await.unwrap_or_else(|_| {
            Err(HttpError::timeout(format!("no response within {} s", limit.as_secs_f32())))
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}
