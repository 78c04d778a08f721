//! Errors of a remote connection.

use std::fmt;
use std::io;
use std::time::Duration;

use super::super::{Backoff, HttpError, Response};

/// The longest pause that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

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
    /// The server is overloaded.
    Busy {
        /// 429 or 503.
        status: u16,
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The server does not know the connection any more: status 404 or 410.
    Gone,
    /// The server does not follow the protocol of the transport.
    Protocol(String),
}

impl RemoteError {
    pub(super) fn from_response(response: &Response) -> Self {
        match response.status {
            status @ (401 | 403) => RemoteError::Login(status),
            status @ (429 | 503) => RemoteError::Busy { status, retry_after: response.retry_after() },
            status => RemoteError::Refused(status),
        }
    }

    /// Returns the pause before the next attempt: the one that the server asks for, up to a minute,
    /// else that of `backoff`.
    // HTTP-42
    pub(super) fn pause(&self, backoff: &Backoff, failures: u32) -> Duration {
        match self {
            RemoteError::Busy { retry_after: Some(pause), .. } => (*pause).min(MAX_RETRY_AFTER),
            _ => backoff.pause(failures),
        }
    }

    /// Whether a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        use super::super::ErrorKind::{Broken, Dns, Proxy, Refused, Timeout};
        match self {
            RemoteError::Http(error) => matches!(error.kind(), Dns | Refused | Proxy | Timeout | Broken),
            RemoteError::Busy { .. } | RemoteError::Gone => true,
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
            RemoteError::Busy { status, .. } => {
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
            RemoteError::Refused(_) | RemoteError::Busy { .. } => io::ErrorKind::ConnectionRefused,
            RemoteError::Gone => io::ErrorKind::ConnectionReset,
            RemoteError::Protocol(_) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_that_of_the_server_up_to_a_minute() {
        let second = Duration::from_secs(1);
        let backoff = Backoff { attempts: 1, first: second, max: second };
        let pause = |retry_after| RemoteError::Busy { status: 503, retry_after }.pause(&backoff, 0);
        assert_eq!(pause(Some(7 * second)), 7 * second);
        assert_eq!(pause(Some(3600 * second)), 60 * second);
        assert!(pause(None) <= second);
        assert!(RemoteError::Gone.pause(&backoff, 0) <= second);
    }
}
