//! Responses and their bodies.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::HeaderMap;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;

use super::connect::Io;
use super::{HttpError, date};

pub(super) type Connection = Pin<Box<http1::Connection<Io, Full<Bytes>>>>;

/// Drives the connection while a caller waits for its data.
pub(super) fn drive(connection: &mut Option<Connection>, cx: &mut Context<'_>) {
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
    pub(super) headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Response {
    pub(super) fn new(
        response: hyper::Response<Incoming>,
        connection: Option<Connection>,
        silence: Option<Duration>,
    ) -> Self {
        let (head, body) = response.into_parts();
        let body = Body { body, connection, silence };
        Response { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Returns the first header of this name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns all headers of this name that are text.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Returns the pause that the header `retry-after` asks for, in seconds or as a date.
    pub fn retry_after(&self) -> Option<Duration> {
        date::retry_after(|name| self.header(name))
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The body of a response, in chunks. Dropping it before its end closes the connection.
pub struct Body {
    body: Incoming,
    connection: Option<Connection>,
    silence: Option<Duration>,
}

impl Body {
    /// Returns the next chunk; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke, or the server was silent for longer than the client's limit.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(limit) = self.silence else { return poll_fn(|cx| self.poll_chunk(cx)).await };
        let chunk = tokio::time::timeout(limit, poll_fn(|cx| self.poll_chunk(cx))).await;
        chunk.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f32();
            Err(HttpError::timeout(format!("the server was silent for {seconds} s")))
        })
    }

    /// Like [`Body::chunk`], without the limit for silence.
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
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// Those of [`Body::chunk`], and [`ErrorKind::TooLong`](super::ErrorKind::TooLong) if it is
    /// longer than `limit`.
    pub async fn bytes(&mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > limit {
                return Err(HttpError::too_long());
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}
