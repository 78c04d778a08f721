//! Reads files of unknown origin without waiting for them and without trusting their size.
//!
//! Settings, instructions and command files may come from a cloned repository. There the name may
//! belong to a FIFO, a device, a sparse file of many gigabytes or a link that leads elsewhere.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Treatment of a symbolic link as the last component of a path. Links in its parents are always
/// followed: use `files::Jail` for paths that must stay below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalLink {
    /// Reads the file that the link leads to.
    Follow,
    /// Fails.
    Refuse,
}

/// The bytes of a file up to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedRead {
    /// At most as many bytes as the limit.
    pub bytes: Vec<u8>,
    /// Whether the file has more bytes than the limit.
    pub truncated: bool,
}

/// Reads at most `limit` bytes of a regular file, even if its metadata reports another size.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] when the path leads to a directory, FIFO, socket or device (none
/// of them is opened), or to a link that is refused; otherwise the error of the system. The
/// messages do not contain the path.
pub fn read_bounded(path: &Path, limit: usize, link: FinalLink) -> io::Result<BoundedRead> {
    let file = open_regular(path, link)?;
    let mut bytes = Vec::new();
    // One byte beyond the limit is enough to know that there is more.
    file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    let truncated = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(BoundedRead { bytes, truncated })
}

/// Reads a UTF-8 text of at most `limit` bytes, without the byte order mark that it may begin with.
///
/// # Errors
/// As [`read_bounded`]; [`io::ErrorKind::FileTooLarge`] when the file is longer,
/// [`io::ErrorKind::InvalidData`] when it is not UTF-8.
pub fn read_text_bounded(path: &Path, limit: usize, link: FinalLink) -> io::Result<String> {
    let read = read_bounded(path, limit, link)?;
    if read.truncated {
        let text = format!("larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut text = String::from_utf8(read.bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text"))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

impl BoundedRead {
    /// Returns the bytes as text. A character that the limit has cut is dropped, other bytes that
    /// are not UTF-8 become U+FFFD.
    pub fn into_text_lossy(mut self) -> String {
        if self.truncated
            && let Some(chunk) = self.bytes.utf8_chunks().last()
            && !chunk.invalid().is_empty()
        {
            self.bytes.truncate(self.bytes.len() - chunk.invalid().len());
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

fn open_regular(path: &Path, link: FinalLink) -> io::Result<File> {
    let metadata = match link {
        FinalLink::Follow => path.metadata()?,
        FinalLink::Refuse => path.symlink_metadata()?,
    };
    // Before the open: opening a device can have effects.
    expect_regular(&metadata)?;
    let mut options = OpenOptions::new();
    options.read(true);
    set_flags(&mut options, link);
    let file = options.open(path).map_err(explain_link)?;
    // The name may lead to something else by now.
    expect_regular(&file.metadata()?)?;
    Ok(file)
}

#[cfg(unix)]
fn set_flags(options: &mut OpenOptions, link: FinalLink) {
    use std::os::unix::fs::OpenOptionsExt;
    let no_follow = if link == FinalLink::Refuse { libc::O_NOFOLLOW } else { 0 };
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | no_follow);
}

#[cfg(windows)]
fn set_flags(options: &mut OpenOptions, link: FinalLink) {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    if link == FinalLink::Refuse {
        options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
}

#[cfg(unix)]
fn explain_link(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        // FreeBSD says EMLINK.
        Some(libc::ELOOP | libc::EMLINK) => not_a_file("a symbolic link"),
        _ => error,
    }
}

#[cfg(windows)]
fn explain_link(error: io::Error) -> io::Error {
    error
}

fn expect_regular(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(not_a_file(match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () => special_kind(&kind),
    }))
}

#[cfg(unix)]
fn special_kind(kind: &std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(windows)]
fn special_kind(_kind: &std::fs::FileType) -> &'static str {
    "a device"
}

fn not_a_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, not a regular file"))
}
