//! Errors of requests.

use std::fmt;
use std::io;

/// A request without a usable response. Its text names the host, never a header or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    kind: ErrorKind,
    /// The details; the display adds the beginning of the sentence.
    detail: String,
    /// Whether the request was certainly not sent.
    unsent: bool,
}

/// Cause of an [`HttpError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL, the method or a header cannot be used.
    Invalid,
    /// The host name cannot be resolved.
    Dns,
    /// No connection to the server: refused, unreachable, reset.
    Refused,
    /// The TLS handshake failed, for example because of a certificate.
    Tls,
    /// The proxy cannot be reached or refused the tunnel.
    Proxy,
    /// A time limit passed.
    Timeout,
    /// The server responded with this status where another one was needed.
    Status(u16),
    /// The connection broke, or the peer does not speak HTTP.
    Broken,
    /// The response exceeds its limit.
    TooLong,
}

impl HttpError {
    /// Returns the cause.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the request was certainly not sent, so that any request may be repeated.
    pub fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Whether no connection could be made, for whatever reason.
    pub fn is_connect(&self) -> bool {
        let before =
            matches!(self.kind, ErrorKind::Dns | ErrorKind::Refused | ErrorKind::Tls | ErrorKind::Proxy);
        before || self.kind == ErrorKind::Timeout && self.unsent
    }

    /// A status where another one was needed.
    pub fn from_status(status: u16) -> Self {
        HttpError { kind: ErrorKind::Status(status), detail: status.to_string(), unsent: false }
    }

    pub(super) fn invalid(why: impl Into<String>) -> Self {
        HttpError { kind: ErrorKind::Invalid, detail: why.into(), unsent: true }
    }

    /// A failed connection; `detail` begins with the host.
    pub(super) fn connect(kind: ErrorKind, detail: String) -> Self {
        HttpError { kind, detail, unsent: true }
    }

    pub(super) fn timeout(detail: String) -> Self {
        HttpError { kind: ErrorKind::Timeout, detail, unsent: false }
    }

    pub(super) fn broken(detail: impl Into<String>) -> Self {
        HttpError { kind: ErrorKind::Broken, detail: detail.into(), unsent: false }
    }

    pub(super) fn too_long() -> Self {
        HttpError { kind: ErrorKind::TooLong, detail: String::new(), unsent: false }
    }

    pub(super) fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.detail;
        match self.kind {
            ErrorKind::Invalid => write!(f, "cannot make this request: {detail}"),
            _ if self.is_connect() => write!(f, "cannot connect to {detail}"),
            ErrorKind::Timeout => f.write_str(detail),
            ErrorKind::Status(status) => write!(f, "the server responded with HTTP status {status}"),
            ErrorKind::TooLong => f.write_str("the response is too long"),
            _ => write!(f, "the connection broke: {detail}"),
        }
    }
}

impl std::error::Error for HttpError {}

impl From<HttpError> for io::Error {
    fn from(error: HttpError) -> Self {
        let kind = match error.kind {
            ErrorKind::Invalid => io::ErrorKind::InvalidInput,
            ErrorKind::Dns => io::ErrorKind::NotFound,
            ErrorKind::Refused | ErrorKind::Proxy => io::ErrorKind::ConnectionRefused,
            ErrorKind::Timeout => io::ErrorKind::TimedOut,
            ErrorKind::Broken => io::ErrorKind::ConnectionReset,
            ErrorKind::Tls | ErrorKind::TooLong | ErrorKind::Status(_) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

/// hyper's own text says little; its source says more.
impl From<hyper::Error> for HttpError {
    fn from(error: hyper::Error) -> Self {
        let text = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        HttpError::broken(text)
    }
}
