//! Errors of a remote connection.

use std::fmt;
use std::io;

use super::super::HttpError;

/// A connection to a remote agent that cannot be made or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is not of `ws`, `wss`, `http` or `https`.
    Url(String),
    /// The server cannot be reached.
    Http(HttpError),
    /// The server needs a login or another token: status 401 or 403.
    Login(u16),
    /// The server refused the connection with this status.
    Refused(u16),
    /// The server is overloaded: status 429 or 503.
    Busy(u16),
    /// The server does not know the connection any more: status 404 or 410.
    Gone,
    /// The server does not follow the protocol of the transport.
    Protocol(String),
}

impl RemoteError {
    pub(super) fn from_status(status: u16) -> Self {
        match status {
            401 | 403 => RemoteError::Login(status),
            429 | 503 => RemoteError::Busy(status),
            status => RemoteError::Refused(status),
        }
    }

    /// Whether a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        use super::super::ErrorKind::{Broken, Dns, Proxy, Refused, Timeout};
        match self {
            RemoteError::Http(error) => matches!(error.kind(), Dns | Refused | Proxy | Timeout | Broken),
            RemoteError::Busy(_) | RemoteError::Gone => true,
            RemoteError::Refused(status) => matches!(status, 500 | 502 | 504),
            _ => false,
        }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Url(why) => f.write_str(why),
            RemoteError::Http(error) => error.fmt(f),
            RemoteError::Login(status) => {
                write!(f, "the server requires a valid token (HTTP status {status})")
            }
            RemoteError::Refused(404) => f.write_str("the server has no agent at this URL (HTTP status 404)"),
            RemoteError::Refused(status) => {
                write!(f, "the server refused the connection (HTTP status {status})")
            }
            RemoteError::Busy(status) => {
                write!(f, "the server is overloaded (HTTP status {status}); try again later")
            }
            RemoteError::Gone => f.write_str("the server has closed the connection"),
            RemoteError::Protocol(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RemoteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RemoteError::Http(error) => Some(error),
            _ => None,
        }
    }
}

impl From<HttpError> for RemoteError {
    fn from(error: HttpError) -> Self {
        RemoteError::Http(error)
    }
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        let kind = match &error {
            RemoteError::Url(_) => io::ErrorKind::InvalidInput,
            RemoteError::Http(error) => io::Error::from(error.clone()).kind(),
            RemoteError::Login(_) => io::ErrorKind::PermissionDenied,
            RemoteError::Refused(_) | RemoteError::Busy(_) => io::ErrorKind::ConnectionRefused,
            RemoteError::Gone => io::ErrorKind::ConnectionReset,
            RemoteError::Protocol(_) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
