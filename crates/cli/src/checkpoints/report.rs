//! What the checkpoints answer.

use std::path::PathBuf;
use std::time::SystemTime;

/// A turn as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) turn: i64,
    pub(crate) prompt: String,
    pub(crate) began: SystemTime,
    /// The files that it changed and that were not undone.
    pub(crate) files: usize,
}

/// What was done to the files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The prompt whose changes were taken back.
    pub(crate) prompt: Option<String>,
    pub(crate) changed: Vec<PathBuf>,
    /// Files that were left alone, with the reason.
    pub(crate) left: Vec<(PathBuf, String)>,
}

/// The last change of a file, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) change: i64,
    pub(crate) path: PathBuf,
    pub(crate) old: String,
    pub(crate) new: String,
    /// Empty if the file can only be taken back as a whole.
    pub(crate) parts: Vec<Part>,
    /// Why it may not be a change of the agent.
    pub(crate) doubt: Option<String>,
}

/// One hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first line in the new text, counted from 1.
    pub(crate) line: usize,
    pub(crate) removed: usize,
    pub(crate) added: usize,
    /// The first line that is not empty.
    pub(crate) text: String,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: PathBuf,
    /// The text before; `None` if there was no file.
    pub(crate) old: Option<String>,
    /// The text now; `None` if there is no file.
    pub(crate) new: Option<String>,
    /// What a text cannot show.
    pub(crate) note: Option<String>,
}
