//! Callers that wait for a response.

use crate::Closed;
use attache_rpc::{ErrorObject, RequestError};
use serde_json::value::RawValue;
use std::fmt;
use tokio::sync::oneshot;

/// Reason why a call has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The connection ended before the response.
    Closed(Closed),
    /// The peer responded with an error.
    Refused(ErrorObject),
    /// Not sent: the params cannot be serialized, or too many calls are open.
    Encode(RequestError),
    /// Not sent: the flag of [`Peer::unless`](crate::Peer::unless) was set.
    Withdrawn,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Closed(closed) => closed.fmt(f),
            CallError::Refused(error) => error.fmt(f),
            CallError::Encode(error) => error.fmt(f),
            CallError::Withdrawn => f.write_str("the message was not sent, because its context is over"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallError::Closed(closed) => Some(closed),
            CallError::Refused(error) => Some(error),
            CallError::Encode(error) => Some(error),
            CallError::Withdrawn => None,
        }
    }
}

/// Identifies a request of ours, for [`Peer::abandon`](crate::Peer::abandon) and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub(crate) Option<i64>);

/// The receiver of a response.
pub(crate) enum Waiter {
    Call(oneshot::Sender<Result<Box<RawValue>, CallError>>),
    Callback(OnResponse),
}

/// Runs in the reader, between two messages.
type OnResponse = Box<dyn FnOnce(Result<&RawValue, CallError>) + Send>;

impl Waiter {
    /// Passes on the response.
    pub(crate) fn complete(self, outcome: Result<&RawValue, CallError>) {
        match self {
            // A dropped receiver does not want the response any more.
            Waiter::Call(call) => drop(call.send(outcome.map(RawValue::to_owned))),
            Waiter::Callback(callback) => callback(outcome),
        }
    }
}
