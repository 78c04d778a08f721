//! Connections that are kept for several requests.

use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use tokio_rustls::rustls::ClientConfig;

use super::connect::{Opened, Route};
use super::request::{self, Wire};
use super::response::Response;
use super::target::Target;
use super::{HttpClient, HttpError, Request};

/// The version of HTTP that a [`Channel`] speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/2 if the server chooses it in the TLS handshake, otherwise HTTP/1.1.
    #[default]
    Negotiated,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, also without TLS.
    Http2,
}

/// Sends requests to one server one after the other and keeps the connection in between.
///
/// Channels that were cloned from each other share one connection if it is HTTP/2. With HTTP/1.1
/// each has its own, and a response has to be read to its end before the connection can be used
/// again.
pub struct Channel {
    client: HttpClient,
    version: Version,
    http1: Option<http1::SendRequest<Full<Bytes>>>,
    shared: Arc<Shared>,
}

struct Shared {
    tls: Arc<ClientConfig>,
    http2: Mutex<Option<http2::SendRequest<Full<Bytes>>>>,
}

impl Clone for Channel {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Channel { client: self.client.clone(), version: self.version, http1: None, shared }
    }
}

impl Channel {
    /// A channel without a connection yet. All requests must go to the same server.
    pub fn new(client: &HttpClient, version: Version) -> Self {
        let mut tls = ClientConfig::clone(&client.tls);
        tls.alpn_protocols = match version {
            Version::Negotiated => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Version::Http1 => vec![b"http/1.1".to_vec()],
            Version::Http2 => vec![b"h2".to_vec()],
        };
        let shared = Shared { tls: Arc::new(tls), http2: Mutex::new(None) };
        Channel { client: client.clone(), version, http1: None, shared: Arc::new(shared) }
    }

    /// Sends a request and waits for the head of the response. A kept connection that the server
    /// has closed is replaced, if the request was not sent yet.
    ///
    /// # Errors
    /// As [`HttpClient::send`].
    pub async fn send(&mut self, request: &Request) -> Result<Response, HttpError> {
        let client = self.client.clone();
        let silence = client.timeouts.silence;
        let response = client.within_response_limit(self.send_now(request)).await;
        if response.is_err() {
            self.http1 = None;
        }
        response.map(|response| Response::new(response, None, silence))
    }

    async fn send_now(
        &mut self,
        request: &Request,
    ) -> Result<hyper::Response<hyper::body::Incoming>, HttpError> {
        let target = Target::parse(&request.url)?;
        loop {
            let is_new = self.connect_if_needed(&target, request).await?;
            // The server may close a kept connection at any time, so an unsent request gets a new
            // one.
            let unsent = if let Some(sender) = &mut self.http1 {
                match sender.try_send_request(request::build(request, &target, Wire::Kept)?).await {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                }
            } else {
                let sender = self.shared.http2.lock().clone();
                let Some(mut sender) = sender else { continue };
                match sender.try_send_request(request::build(request, &target, Wire::Http2)?).await {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                }
            };
            let mut unsent = unsent;
            let was_sent = unsent.take_message().is_none();
            let error = HttpError::from(unsent.into_error());
            self.http1 = None;
            if was_sent {
                return Err(error);
            }
            self.shared.http2.lock().take_if(|sender| sender.is_closed());
            if is_new {
                return Err(error.unsent());
            }
        }
    }

    /// Makes a connection unless there is one. Returns whether it is new.
    async fn connect_if_needed(&mut self, target: &Target, request: &Request) -> Result<bool, HttpError> {
        if let Some(sender) = &mut self.http1
            && sender.ready().await.is_ok()
        {
            return Ok(false);
        }
        self.http1 = None;
        let shared = self.shared.http2.lock().clone();
        if let Some(mut sender) = shared
            && sender.ready().await.is_ok()
        {
            return Ok(false);
        }
        let proxy = self.client.proxy(target);
        let route = Route { target, addresses: &request.addresses, proxy, always_tunnel: true };
        let Opened { io, is_http2 } = self.client.open(route, &self.shared.tls).await?;
        if is_http2 || self.version == Version::Http2 && !target.tls {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(HttpError::from)?;
            tokio::spawn(async move {
                // Its error reaches each request.
                let _ = connection.await;
            });
            *self.shared.http2.lock() = Some(sender);
        } else if self.version == Version::Http2 {
            return Err(HttpError::broken("the server does not speak HTTP/2").unsent());
        } else {
            let (sender, connection) = http1::handshake(io).await.map_err(HttpError::from)?;
            tokio::spawn(async move {
                let _ = connection.await;
            });
            self.http1 = Some(sender);
        }
        Ok(true)
    }
}
