//! What can go wrong for the caller. The error on the wire is another type: [`ErrorObject`].

use std::fmt;

use attache_conn::{CallError, Closed};
use attache_rpc::{ErrorObject, code};

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call, a turn or a connection did not end as it should.
#[derive(Debug, Clone)]
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
            Error::Closed(_) | Error::Decode { .. } | Error::Internal(_) => {
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
            Error::Internal(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}

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
    /// FS-13: a missing file is told to the peer as such; everything else stays here.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Error::not_found("there is no such file"),
            _ => Error::internal(error),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::internal(error)
    }
}
