//! The body of a POST: its bytes, and the parts of the message that decide where it goes.

use super::listen::Shared;
use super::response::{Response, json, refused, too_many_bytes};
use super::usage::HeldBytes;
use crate::message::{DEPTH, session_id};
use attache_conn::rpc::{ErrorObject, Fault, Frame, Id, Malformed};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use std::borrow::Cow;
use std::pin::pin;

/// The body of a request.
pub(super) trait RequestBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send {}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send> RequestBody for B {}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads a body, which `received` counts.
// HTTP-30
pub(super) async fn read<B: RequestBody>(
    shared: &Shared,
    body: B,
    received: &mut HeldBytes,
) -> Result<Bytes, Box<Response>> {
    let limits = &shared.options.limits;
    let too_large =
        || refused(StatusCode::PAYLOAD_TOO_LARGE, &format!("a message may have {} bytes", limits.message));
    let hint = body.size_hint();
    if hint.lower() > limits.message as u64 {
        return Err(too_large());
    }
    // Bodies that wait for each other while they are received would never end, so there is no
    // waiting here.
    let expected = hint.lower() as usize;
    received.try_add(expected, limits).map_err(too_many_bytes)?;
    let reading = async {
        let (mut body, mut bytes) = (pin!(Limited::new(body, limits.message)), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
                Err(_) => return Err(refused(StatusCode::BAD_REQUEST, "the body is incomplete")),
            };
            let more = (bytes.len() + data.len()).saturating_sub(received.get());
            received.try_add(more, limits).map_err(too_many_bytes)?;
            if bytes.is_empty() {
                bytes.reserve(expected.max(data.len()));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    let too_slow = |_| Err(refused(StatusCode::REQUEST_TIMEOUT, "the body took too long"));
    tokio::time::timeout(limits.body, reading).await.unwrap_or_else(too_slow)
}

/// The parts of a message that decide where it goes.
pub(super) struct Message<'a> {
    /// The id of a request.
    pub(super) id: Option<Id>,
    pub(super) method: Option<&'a str>,
    pub(super) session: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Message<'a>, Box<Response>> {
        if std::str::from_utf8(body).is_err() {
            return Err(refused(StatusCode::BAD_REQUEST, "the body is not UTF-8"));
        }
        let method = |method: Cow<'a, str>| match method {
            Cow::Borrowed(method) => method,
            // An escaped name is none of ours.
            Cow::Owned(_) => "",
        };
        Ok(match Frame::parse(body, DEPTH) {
            Frame::Request { id, method: name, params } => Message {
                id: Some(id),
                method: Some(method(name)),
                session: params.and_then(|params| session_id(params.get())),
            },
            Frame::Notification { method: name, params } => Message {
                id: None,
                method: Some(method(name)),
                session: params.and_then(|params| session_id(params.get())),
            },
            Frame::Response { .. } => Message { id: None, method: None, session: None },
            // CANCEL-14: a keep-alive such as `{"method":"$/ping"}` is accepted like any
            // notification.
            Frame::Malformed(Malformed { fault: Fault::NotMessage, answer: None, .. }) => {
                Message { id: None, method: None, session: None }
            }
            // HTTP-23: also a batch.
            Frame::Malformed(malformed) => {
                let (id, error) = malformed
                    .answer
                    .unwrap_or_else(|| (Id::Null, ErrorObject::invalid_request(malformed.fault.to_string())));
                let answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
                return Err(Box::new(json(StatusCode::BAD_REQUEST, answer.to_string().into_bytes())));
            }
            _ => Message { id: None, method: None, session: None },
        })
    }
}

/// Whether a known method is about one session. The agent refuses unknown ones itself.
pub(super) fn needs_session(method: &str) -> bool {
    let Some(name) = method.strip_prefix("session/") else { return false };
    matches!(
        name,
        "load"
            | "resume"
            | "fork"
            | "close"
            | "delete"
            | "prompt"
            | "cancel"
            | "set_mode"
            | "set_model"
            | "set_config_option"
            | "set_title"
            | "status"
            | "archive"
            | "unarchive"
    )
}
