//! Errors of reading and writing files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use attache::{Error, code};

/// The reason why a file was not read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file.
    NotFound(PathBuf), // FS-13
    /// The file is outside of the session's directories, or a link or `..` leads out of them.
    Outside(PathBuf), // ROOT-17, ROOT-18
    /// The path leads through this symbolic link, where links are refused.
    Link(PathBuf),
    /// It is a directory, a FIFO, a socket or a device.
    NotAFile(PathBuf, &'static str),
    /// The file is not UTF-8 text.
    NotText(PathBuf, String), // FS-17
    /// It is larger than the limit in bytes.
    TooLarge(PathBuf, u64),
    /// The user or the policy denied it.
    Denied(PathBuf, String),
    /// The path led to another file when it was used than when it was checked.
    Changed(PathBuf),
    /// The system refused it.
    Io(PathBuf, io::Error),
}

impl FileError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
            _ => FileError::Io(path.to_owned(), error),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotFound(path) => write!(f, "no such file: {}", path.display()),
            FileError::Outside(path) => {
                write!(f, "{} is outside of the directories of this session", path.display())
            }
            FileError::Link(path) => {
                write!(f, "{} is a symbolic link, and links are not followed here", path.display())
            }
            FileError::NotAFile(path, what) => write!(f, "{} is {what}, not a file", path.display()),
            FileError::NotText(path, why) => {
                write!(f, "{} is not UTF-8 text ({why}), so it cannot be read as text", path.display())
            }
            FileError::TooLarge(path, limit) => write!(
                f,
                "{} is too large: more than {limit} bytes; read it in parts with `line` and `limit`",
                path.display()
            ),
            FileError::Denied(path, why) => write!(f, "not permitted: {}: {why}", path.display()),
            FileError::Changed(path) => {
                write!(f, "{} was moved while it was used, try again", path.display())
            }
            FileError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileError {}

impl From<FileError> for Error {
    // FS-13
    /// Maps a missing file to -32002, a path that may not be used to -32602, all else to -32603.
    /// The message contains only paths that the agent sent.
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound(_) => Error::not_found(error.to_string()),
            FileError::Outside(_) | FileError::Link(_) | FileError::NotAFile(..) => {
                Error::invalid_params(error.to_string())
            }
            _ => Error::refuse(code::INTERNAL_ERROR, error.to_string()),
        }
    }
}
