//! Errors of a journal.

use std::fmt;
use std::sync::Arc;

use crate::position::Seq;

/// The result of a journal operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a journal, with a variant for each thing that a caller can act on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The session does not exist, or belongs to another tenant.
    Unknown,
    /// Another owner has a lease with time left.
    Held {
        /// The owner's name.
        owner: String,
        /// The end of the lease, in milliseconds since 1970.
        until: u64,
    },
    /// The lease ended: another claim was made, or the session was forgotten. The caller must stop
    /// writing.
    Fenced,
    /// The append does not follow the last entry, and is not a repeat of an earlier append.
    Conflict {
        /// The last entry.
        last: Seq,
    },
    /// Entries after the given position have been removed.
    Trimmed {
        /// The first entry that is left.
        first: Seq,
    },
    /// The position is after the last entry, so it is not a position of this log.
    PastEnd {
        /// The last entry.
        last: Seq,
    },
    /// The page exceeds a limit.
    TooLarge {
        /// The limit that it exceeds.
        limit: &'static str,
    },
    /// The page has no entries.
    EmptyPage,
    /// The tenant or the session id cannot be a name.
    InvalidKey {
        /// The part of the key.
        part: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// The address of a server, or a name on it, is not valid.
    InvalidAddress {
        /// The reason.
        reason: &'static str,
    },
    /// The disk or the journal's quota is full. Nothing of the append is stored.
    Full,
    /// Another process holds the journal's lock for too long.
    Busy,
    /// The stored data cannot be read.
    Damaged(String),
    /// A newer program wrote the journal.
    Newer {
        /// The version of its layout.
        version: i64,
    },
    /// The journal is closed.
    Closed,
    /// The journal cannot be reached, read or written. The outcome of an append is unknown; it can
    /// be repeated.
    Unavailable(Arc<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unknown => f.write_str("no such session"),
            Error::Held { owner, .. } => write!(f, "the session is in use by \"{owner}\""),
            Error::Fenced => f.write_str("the session was taken over by another owner"),
            Error::Conflict { last } => write!(f, "the append does not follow the last entry ({last})"),
            Error::Trimmed { first } => write!(f, "the history before entry {first} has been removed"),
            Error::PastEnd { last } => write!(f, "the position is after the last entry ({last})"),
            Error::TooLarge { limit } => write!(f, "the page is too large: at most {limit}"),
            Error::EmptyPage => f.write_str("the page has no entries"),
            Error::InvalidKey { part, reason } => write!(f, "invalid {part}: {reason}"),
            Error::InvalidAddress { reason } => write!(f, "invalid address of a journal: {reason}"),
            Error::Full => {
                f.write_str("the disk or the journal is full: nothing can be saved until there is room")
            }
            Error::Busy => f.write_str("the journal is locked by another process for too long; try again"),
            Error::Damaged(detail) => {
                write!(f, "the journal is damaged ({detail}); move it away to start with a new one")
            }
            Error::Newer { version } => write!(
                f,
                "the journal was written by a newer version of this program (layout {version}); update it"
            ),
            Error::Closed => f.write_str("the journal is closed"),
            Error::Unavailable(error) => write!(f, "the journal cannot be read or written: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unavailable(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::Full,
            _ => Error::Unavailable(Arc::new(error)),
        }
    }
}
