//! The address of a server.

use std::fmt;
use std::io;

use attache_conn::Link;
use attache_http::Transport as LinkKind;
use attache_http::client::remote::{Options, connect};
use attache_http::client::{HttpClient, RawStream};

use crate::transport::Transport;

/// A server under test.
#[derive(Clone)]
pub struct Endpoint {
    client: HttpClient,
    /// An `http` or `https` URL.
    url: String,
    /// The value of the header `host`.
    host: String,
    /// The path with the query.
    path: String,
    token: Option<String>,
}

impl Endpoint {
    /// The server at a URL of `ws`, `wss`, `http` or `https`. Without a path the URL means `/acp`.
    ///
    /// # Errors
    /// If it is no such URL, or the file in `SSL_CERT_FILE` cannot be read.
    pub fn new(url: &str, token: Option<String>) -> io::Result<Endpoint> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "ws" | "http" => "http",
            "wss" | "https" => "https",
            _ => {
                let why = format!("`{url}` is not the URL of a server; write https://host/path");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        };
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(split);
        let path = match path {
            "" | "/" => "/acp".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            query => format!("/{query}"),
        };
        let url = format!("{scheme}://{host}{path}");
        attache_http::client::check_url(&url)?;
        Ok(Endpoint { client: HttpClient::from_env()?, url, host: host.to_owned(), path, token })
    }

    /// The URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether requests carry a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The same server, addressed without the token.
    pub(crate) fn without_token(&self) -> Endpoint {
        Endpoint { token: None, ..self.clone() }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The origin of pages of this server.
    pub(crate) fn origin(&self) -> String {
        let scheme = self.url.split("://").next().unwrap_or_default();
        format!("{scheme}://{}", self.host)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value of the header `authorization`.
    pub(crate) fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    /// Opens a connection for HTTP/1.1.
    pub(crate) async fn open(&self) -> io::Result<RawStream> {
        Ok(self.client.open_raw(&self.url, &["http/1.1"]).await?)
    }

    /// Opens a connection for HTTP/2, if the server agrees to it in the TLS handshake. Without TLS
    /// nothing is agreed.
    pub(crate) async fn open_http2(&self) -> io::Result<(RawStream, bool)> {
        let stream = self.client.open_raw(&self.url, &["h2"]).await?;
        let agreed = stream.is_http2() || self.url.starts_with("http://");
        Ok((stream, agreed))
    }

    /// The transport of ordinary conversations: WebSocket, or HTTP if the server has no other.
    pub async fn preferred(&self) -> Transport {
        match self.link(Transport::WebSocket).await {
            Ok(_) => Transport::WebSocket,
            Err(_) => Transport::Http,
        }
    }

    /// Connects as an ordinary client.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub(crate) async fn link(&self, transport: Transport) -> io::Result<Link> {
        let transport = match transport {
            Transport::Http => LinkKind::StreamableHttp,
            Transport::WebSocket | Transport::Stdio => LinkKind::WebSocket,
        };
        let options = Options {
            token: self.token.clone(),
            client: Some(self.client.clone()),
            transport: Some(transport),
            ..Options::default()
        };
        Ok(connect(&self.url, &options).await?)
    }
}

/// Without the token.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}
