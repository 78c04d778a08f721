//! A conversation as it was on the wire, and its file format.
//!
//! A recording is JSON lines. The first is the head, each other one is an entry:
//!
//! ```text
//! {"attache":"recording","version":1,"started":"2026-01-01T00:00:00.000Z","command":["agent","--acp"],"masked":false}
//! {"t":0.000123,"from":"client","text":"{\"jsonrpc\":…}"}
//! {"t":0.1,"stderr":"text"}
//! {"t":0.2,"closed":"agent"}
//! {"t":0.3,"exit":0}
//! {"t":0.4,"note":"…"}
//! ```
//!
//! A line of the wire has no line end in `text`; `"end":"\r\n"` or `"end":""` says that it did not
//! end in a line feed alone, and `base64` replaces `text` if it was not UTF-8. `"more":true` says
//! that the next line of the same role continues this one.

mod file;

pub(crate) use file::piece_line;
pub use file::{ReadError, Reader};

use std::time::Duration;

use crate::Role;

/// The current time in UTC: `2026-01-31T12:00:00.000Z`.
pub fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// A conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The header.
    pub head: Header,
    /// The entries, in order.
    pub entries: Vec<Entry>,
}

/// Facts about a conversation as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The start time, in UTC.
    pub started: String,
    /// The program that was started.
    pub command: Vec<String>,
    /// Whether secrets are masked.
    pub masked: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time since the start.
    pub at: Duration,
    /// The event.
    pub kind: EntryKind,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A line on the wire.
    Line {
        /// The sender.
        from: Role,
        /// The bytes without the line end.
        text: Vec<u8>,
        /// The line end.
        end: LineEnd,
    },
    /// The judged program wrote to stderr.
    Stderr(Vec<u8>),
    /// A role closed its output.
    Closed {
        /// The role.
        from: Role,
    },
    /// The judged program ended.
    Exit {
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// A note of the checker.
    Note(String),
}

/// How a line ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// With a line feed.
    #[default]
    Lf,
    /// With a carriage return and a line feed.
    CrLf,
    /// Not at all: the stream ended within it.
    Open,
}

impl LineEnd {
    /// The characters.
    pub fn text(self) -> &'static str {
        match self {
            LineEnd::Lf => "\n",
            LineEnd::CrLf => "\r\n",
            LineEnd::Open => "",
        }
    }
}

impl Trace {
    /// The sender and bytes of the entry, if it is a line.
    pub fn line(&self, index: usize) -> Option<(Role, &[u8])> {
        match &self.entries.get(index)?.kind {
            EntryKind::Line { from, text, .. } => Some((*from, text)),
            _ => None,
        }
    }
}
