//! Links to remote agents, over WebSocket or Streamable HTTP.
//!
//! [`connect`] tries the WebSocket first, because it keeps all messages of a connection in one
//! order. Streamable HTTP splits them over several streams; `streamable/` puts them together again.
//!
//! Reading order: this file, `websocket.rs`, `streamable/mod.rs`, then `reconnect/mod.rs`.

mod cookies;
mod error;
mod memory;
mod reconnect;
mod streamable;
mod websocket;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use attache_conn::Link;
use parking_lot::Mutex;

pub use crate::Transport;
pub use cookies::Cookies;
pub use error::RemoteError;

use super::target::Target;
use super::{Backoff, HttpClient, Request, Version};
use websocket::Outcome;

/// How a remote agent is connected.
///
/// ```no_run
/// # async fn run() -> Result<(), attache_http::client::remote::RemoteError> {
/// use attache_http::client::remote::{Options, connect};
///
/// let options = Options { token: Some("secret".to_owned()), ..Options::default() };
/// let link = connect("wss://agents.example.com/acp", &options).await?;
/// # drop(link); Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Options {
    /// The token, sent as bearer.
    pub token: Option<String>,
    /// Further headers of every request.
    pub headers: Vec<(String, String)>,
    /// The HTTP client; by default one with the proxies and certificates of the environment.
    pub client: Option<HttpClient>,
    /// Cookies of the server. Share them between connections to the same server.
    pub cookies: Cookies,
    /// The transport of `http` and `https` URLs; without it the WebSocket is tried first.
    pub transport: Option<Transport>,
    /// Transports of known servers. Share them between connections.
    pub transports: Transports,
    /// Further attempts after a transient error; none by default.
    pub retry: Backoff,
    /// Attempts to connect again after a cut; none by default. The sessions are resumed where the
    /// agent can do that. With a hub that announces it, nothing is lost and open prompts go on;
    /// `docs/hub.md` says how.
    pub reconnect: Backoff,
    /// Whether plain `http` URLs are requested with HTTP/2.
    pub http2_prior_knowledge: bool,
}

/// Without secrets.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("has_token", &self.token.is_some()).finish_non_exhaustive()
    }
}

/// Transports by origin (`https://host:port`), shared by all clones. A program may store them.
#[derive(Clone, Default)]
pub struct Transports(Arc<Known>);

#[derive(Default)]
struct Known {
    by_origin: Mutex<HashMap<String, Transport>>,
    observer: OnceLock<Observer>,
}

type Observer = Box<dyn Fn(&Transports) + Send + Sync>;

impl Transports {
    /// Returns the transport of an origin.
    pub fn get(&self, origin: &str) -> Option<Transport> {
        self.0.by_origin.lock().get(origin).copied()
    }

    /// Remembers the transport of an origin.
    pub fn insert(&self, origin: impl Into<String>, transport: Transport) {
        if self.0.by_origin.lock().insert(origin.into(), transport) != Some(transport) {
            self.report();
        }
    }

    /// Forgets the transport of an origin: the next connection tries the WebSocket first.
    pub fn remove(&self, origin: &str) {
        if self.0.by_origin.lock().remove(origin).is_some() {
            self.report();
        }
    }

    /// Calls a function after each change from now on. Only the first function is called.
    ///
    /// A server that is connected by Streamable HTTP is known after its response to `initialize`,
    /// so not yet when [`connect`] returns.
    pub fn on_change(&self, observer: impl Fn(&Transports) + Send + Sync + 'static) {
        let _ = self.0.observer.set(Box::new(observer));
    }

    fn report(&self) {
        if let Some(observer) = self.0.observer.get() {
            observer(self);
        }
    }

    /// Returns all known origins.
    pub fn all(&self) -> Vec<(String, Transport)> {
        self.0.by_origin.lock().iter().map(|(origin, transport)| (origin.clone(), *transport)).collect()
    }
}

impl fmt::Debug for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.all()).finish()
    }
}

/// Connects to a remote agent. Must be called within a tokio runtime.
///
/// A URL of `ws` or `wss` is a WebSocket. For `http` and `https` a WebSocket is tried first; a
/// server that refuses it is connected by Streamable HTTP, and so are later connections to it.
/// Without a path the URL means `/acp`.
///
/// With Streamable HTTP this does not talk to the server yet if its transport is known: the first
/// request is `initialize`.
///
/// # Errors
/// See [`RemoteError`]. Transient ones are repeated as [`Options::retry`] says.
// HTTP-02: both transports.
pub async fn connect(url: &str, options: &Options) -> Result<Link, RemoteError> {
    let mut failures = 0;
    loop {
        match connect_once(url, options).await {
            Ok(link) if options.reconnect.attempts > 0 => return Ok(reconnect::link(link, url, options)),
            Err(error) if error.is_transient() && failures < options.retry.attempts => {
                tokio::time::sleep(error.pause(&options.retry, failures)).await;
                failures += 1;
            }
            other => return other,
        }
    }
}

async fn connect_once(url: &str, options: &Options) -> Result<Link, RemoteError> {
    let endpoint = Endpoint::parse(url, options)?;
    let known = match endpoint.must_upgrade {
        true => Some(Transport::WebSocket),
        false => options.transport.or_else(|| options.transports.get(&endpoint.origin)),
    };
    if known != Some(Transport::StreamableHttp) {
        match websocket::open(&endpoint).await? {
            Outcome::Link(link) => {
                options.transports.insert(&endpoint.origin, Transport::WebSocket);
                return Ok(link);
            }
            Outcome::Refused(response) if endpoint.must_upgrade || !is_without_websocket(response.status) => {
                return Err(RemoteError::from_response(&response));
            }
            // Remembered after `initialize`: the path may be wrong.
            Outcome::Refused(_) => {}
        }
    }
    Ok(streamable::link(endpoint))
}

/// Whether a status means that the server has no WebSocket at this URL, rather than that it refuses
/// this client.
fn is_without_websocket(status: u16) -> bool {
    matches!(status, 200..300 | 400 | 404 | 405 | 406 | 426 | 501)
}

/// A server with everything that its requests have in common.
struct Endpoint {
    client: HttpClient,
    /// An `http` or `https` URL.
    url: String,
    origin: String,
    /// Whether the URL names the WebSocket.
    must_upgrade: bool,
    version: Version,
    headers: Vec<(String, String)>,
    cookies: Cookies,
    transports: Transports,
    /// Whether a connection that is cut is made again.
    reconnects: bool,
}

impl Endpoint {
    fn parse(url: &str, options: &Options) -> Result<Self, RemoteError> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (scheme, must_upgrade) = match scheme.to_ascii_lowercase().as_str() {
            "ws" => ("http", true),
            "wss" => ("https", true),
            "http" => ("http", false),
            "https" => ("https", false),
            _ => {
                return Err(RemoteError::Url(format!(
                    "`{url}` is not a URL of an agent; write wss://host/path"
                )));
            }
        };
        let must_upgrade = must_upgrade || options.transport == Some(Transport::WebSocket);
        let mut url = format!("{scheme}://{rest}");
        let target = Target::parse(&url)?;
        // HTTP-01
        if target.uri.path_and_query().is_none_or(|path| path.as_str() == "/") {
            url = format!("{scheme}://{}/acp", target.host_header());
        }
        let client = match &options.client {
            Some(client) => client.clone(),
            None => HttpClient::from_env()?,
        };
        let mut headers = options.headers.clone();
        headers.extend(
            options.token.iter().map(|token| ("authorization".to_owned(), format!("Bearer {token}"))),
        );
        let version = match options.http2_prior_knowledge && !target.tls {
            true => Version::Http2,
            false => Version::Negotiated,
        };
        let origin = format!("{scheme}://{}", target.authority());
        let (cookies, transports) = (options.cookies.clone(), options.transports.clone());
        let reconnects = options.reconnect.attempts > 0;
        Ok(Endpoint { client, url, origin, must_upgrade, version, headers, cookies, transports, reconnects })
    }

    /// A request with the common headers.
    fn request(&self, request: Request) -> Request {
        let mut request = request;
        request.headers.extend(self.headers.iter().cloned());
        request.headers.extend(self.cookies.header().map(|cookies| ("cookie".to_owned(), cookies)));
        request
    }

    fn get(&self) -> Request {
        self.request(Request::get(&self.url))
    }
}
