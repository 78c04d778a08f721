//! What can go wrong for the caller. The error on the wire is another type: [`ErrorObject`].

use std::fmt;
use std::io;
use std::sync::Arc;

use attache_conn::{CallError, Closed};
use attache_rpc::{ErrorObject, code};

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call, a turn or a connection did not end as it should.
///
/// `Debug` prints the same text as `Display`, because programs return errors from `main`.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// The connection is gone; the value says how it ended, with the child's exit status and last words.
    Closed(Closed),
    /// The work was cancelled.
    Cancelled,
    /// The peer refused, with its own words.
    Refused(ErrorObject),
    /// What the peer sent does not fit the method.
    Decode {
        /// The method.
        method: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The peer did not offer what was asked for.
    Unsupported(&'static str),
    /// The system refused something on our side, such as starting a program or reading a file. The peer is told only whether a file is
    /// missing (FS-13).
    Io(Arc<io::Error>),
    /// Something on our side; the text is for logs and never sent to the peer.
    Internal(String),
}

impl Error {
    /// An error of our own making.
    pub fn internal(reason: impl fmt::Display) -> Self {
        Error::Internal(reason.to_string())
    }

    /// A refusal to be sent to the peer as it is.
    pub fn refuse(code: i32, message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::new(code, message))
    }

    /// Refuses what the caller asked for: the params do not fit (-32602).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::invalid_params(message))
    }

    /// Refuses what the caller asked for: no such thing (-32002).
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::Refused(ErrorObject::resource_not_found(message))
    }

    /// Refuses what the caller asked for: it has to authenticate first (-32000).
    pub fn auth_required() -> Self {
        Error::Refused(ErrorObject::auth_required())
    }

    /// Whether something does not exist: the peer says so (-32002), or the system.
    pub fn is_not_found(&self) -> bool {
        match self {
            Error::Refused(error) => error.code == code::RESOURCE_NOT_FOUND,
            Error::Io(error) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Whether the peer wants authentication first (-32000).
    pub fn is_auth_required(&self) -> bool {
        matches!(self, Error::Refused(error) if error.code == code::AUTH_REQUIRED)
    }

    /// What the peer is told. Internal detail stays here.
    pub fn to_wire(&self) -> ErrorObject {
        match self {
            Error::Refused(error) => error.clone(),
            // CANCEL-19: internal cancellation has the same code as a requested one.
            Error::Cancelled => ErrorObject::cancelled(),
            Error::Unsupported(what) => ErrorObject::internal(format!("the peer does not support {what}")),
            Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                ErrorObject::resource_not_found("there is no such file")
            }
            Error::Closed(_) | Error::Decode { .. } | Error::Io(_) | Error::Internal(_) => {
                ErrorObject::internal("internal error")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed(closed) => write!(f, "{closed}"),
            Error::Cancelled => f.write_str("cancelled"),
            Error::Refused(error) => write!(f, "{error}"),
            Error::Decode { method, reason } => {
                write!(f, "the peer's `{method}` could not be read: {reason}")
            }
            Error::Unsupported(what) => write!(f, "the peer does not support {what}"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Internal(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed(closed) => Error::Closed(closed),
            CallError::Refused(error) if error.code == code::CANCELLED => Error::Cancelled,
            CallError::Refused(error) => Error::Refused(error),
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

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io(Arc::new(error))
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

    #[test]
    fn an_error_of_the_system_is_not_presented_as_one_of_the_peer() {
        let error = Error::from(attache_conn::Link::spawn("/does/not/exist").err().unwrap());
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains("/does/not/exist"), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string());
        let full = Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.to_wire(), ErrorObject::internal("internal error"));
    }

    #[test]
    fn a_missing_file_is_told_to_the_peer() {
        let error = Error::from(std::fs::read("/does/not/exist").unwrap_err());
        assert!(error.is_not_found());
        assert_eq!(error.to_wire().code, code::RESOURCE_NOT_FOUND);
        assert!(!error.to_wire().message.contains("exist"), "{error}");
    }
}
