//! Errors of this crate.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with advice for the user.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
}

/// The kinds of errors that callers tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The network, a server, the disk, an index.
    Other,
    /// The settings are wrong or incomplete.
    Settings,
    /// An archive does not have the expected hash.
    ChecksumMismatch,
    /// The agent of this id is not installed.
    NotInstalled(String),
}

impl Error {
    pub(crate) fn new(message: impl fmt::Display) -> Error {
        Error { kind: ErrorKind::Other, message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn kind_of(mut self, kind: ErrorKind) -> Error {
        self.kind = kind;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hints.push(hint.into());
        self
    }

    /// Prefixes the message.
    pub(crate) fn context(mut self, what: impl fmt::Display) -> Error {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns advice, a line each.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds the failed operation to an error of another library.
pub(crate) trait Context<T> {
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::new(format_args!("{what}: {error}")))
    }
}
