//! Zip archives by their central directory: stored and deflated files, also zip64. Read by hand,
//! because refusing is the point.

use std::io::{self, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;

use super::invalid;
use super::tree::Tree;

/// Longest comment at the end, and the record before it.
const TAIL: u64 = 65_535 + 22 + 20;
/// The directory is held in memory.
const MOST_DIRECTORY: u64 = 256 << 20;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// An entry of the central directory.
struct Entry {
    name: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    at: u64,
    /// Permissions and kind, if the archive was made on Unix.
    mode: Option<u32>,
}

pub(super) fn unpack(mut from: impl Read + Seek, tree: &mut Tree) -> io::Result<()> {
    let directory = directory(&mut from)?;
    let mut cursor = Cursor(&directory);
    let mut any = false;
    while !cursor.0.is_empty() {
        let entry = next(&mut cursor)?;
        any = true;
        if entry.flags & 1 != 0 {
            return Err(invalid("it is encrypted"));
        }
        if entry.name.ends_with(b"/") {
            tree.directory(&entry.name)?;
            continue;
        }
        write(&mut from, &entry, tree)?;
    }
    if any { Ok(()) } else { Err(invalid("it is empty")) }
}

fn write(from: &mut (impl Read + Seek), entry: &Entry, tree: &mut Tree) -> io::Result<()> {
    from.seek(SeekFrom::Start(entry.at))?;
    let mut local = [0; 30];
    from.read_exact(&mut local)?;
    let mut cursor = Cursor(&local);
    if cursor.u32()? != 0x0403_4b50 {
        return Err(invalid("an entry is not where the directory says"));
    }
    cursor.skip(22)?;
    let behind = i64::from(cursor.u16()?) + i64::from(cursor.u16()?);
    from.seek(SeekFrom::Current(behind))?;
    let packed = from.take(entry.packed);
    let mut content: CrcReader<Box<dyn Read + '_>> = CrcReader::new(match entry.method {
        0 => Box::new(packed),
        8 => Box::new(DeflateDecoder::new(packed)),
        other => return Err(invalid(format_args!("it is packed in a way that is not known ({other})"))),
    });
    let mode = entry.mode.unwrap_or(0o644);
    if mode & KIND == LINK {
        let mut target = Vec::new();
        content.by_ref().take(4096).read_to_end(&mut target)?;
        tree.link(&entry.name, &target)?;
    } else {
        let mut limited = content.by_ref().take(entry.size);
        tree.file(&entry.name, mode, &mut limited)?;
        if limited.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if content.crc().sum() == entry.crc {
        Ok(())
    } else {
        Err(invalid(format_args!("`{}` is damaged", String::from_utf8_lossy(&entry.name))))
    }
}

/// Reads the central directory.
fn directory(from: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let length = from.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(TAIL);
    from.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    from.read_to_end(&mut tail)?;
    let at = tail
        .windows(4)
        .rposition(|window| window == b"PK\x05\x06")
        .ok_or_else(|| invalid("it is not a zip archive"))?;
    let mut end = Cursor(tail.get(at + 4..).unwrap_or_default());
    end.skip(8)?;
    let (mut size, mut offset) = (u64::from(end.u32()?), u64::from(end.u32()?));
    if size == u64::from(u32::MAX) || offset == u64::from(u32::MAX) {
        // The zip64 record is located by the one right before this.
        let before = at.checked_sub(20).and_then(|at| tail.get(at..)).unwrap_or_default();
        let mut locator = Cursor(before);
        if locator.u32()? != 0x0706_4b50 {
            return Err(invalid("the record of a big archive is missing"));
        }
        locator.skip(4)?;
        from.seek(SeekFrom::Start(locator.u64()?))?;
        let mut record = [0; 56];
        from.read_exact(&mut record)?;
        let mut record = Cursor(&record);
        if record.u32()? != 0x0606_4b50 {
            return Err(invalid("the record of a big archive is damaged"));
        }
        record.skip(36)?;
        (size, offset) = (record.u64()?, record.u64()?);
    }
    if size > MOST_DIRECTORY {
        return Err(invalid("it holds too many files"));
    }
    from.seek(SeekFrom::Start(offset))?;
    let mut directory = Vec::new();
    from.take(size).read_to_end(&mut directory)?;
    if directory.len() as u64 == size { Ok(directory) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn next(cursor: &mut Cursor<'_>) -> io::Result<Entry> {
    if cursor.u32()? != 0x0201_4b50 {
        return Err(invalid("its directory is damaged"));
    }
    let made_by = cursor.u16()? >> 8;
    cursor.skip(2)?;
    let (flags, method) = (cursor.u16()?, cursor.u16()?);
    cursor.skip(4)?;
    let (crc, packed, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let (name, extra, comment) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    cursor.skip(4)?;
    let (attributes, at) = (cursor.u32()?, cursor.u32()?);
    let name = cursor.take(name.into())?.to_vec();
    let mut extra = Cursor(cursor.take(extra.into())?);
    cursor.skip(comment.into())?;
    let mut entry = Entry {
        name,
        flags,
        method,
        crc,
        packed: packed.into(),
        size: size.into(),
        at: at.into(),
        // 3 is Unix, 19 macOS.
        mode: matches!(made_by, 3 | 19).then_some(attributes >> 16).filter(|mode| *mode != 0),
    };
    while extra.0.len() >= 4 {
        let (tag, length) = (extra.u16()?, extra.u16()?);
        let mut field = Cursor(extra.take(length.into())?);
        if tag == 1 {
            // Only the fields that did not fit are present.
            for value in [&mut entry.size, &mut entry.packed, &mut entry.at] {
                if *value == u64::from(u32::MAX) {
                    *value = field.u64()?;
                }
            }
        }
    }
    Ok(entry)
}

/// Reads little-endian numbers.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, length: usize) -> io::Result<()> {
        self.take(length).map(|_| ())
    }

    fn number(&mut self, length: usize) -> io::Result<u64> {
        Ok(self.take(length)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.number(2).map(|value| value as u16)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.number(4).map(|value| value as u32)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.number(8)
    }
}
