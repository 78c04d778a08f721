//! The entries of a session's log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stored_path;
use crate::model::Message;

/// The log of one session, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log(pub(super) Vec<Logged>);

impl std::ops::Deref for Log {
    type Target = [Logged];

    fn deref(&self) -> &[Logged] {
        &self.0
    }
}

impl IntoIterator for Log {
    type Item = Logged;
    type IntoIter = std::vec::IntoIter<Logged>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// An entry with its position and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// Its position in the session's log, from 1.
    pub seq: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    pub entry: Entry,
}

/// One event of a session. The database has a column for the variant's name and one for its
/// content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// The `update` of a `session/update`, or the user's own `user_message_chunk`.
    Update(Value),
    /// A whole message to or from the model.
    Message(Message),
    /// A turn began or ended.
    Mark(Mark),
    /// A setting of the session changed: mode, model, thinking.
    Setting {
        key: String,
        #[serde(default)]
        value: Value,
    },
    /// A file is about to change.
    Change(Change),
    /// All files before a command ran.
    Snapshot {
        /// The hash of the stored list.
        list: String,
    },
    /// The command after the last [`Entry::Snapshot`] ended; its changes precede this entry.
    Settled {},
    /// The changes of a turn were reverted.
    Undone {
        /// The position of the turn's first entry.
        turn: i64,
    },
    /// A summary replaces the messages up to an entry.
    Compacted {
        /// The last entry that the summary covers.
        upto: i64,
        summary: String,
    },
}

const KINDS: [&str; 9] =
    ["update", "message", "mark", "setting", "change", "snapshot", "settled", "undone", "compacted"];

/// The start or the end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "MarkContent", into = "MarkContent")]
pub enum Mark {
    /// A prompt was received.
    Began,
    Ended {
        /// The stop reason for the client, or `error`.
        stop: String,
        usage: Value,
    },
}

/// `{"began": true}` or `{"ended": "end_turn", "usage": {…}}`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum MarkContent {
    Began {
        began: bool,
    },
    Ended {
        ended: String,
        #[serde(default)]
        usage: Value,
    },
}

impl From<MarkContent> for Mark {
    fn from(content: MarkContent) -> Self {
        match content {
            MarkContent::Began { .. } => Mark::Began,
            MarkContent::Ended { ended, usage } => Mark::Ended { stop: ended, usage },
        }
    }
}

impl From<Mark> for MarkContent {
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::Began => MarkContent::Began { began: true },
            Mark::Ended { stop, usage } => MarkContent::Ended { ended: stop, usage },
        }
    }
}

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    #[serde(with = "stored_path")]
    pub path: PathBuf,
    /// The state before; `None` if the file did not exist.
    pub before: Option<FileState>,
    /// The state after; `None` if the file is deleted.
    pub after: Option<FileState>,
    /// How many directories above it did not exist.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub new_directories: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A file's content, by hash, and its permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The hash of its bytes, which the store holds for the state before a change.
    pub hash: String,
    /// The permission bits, on Unix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl Entry {
    /// The kind and the content for the database.
    pub(super) fn encode(&self) -> serde_json::Result<(String, String)> {
        // serde writes `{"kind":content}`.
        let text = serde_json::to_string(self)?;
        let (kind, content) = text.trim_start_matches("{\"").split_once("\":").unwrap_or_default();
        Ok((kind.to_owned(), content.strip_suffix('}').unwrap_or_default().to_owned()))
    }

    /// Reads an entry; `None` for a kind of a later version.
    pub(super) fn decode(kind: &str, content: &str) -> serde_json::Result<Option<Entry>> {
        match KINDS.contains(&kind) {
            true => serde_json::from_str(&format!("{{\"{kind}\":{content}}}")).map(Some),
            false => Ok(None),
        }
    }
}
