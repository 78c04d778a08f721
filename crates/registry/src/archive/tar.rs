//! Tar archives: ustar with the long names of GNU and pax. Read by hand, because refusing is the
//! point.

use std::io::{self, Read};

use super::invalid;
use super::tree::Tree;

const BLOCK: usize = 512;
/// Long names and pax headers are held in memory.
const MOST_META: u64 = 1 << 20;

/// A header.
struct Header {
    name: Vec<u8>,
    link: Vec<u8>,
    mode: u32,
    size: u64,
    kind: u8,
}

/// Properties of the next file from extension entries.
#[derive(Default)]
struct Next {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

pub(super) fn unpack(mut from: impl Read, tree: &mut Tree) -> io::Result<()> {
    let mut next = Next::default();
    let mut any = false;
    while let Some(header) = header(&mut from)? {
        any = true;
        let size = next.size.unwrap_or(header.size);
        match header.kind {
            b'L' => next.name = Some(text(&mut from, header.size)?),
            b'K' => next.link = Some(text(&mut from, header.size)?),
            b'x' => pax(&read(&mut from, header.size)?, &mut next)?,
            // Global headers are mostly comments.
            b'g' => skip(&mut from, padded(header.size))?,
            kind => {
                let said = std::mem::take(&mut next);
                let name = said.name.unwrap_or(header.name);
                let link = said.link.unwrap_or(header.link);
                entry(kind, &name, &link, header.mode, size, &mut from, tree)?;
            }
        }
    }
    if any { Ok(()) } else { Err(invalid("it is empty")) }
}

fn entry(
    kind: u8,
    name: &[u8],
    link: &[u8],
    mode: u32,
    size: u64,
    from: &mut impl Read,
    tree: &mut Tree,
) -> io::Result<()> {
    match kind {
        // Old archives mark directories by a slash.
        0 | b'0' | b'7' if !name.ends_with(b"/") => {
            let mut content = from.take(size);
            tree.file(name, mode, &mut content)?;
            if content.limit() > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            skip(from, padded(size) - size)
        }
        0 | b'0' | b'5' | b'7' => {
            tree.directory(name)?;
            skip(from, padded(size))
        }
        b'1' => tree.same(name, link),
        b'2' => tree.link(name, link),
        other => Err(invalid(format_args!(
            "`{}` is of a kind that is not unpacked: {:?}",
            String::from_utf8_lossy(name),
            char::from(other)
        ))),
    }
}

/// Reads the next header; `None` at the end.
fn header(from: &mut impl Read) -> io::Result<Option<Header>> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match from.read(block.get_mut(filled..).unwrap_or_default())? {
            // Some writers omit the two empty blocks.
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let field = |from: usize, length: usize| block.get(from..from + length).unwrap_or_default();
    // The checksum counts its own field as blanks.
    let sum: u64 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }))
        .sum();
    if number(field(148, 8))? != sum {
        return Err(invalid("it is not a tar archive, or damaged"));
    }
    let mut name = until_nul(field(0, 100)).to_vec();
    let prefix = until_nul(field(345, 155));
    if field(257, 6) == b"ustar\0" && !prefix.is_empty() {
        name = [prefix, b"/", &name].concat();
    }
    Ok(Some(Header {
        name,
        link: until_nul(field(157, 100)).to_vec(),
        mode: number(field(100, 8))? as u32,
        size: number(field(124, 12))?,
        kind: field(156, 1).first().copied().unwrap_or_default(),
    }))
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads a number: octal digits, or bytes after a set bit for large ones.
fn number(field: &[u8]) -> io::Result<u64> {
    if let Some((first, rest)) = field.split_first().filter(|(first, _)| **first & 0x80 != 0) {
        return rest.iter().try_fold(u64::from(first & 0x3f), |value, byte| {
            value
                .checked_mul(256)
                .map(|value| value | u64::from(*byte))
                .ok_or_else(|| invalid("a size is too big"))
        });
    }
    let text = std::str::from_utf8(until_nul(field)).map_err(invalid)?.trim();
    if text.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(text, 8).map_err(|_| invalid("a header holds no number where one belongs"))
}

/// Reads records of the form `LENGTH KEY=VALUE\n`.
fn pax(mut records: &[u8], next: &mut Next) -> io::Result<()> {
    let wrong = || invalid("an extended header is damaged");
    while !records.is_empty() {
        let blank = records.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length: usize = records
            .get(..blank)
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
            .ok_or_else(wrong)?;
        let record = records.get(blank + 1..length.checked_sub(1).ok_or_else(wrong)?).ok_or_else(wrong)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        let value = record.get(equals + 1..).unwrap_or_default();
        match record.get(..equals).unwrap_or_default() {
            b"path" => next.name = Some(value.to_vec()),
            b"linkpath" => next.link = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                next.size = Some(size.ok_or_else(wrong)?);
            }
            _ => {}
        }
        records = records.get(length..).ok_or_else(wrong)?;
    }
    Ok(())
}

fn read(from: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    if size > MOST_META {
        return Err(invalid("a header is too long"));
    }
    let mut bytes = Vec::new();
    from.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    skip(from, padded(size) - size)?;
    Ok(bytes)
}

fn text(from: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    let bytes = read(from, size)?;
    Ok(until_nul(&bytes).to_vec())
}

fn padded(size: u64) -> u64 {
    size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64)
}

fn skip(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    if io::copy(&mut from.take(bytes), &mut io::sink())? == bytes {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
