//! Responses: empty ones, JSON, and refusals with their reasons.

use super::sse::Events;
use super::usage::Full;
use bytes::Bytes;
use http_body_util::{Either, Full as FullBody};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};

pub(super) type Response = hyper::Response<Either<FullBody<Bytes>, Events>>;

/// Seconds after which a refused client may try again.
pub(super) const RETRY: HeaderValue = HeaderValue::from_static("5");

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Either::Left(FullBody::default()));
    *response.status_mut() = status;
    response
}

/// A refusal with its reason as text.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(Either::Left(FullBody::from(format!("{why}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Either::Left(FullBody::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Sets a header whose value is known to be printable.
pub(super) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

pub(super) fn refused(status: StatusCode, why: &str) -> Box<Response> {
    Box::new(refuse(status, why))
}

/// A refusal of a body whose bytes are too many.
pub(super) fn too_many_bytes(full: Full) -> Box<Response> {
    match full {
        Full::Server => {
            busy(StatusCode::SERVICE_UNAVAILABLE, "the server has received too many bytes at once")
        }
        Full::Identity => too_many("there are too many received bytes of this token"),
    }
}

/// A refusal by a limit of a client.
pub(super) fn too_many(why: &'static str) -> Box<Response> {
    busy(StatusCode::TOO_MANY_REQUESTS, why)
}

// HTTP-39
pub(super) fn busy(status: StatusCode, why: &'static str) -> Box<Response> {
    let mut response = refused(status, why);
    response.headers_mut().insert(RETRY_AFTER, RETRY);
    response
}
