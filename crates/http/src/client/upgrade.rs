//! Requests that turn their connection into another protocol.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::ClientConfig;

use super::connect::{Opened, ReadWrite, Route};
use super::request::{self, Wire};
use super::response::Response;
use super::target::Target;
use super::{HttpClient, HttpError, Request};

/// The outcome of a request for another protocol.
pub enum Upgrade {
    /// The server responded 101.
    Switched(Upgraded),
    /// Any other response.
    Refused(Response),
}

/// A connection in another protocol.
pub struct Upgraded {
    /// The headers of the response.
    pub(super) headers: HeaderMap,
    stream: Box<dyn ReadWrite>,
    /// Bytes that arrived together with the response.
    early: Bytes,
}

impl HttpClient {
    /// Sends a request with the headers `connection` and `upgrade` over HTTP/1.1.
    ///
    /// # Errors
    /// As [`HttpClient::send`].
    pub async fn upgrade(&self, request: &Request) -> Result<Upgrade, HttpError> {
        let target = Target::parse(&request.url)?;
        let proxy = self.proxy(&target);
        let route = Route { target: &target, addresses: &request.addresses, proxy, always_tunnel: true };
        let message = request::build(request, &target, Wire::Kept)?;
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let Opened { io, .. } = self.open(route, &Arc::new(tls)).await?;
        self.within_response_limit(async {
            let (mut sender, connection) = http1::handshake(io).await?;
            let mut connection = Box::pin(connection);
            let mut response = std::pin::pin!(sender.send_request(message));
            let mut is_done = false;
            let response = poll_fn(|cx| {
                // After a switch the socket must stay open, and this poll ends with it.
                is_done = is_done || connection.poll_without_shutdown(cx).is_ready();
                response.as_mut().poll(cx)
            })
            .await?;
            if response.status() != hyper::StatusCode::SWITCHING_PROTOCOLS {
                let connection = (!is_done).then_some(connection);
                return Ok(Upgrade::Refused(Response::new(response, connection, self.timeouts.silence)));
            }
            if !is_done {
                poll_fn(|cx| connection.poll_without_shutdown(cx)).await?;
            }
            let parts = Pin::into_inner(connection).into_parts();
            Ok(Upgrade::Switched(Upgraded {
                headers: response.into_parts().0.headers,
                stream: parts.io.into_inner(),
                early: parts.read_buf,
            }))
        })
        .await
    }
}

impl Upgraded {
    /// Returns the first header of this name in the response, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns all headers of this name in the response that are text.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Returns the socket, and the bytes that arrived together with the response.
    pub fn into_parts(self) -> (impl AsyncRead + AsyncWrite + Send + Unpin + 'static, Vec<u8>) {
        (self.stream, self.early.to_vec())
    }
}
