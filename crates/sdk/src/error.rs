//! Errors of this crate. The error on the wire is another type: [`ErrorObject`].

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use attache_conn::{CallError, Closed};
use attache_rpc::{ErrorObject, code};
use attache_wire::v1::{ProtocolVersion, SessionNotFoundErrorData};

/// The result of everything in this crate.
///
/// Example: [`attache`](crate).
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call, a turn or a connection failed.
///
/// `Debug` prints the same text as `Display`, because programs return errors from `main`.
///
/// ```
/// use attache::{Error, Link};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = Error::from(Link::spawn("/no/such/agent").unwrap_err());
/// assert!(error.is_not_found() && matches!(error, Error::Io(_)));
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended. The value holds the exit status and the end of stderr of a child
    /// process.
    Closed(Closed),
    /// The work was cancelled.
    Cancelled,
    /// The peer answered with an error.
    Refused(ErrorObject),
    /// A local operation failed, such as starting a program or reading a file.
    Io(Arc<io::Error>),
    /// The peer did not answer in time.
    Timeout {
        /// The method of the request.
        method: String,
        /// The time that was allowed.
        after: Duration,
        /// Output of the agent that may explain the silence; empty if there is none.
        output: String,
    },
    /// The peer speaks another version of the protocol.
    Version {
        /// The version of the peer.
        theirs: ProtocolVersion,
        /// The version of this crate.
        ours: ProtocolVersion,
    },
    /// An argument of the caller cannot be used: a relative path, an unknown mode. Nothing was
    /// sent.
    Invalid(String),
    /// The peer does not support the operation. Nothing was sent.
    Unsupported(&'static str),
    /// A message of the peer does not fit its method.
    Decode {
        /// The method.
        method: String,
        /// The reason.
        reason: String,
    },
    /// Any other failure on this side.
    Internal(Arc<dyn StdError + Send + Sync>),
}

impl Error {
    /// A failure of the caller's own, from a text or any error. The peer never sees its text.
    pub fn internal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error::Internal(Arc::from(error.into()))
    }

    /// An answer of any code, sent to the peer unchanged.
    pub fn refuse(code: i32, message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::new(code, message))
    }

    /// An answer that the params of a request are invalid (-32602).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::invalid_params(message))
    }

    /// An answer that a resource does not exist (-32002).
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::resource_not_found(message))
    }

    /// An answer that the client has to authenticate first (-32000).
    pub fn auth_required() -> Self {
        Error::Refused(ErrorObject::auth_required())
    }

    /// An answer that a session does not exist (-32002), with its id as the data.
    pub(crate) fn unknown_session(id: &str) -> Self {
        // RPC-18: the error names the session.
        let error = ErrorObject::resource_not_found("no such session");
        Error::Refused(error.with_data(&SessionNotFoundErrorData::new(id)))
    }

    /// Whether a resource does not exist, according to the peer (-32002) or the operating system.
    pub fn is_not_found(&self) -> bool {
        match self {
            Error::Refused(error) => error.code == code::RESOURCE_NOT_FOUND,
            Error::Io(error) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Whether the peer requires authentication first (-32000).
    pub fn is_auth_required(&self) -> bool {
        matches!(self, Error::Refused(error) if error.code == code::AUTH_REQUIRED)
    }

    /// The error as the peer sees it: refusals unchanged, a missing file as -32002, all else as
    /// "internal error".
    pub fn to_wire(&self) -> ErrorObject {
        match self {
            Error::Refused(error) => error.clone(),
            // CANCEL-19: internal cancellation has the same code as a requested one.
            Error::Cancelled => ErrorObject::cancelled(),
            Error::Unsupported(_) => ErrorObject::internal(self.to_string()),
            // FS-13: a missing file differs from other failures; its path is not sent.
            _ if self.is_not_found() => ErrorObject::resource_not_found("there is no such file"),
            _ => ErrorObject::internal(INTERNAL),
        }
    }

    /// Whether the peer cannot see the cause.
    pub(crate) fn is_hidden(&self) -> bool {
        !matches!(self, Error::Refused(_) | Error::Cancelled | Error::Unsupported(_)) && !self.is_not_found()
    }
}

/// The text of all errors whose cause the peer must not see.
const INTERNAL: &str = "internal error";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed(closed) => write!(f, "{closed}"),
            Error::Cancelled => f.write_str("cancelled"),
            Error::Refused(error) => write!(f, "{error}"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Timeout { method, after, output } => {
                write!(f, "the agent did not answer `{method}` within {after:?}{output}")
            }
            Error::Version { theirs, ours } => write!(
                f,
                "the agent speaks version {theirs} of the protocol and this client version {ours}; update one of them"
            ),
            Error::Invalid(reason) => f.write_str(reason),
            Error::Unsupported(what) => write!(f, "the peer does not support {what}"),
            Error::Decode { method, reason } => write!(f, "invalid `{method}` from the peer: {reason}"),
            Error::Internal(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    /// The cause of this error.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Io(error) => error.source(),
            Error::Internal(error) => error.source(),
            _ => None,
        }
    }
}

#[doc(hidden)]
impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed(closed) => Error::Closed(closed),
            CallError::Refused(error) if error.code == code::CANCELLED => Error::Cancelled,
            CallError::Refused(error) => Error::Refused(error),
            CallError::Withdrawn => Error::Cancelled,
            other => Error::internal(other),
        }
    }
}

impl From<Closed> for Error {
    fn from(closed: Closed) -> Self {
        Error::Closed(closed)
    }
}

impl From<ErrorObject> for Error {
    fn from(error: ErrorObject) -> Self {
        Error::Refused(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(Arc::new(error))
    }
}

#[cfg(feature = "http")]
impl From<attache_http::client::remote::RemoteError> for Error {
    fn from(error: attache_http::client::remote::RemoteError) -> Self {
        io::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::internal(error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_local_failure_is_not_a_refusal_of_the_peer() {
        let error = Error::from(attache_conn::Link::spawn("/does/not/exist").err().unwrap());
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains("/does/not/exist"), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string());
        let full = Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.to_wire(), ErrorObject::internal("internal error"));
    }

    #[test]
    fn the_peer_learns_that_a_file_is_missing() {
        let error = Error::from(std::fs::read("/does/not/exist").unwrap_err());
        assert!(error.is_not_found());
        assert_eq!(error.to_wire().code, code::RESOURCE_NOT_FOUND);
        assert!(!error.to_wire().message.contains("exist"), "{error}");
    }

    #[test]
    fn an_internal_error_keeps_its_chain() {
        #[derive(Debug)]
        struct Outer(io::Error);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("cannot save the session")
            }
        }
        impl StdError for Outer {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&self.0)
            }
        }
        let error = Error::internal(Outer(io::Error::other("disk full")));
        assert_eq!(error.to_string(), "cannot save the session");
        assert_eq!(error.source().unwrap().to_string(), "disk full");
    }
}
