//! Reading lines of text files, and the format that a rewritten file keeps.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{FileError, FileLimits};

/// The byte order mark of UTF-8, which some editors put at the beginning.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The requested lines of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Counted from 1; 0 means 1.
    pub(super) line: Option<u32>, // FS-14
    pub(super) limit: Option<u32>,
}

// FS-16
/// Reads a window of a file. Line ends are kept.
pub(super) fn read(
    file: &File,
    path: &Path,
    window: Window,
    limits: FileLimits,
) -> Result<String, FileError> {
    let fail = |error| FileError::io(path, error);
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(limits.scan.saturating_add(1)));
    let head = reader.fill_buf().map_err(fail)?;
    refuse_binary(head, path)?;
    let mark = if head.starts_with(BOM) { BOM.len() } else { 0 };
    reader.consume(mark);
    for _ in 1..window.line.unwrap_or(1) {
        if reader.skip_until(b'\n').map_err(fail)? == 0 {
            // FS-14: a line past the end is empty, but past the scan limit it is an error.
            return match gave_up(&reader) {
                true => Err(FileError::TooLarge(path.to_owned(), limits.scan)),
                false => Ok(String::new()),
            };
        }
    }
    // One byte beyond the limit shows that there is more.
    let mut reader = reader.take(limits.read.saturating_add(1));
    // Reserved at once, so that the text of a large file is not copied while it grows.
    let expected = file.metadata().map_or(0, |metadata| metadata.len()).min(limits.read.saturating_add(1));
    let mut text = Vec::new();
    match window.limit {
        None => {
            text.reserve_exact(usize::try_from(expected).unwrap_or(0).saturating_add(1));
            reader.read_to_end(&mut text).map_err(fail)?;
        }
        Some(lines) => {
            for _ in 0..lines {
                if reader.read_until(b'\n', &mut text).map_err(fail)? == 0 {
                    break;
                }
            }
        }
    }
    if text.len() as u64 > limits.read {
        return Err(FileError::TooLarge(path.to_owned(), limits.read));
    }
    if gave_up(reader.get_ref()) {
        return Err(FileError::TooLarge(path.to_owned(), limits.scan));
    }
    refuse_binary(&text, path)?;
    // Control characters take six bytes each on the wire, so that an answer could be many times the
    // limit.
    if escaped_length(&text) > limits.read.saturating_add(limits.read / 2) {
        return Err(FileError::TooLarge(path.to_owned(), limits.read));
    }
    String::from_utf8(text).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        FileError::NotText(path.to_owned(), format!("byte {} of the requested part is not UTF-8", at + 1))
    })
}

/// The length of a text as a JSON string.
fn escaped_length(text: &[u8]) -> u64 {
    let mut length = text.len() as u64;
    for byte in text {
        if matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c) {
            length += 1;
        } else if *byte < 0x20 {
            length += 5;
        }
    }
    length
}

/// Whether reading stopped at the scan limit and not at the end of the file.
fn gave_up(reader: &BufReader<std::io::Take<&File>>) -> bool {
    reader.get_ref().limit() == 0 && reader.buffer().is_empty()
}

// FS-17
/// Refuses binary data: a NUL byte is in no text, and in nearly every other kind of file.
fn refuse_binary(bytes: &[u8], path: &Path) -> Result<(), FileError> {
    let refuse = |why: &str| Err(FileError::NotText(path.to_owned(), why.to_owned()));
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return refuse("it begins like UTF-16");
    }
    if bytes.contains(&0) {
        return refuse("binary data");
    }
    Ok(())
}

/// Byte order mark and line ends of a file, which a new text keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextFormat {
    mark: bool,
    /// There is at least one line, and every line ends with CRLF.
    crlf: bool,
}

impl TextFormat {
    pub(super) fn of(file: &File, limit: u64) -> std::io::Result<Self> {
        let mut reader = BufReader::with_capacity(64 * 1024, file.take(limit));
        let mark = reader.fill_buf()?.starts_with(BOM);
        let (mut lines, mut crlf) = (0_u64, 0_u64);
        let mut before = 0;
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(TextFormat { mark, crlf: lines > 0 && lines == crlf });
            }
            for &byte in bytes {
                if byte == b'\n' {
                    lines += 1;
                    crlf += u64::from(before == b'\r');
                }
                before = byte;
            }
            let n = bytes.len();
            reader.consume(n);
        }
    }

    /// Returns the bytes to write. Text that has a mark or CRLF line ends itself is not converted.
    pub(super) fn apply(self, content: &str, keep_line_ends: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(content.len() + BOM.len());
        if self.mark && !content.as_bytes().starts_with(BOM) {
            bytes.extend_from_slice(BOM);
        }
        if self.crlf && keep_line_ends && !content.contains("\r\n") {
            for piece in content.split_inclusive('\n') {
                match piece.strip_suffix('\n') {
                    Some(line) => {
                        bytes.extend_from_slice(line.as_bytes());
                        bytes.extend_from_slice(b"\r\n");
                    }
                    None => bytes.extend_from_slice(piece.as_bytes()),
                }
            }
        } else {
            bytes.extend_from_slice(content.as_bytes());
        }
        bytes
    }
}
