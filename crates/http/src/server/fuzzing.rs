//! A server without sockets, for the fuzz target `router`.

use super::listen::Shared;
use super::{Accepted, Options, router};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The router of a server.
#[derive(Debug)]
pub struct Router {
    shared: Arc<Shared>,
    remote: SocketAddr,
}

impl Router {
    /// A router, and its clients.
    pub fn new(options: Options) -> (Router, mpsc::Receiver<Accepted>) {
        let (sender, accepted) = mpsc::channel(64);
        let remote = SocketAddr::from(([127, 0, 0, 1], 80));
        (Router { shared: Arc::new(Shared::new(options, remote, sender)), remote }, accepted)
    }

    /// Returns status and headers of the response; `None` for parts of which no request can be
    /// made.
    pub async fn respond(
        &self,
        method: &[u8],
        uri: &[u8],
        headers: &[(&[u8], &[u8])],
        body: &[u8],
    ) -> Option<(u16, Vec<(String, Vec<u8>)>)> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).ok()?;
        let response = router::respond(&self.shared, self.remote, request).await;
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_owned()));
        Some((response.status().as_u16(), headers.collect()))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.shared.connections.close();
    }
}
