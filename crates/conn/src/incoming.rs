//! Requests and notifications of the peer on their way to a handler.
//!
//! The params of most messages arrive unvalidated. A handler that decodes them proves in the same
//! pass that they are JSON, so large messages are parsed once. If decoding fails, the params are
//! validated, and a line that is not JSON is refused without a handler.

use crate::Responder;
use crate::shared::Shared;
use attache_rpc::{ErrorObject, Id, RawCall};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A request of the peer. It opens when its params are known to be valid; dropping it before that
/// sends an internal error.
pub struct IncomingRequest<'a> {
    message: Message<'a>,
    id: Id,
}

/// A notification of the peer.
pub struct IncomingNotification<'a>(Message<'a>);

struct Message<'a> {
    shared: &'a Arc<Shared>,
    line: &'a [u8],
    method: Cow<'a, str>,
    params: Params<'a>,
    disposition: &'a mut Disposition,
}

/// The params of a message.
#[derive(Clone, Copy)]
pub(crate) enum Params<'a> {
    Unvalidated(&'a str),
    Valid(Option<&'a RawValue>),
}

impl<'a> Params<'a> {
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Params::Unvalidated(text) => serde_json::from_str::<&RawValue>(text).is_ok(),
            Params::Valid(_) => true,
        }
    }

    fn text(&self) -> &'a str {
        match self {
            Params::Unvalidated(text) => text,
            Params::Valid(raw) => raw.map_or("", RawValue::get),
        }
    }
}

/// State of a message after its handler has returned.
#[derive(Debug, Default)]
pub(crate) enum Disposition {
    /// The handler dropped it.
    #[default]
    Dropped,
    /// The params are valid, and the handler has the request or notification.
    Consumed,
    /// The params are not JSON, so the line is another message or malformed.
    Invalid,
    /// The request was refused, and the error response is written.
    Refused(&'static str),
}

impl<'a> Message<'a> {
    /// Reads the params with `parse`, and with `fallback` if that fails on valid JSON.
    fn decode<T, E>(
        &mut self,
        parse: impl FnOnce(&'a str) -> serde_json::Result<T>,
        fallback: impl FnOnce(Option<&'a RawValue>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        match parse(self.params.text()) {
            Ok(value) => Some(Ok(value)),
            Err(_) => self.validate().map(fallback),
        }
    }

    /// Returns the valid params, or `None` if they are not JSON.
    fn validate(&mut self) -> Option<Option<&'a RawValue>> {
        match self.params {
            Params::Valid(raw) => Some(raw),
            Params::Unvalidated(text) => match serde_json::from_str(text) {
                Ok(raw) => Some(Some(raw)),
                Err(_) => {
                    *self.disposition = Disposition::Invalid;
                    None
                }
            },
        }
    }
}

impl<'a> IncomingRequest<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        line: &'a [u8],
        call: (Id, Cow<'a, str>, Params<'a>),
        disposition: &'a mut Disposition,
    ) -> Self {
        let (id, method, params) = call;
        IncomingRequest { message: Message { shared, line, method, params, disposition }, id }
    }

    /// Returns the method name.
    pub fn method(&self) -> &str {
        &self.message.method
    }

    /// The text of the params, perhaps not validated yet; empty if there are none.
    pub fn params_text(&self) -> &'a str {
        self.message.params.text()
    }

    /// Whether the id is `null`, which JSON-RPC discourages.
    pub fn has_null_id(&self) -> bool {
        self.id == Id::Null
    }

    /// Returns the size of the params in bytes.
    pub fn params_len(&self) -> usize {
        self.message.params.text().len()
    }

    /// Validates the params and opens the request. Returns `None` if it was refused: the line is
    /// not JSON, the id is in use, or too many requests are open.
    pub fn open(mut self) -> Option<(Option<&'a RawValue>, Responder)> {
        let params = self.message.validate()?;
        Some((params, self.respond()?))
    }

    /// Decodes the params and opens the request. `parse` must read its text to the end as one JSON
    /// value; if it fails, `fallback` gets the validated params, and its error becomes the
    /// response.
    ///
    /// Returns `None` if the request was refused or answered with an error.
    pub fn decode<T>(
        mut self,
        parse: impl FnOnce(&'a str) -> serde_json::Result<T>,
        fallback: impl FnOnce(Option<&'a RawValue>) -> Result<T, ErrorObject>,
    ) -> Option<(T, Responder)> {
        let decoded = self.message.decode(parse, fallback)?;
        let responder = self.respond()?;
        match decoded {
            Ok(value) => Some((value, responder)),
            Err(error) => {
                responder.err(error);
                None
            }
        }
    }

    /// Responds with an error.
    pub fn reject(self, error: ErrorObject) {
        if let Some((_, responder)) = self.open() {
            responder.err(error);
        }
    }

    fn respond(self) -> Option<Responder> {
        let Message { shared, line, disposition, .. } = self.message;
        match shared.open_request(&self.id, line.len()) {
            Ok(token) => {
                *disposition = Disposition::Consumed;
                Some(Responder::new(shared, self.id, token, line.len()))
            }
            Err(reason) => {
                *disposition = Disposition::Refused(reason);
                None
            }
        }
    }
}

impl<'a> IncomingNotification<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        line: &'a [u8],
        call: (Cow<'a, str>, Params<'a>),
        disposition: &'a mut Disposition,
    ) -> Self {
        let (method, params) = call;
        IncomingNotification(Message { shared, line, method, params, disposition })
    }

    /// Returns the method name.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the text of the params, which may be invalid JSON.
    pub fn params_text(&self) -> &'a str {
        self.0.params.text()
    }

    /// Validates the params. Returns `None` if the line is not JSON and was refused.
    pub fn open(mut self) -> Option<Option<&'a RawValue>> {
        let params = self.0.validate()?;
        *self.0.disposition = Disposition::Consumed;
        Some(params)
    }

    /// Decodes the params. `parse` must read its text to the end as one JSON value; if it fails,
    /// `fallback` gets the validated params.
    ///
    /// Returns `None` if the line is not JSON and was refused, or if both failed.
    pub fn decode<T>(
        mut self,
        parse: impl FnOnce(&'a str) -> serde_json::Result<T>,
        fallback: impl FnOnce(Option<&'a RawValue>) -> Option<T>,
    ) -> Option<T> {
        let decoded = self.0.decode(parse, |raw| fallback(raw).ok_or(()))?;
        *self.0.disposition = Disposition::Consumed;
        decoded.ok()
    }
}

/// Splits a scanned call for [`IncomingRequest::new`] and [`IncomingNotification::new`].
pub(crate) fn unvalidated(call: RawCall<'_>) -> (Option<Id>, Cow<'_, str>, Params<'_>) {
    (call.id, Cow::Borrowed(call.method), Params::Unvalidated(call.params))
}

impl fmt::Debug for IncomingRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingRequest").field("id", &self.id).field("method", &self.method()).finish()
    }
}

impl fmt::Debug for IncomingNotification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingNotification").field("method", &self.method()).finish()
    }
}
