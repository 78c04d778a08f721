//! What a path is at one moment, and how that is read and made again.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_host::files::{FileError, Jail};
use ring::digest::{SHA256, digest};

/// What a path is. States of one path are equal if nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Missing,
    /// A file whose content is kept.
    File {
        hash: String,
        mode: u32,
    },
    /// A file whose content is not kept: size and times stand for it.
    Unread(String),
    Link(OsString),
    Directory,
    /// A device, a socket, or a file that cannot be read.
    Other,
}

impl State {
    /// The hash of the content, if that is kept.
    pub(crate) fn hash(&self) -> Option<&str> {
        match self {
            State::File { hash, .. } => Some(hash),
            _ => None,
        }
    }

    pub(crate) fn encode(&self) -> String {
        match self {
            State::Missing => "-".to_owned(),
            State::File { hash, mode } => format!("f {mode:o} {hash}"),
            State::Unread(stamp) => format!("u {stamp}"),
            State::Link(target) => format!("l {}", hex(target.as_bytes())),
            State::Directory => "d".to_owned(),
            State::Other => "o".to_owned(),
        }
    }

    /// Decodes what [`encode`](Self::encode) wrote; anything else is a state that nothing has.
    pub(crate) fn decode(text: &str) -> State {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        match kind {
            "-" => State::Missing,
            "u" => State::Unread(rest.to_owned()),
            "d" => State::Directory,
            "f" => match rest.split_once(' ') {
                Some((mode, hash)) => {
                    State::File { hash: hash.to_owned(), mode: u32::from_str_radix(mode, 8).unwrap_or(0o600) }
                }
                None => State::Other,
            },
            "l" => State::Link(OsString::from_vec(from_hex(rest))),
            _ => State::Other,
        }
    }
}

/// Size, times and permissions: while they are the same, a file is not read again.
pub(crate) fn stamp(metadata: &Metadata) -> String {
    format!(
        "{}:{}:{}.{}:{}.{}:{:o}",
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        metadata.mode()
    )
}

/// When anything about a file was changed last. No program can set it.
pub(crate) fn changed_at(metadata: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or(0));
    UNIX_EPOCH + seconds + Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).unwrap_or(0))
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The state of a path and its content. Content of more than `limit` bytes is not read.
pub(crate) fn look(jail: &Jail, path: &Path, limit: u64) -> (State, Option<Vec<u8>>) {
    let Ok(metadata) = path.symlink_metadata() else { return (State::Missing, None) };
    let kind = metadata.file_type();
    if kind.is_symlink() {
        // A link that cannot be read has just been replaced.
        let target = jail.link_target(path).ok().flatten();
        return (target.map_or(State::Other, State::Link), None);
    }
    if kind.is_dir() {
        return (State::Directory, None);
    }
    if !kind.is_file() {
        return (State::Other, None);
    }
    if metadata.len() > limit {
        return (State::Unread(stamp(&metadata)), None);
    }
    match read(jail, path, limit) {
        Ok(Some((bytes, mode))) => (State::File { hash: hash(&bytes), mode }, Some(bytes)),
        Ok(None) => (State::Unread(stamp(&metadata)), None),
        Err(FileError::NotFound(_)) => (State::Missing, None),
        Err(_) => (State::Other, None),
    }
}

/// Content and permissions of a file; `None` if it has more than `limit` bytes.
fn read(jail: &Jail, path: &Path, limit: u64) -> Result<Option<(Vec<u8>, u32)>, FileError> {
    let file = jail.open(path)?;
    let failed = |error| FileError::Io(path.to_owned(), error);
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes.len() as u64 <= limit).then_some((bytes, mode)))
}

/// Makes a path what it was. `content` is that of a file.
///
/// # Errors
/// If the path leads through a link now, or the system refuses.
pub(crate) fn make(
    jail: &Jail,
    path: &Path,
    from: &State,
    to: &State,
    content: Option<&[u8]>,
    new_directories: u32,
) -> Result<(), FileError> {
    let same_kind = matches!((from, to), (State::File { .. } | State::Unread(_), State::File { .. }));
    if !same_kind {
        match from {
            State::File { .. } | State::Unread(_) => jail.remove(path)?,
            State::Link(_) => jail.remove_link(path)?,
            State::Directory => jail.remove_dir(path)?,
            State::Missing | State::Other => {}
        }
    }
    match (to, content) {
        (State::File { mode, .. }, Some(content)) => jail.restore(path, content, *mode),
        (State::Link(target), _) => jail.create_link(path, target),
        _ => {
            for directory in path.ancestors().skip(1).take(new_directories as usize) {
                // It is not empty, or somebody else removed it.
                if jail.remove_dir(directory).is_err() {
                    break;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_stored_as_text() {
        let states = [
            State::Missing,
            State::File { hash: hash(b"x"), mode: 0o755 },
            State::Unread("1:2".to_owned()),
            State::Link(OsString::from_vec(vec![b'a', 0xff, b' '])),
            State::Directory,
            State::Other,
        ];
        for state in states {
            assert_eq!(State::decode(&state.encode()), state);
        }
    }
}
