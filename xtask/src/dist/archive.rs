//! Writers of tar, ar and zip archives whose bytes depend on nothing but the files in them.

use std::io::Write as _;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

/// The time of every file, so that two builds of one version are equal: 1980-01-01, the oldest that
/// zip can say.
const TIME: u64 = 315_532_800;

/// A file of a package.
#[derive(Clone)]
pub(super) struct Entry {
    /// The path in the package, with `/` between the parts.
    pub(super) path: String,
    pub(super) data: Vec<u8>,
    pub(super) executable: bool,
}

impl Entry {
    pub(super) fn text(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), data: data.into(), executable: false }
    }

    pub(super) fn program(path: impl Into<String>, data: &[u8]) -> Entry {
        Entry { path: path.into(), data: data.to_vec(), executable: true }
    }

    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// Writes a gzipped tar archive. With `directories`, every parent directory has an entry of its
/// own, as dpkg wants.
pub(super) fn tar_gz(entries: &[Entry], directories: bool) -> Result<Vec<u8>, String> {
    gzip(&tar(entries, directories)?)
}

pub(super) fn gzip(data: &[u8]) -> Result<Vec<u8>, String> {
    // The header of flate2 has no time and no name.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(data).and_then(|()| gzip.finish()).map_err(|error| format!("gzip: {error}"))
}

fn tar(entries: &[Entry], directories: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut made = std::collections::BTreeSet::new();
    for entry in entries {
        let parents = entry.path.match_indices('/').map(|(at, _)| &entry.path[..=at]);
        for parent in parents.filter(|_| directories) {
            if made.insert(parent.to_owned()) && parent != "./" {
                out.extend(tar_header(parent, 0, 0o755, b'5')?);
            }
        }
        out.extend(tar_header(&entry.path, entry.data.len(), entry.mode(), b'0')?);
        out.extend(&entry.data);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    Ok(out)
}

/// A header of the format `ustar`: owner and group are root.
fn tar_header(path: &str, size: usize, mode: u32, kind: u8) -> Result<[u8; 512], String> {
    let mut header = [0; 512];
    if path.len() > 100 {
        return Err(format!("{path}: longer than the 100 bytes that tar has for a path"));
    }
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{TIME:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Writes an ar archive, the outer form of a Debian package.
pub(super) fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        out.extend(
            format!("{name:<16}{TIME:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", data.len()).as_bytes(),
        );
        out.extend(*data);
        if data.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// Writes a zip archive, the form of a wheel.
pub(super) fn zip(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        let packed = deflate.write_all(&entry.data).and_then(|()| deflate.finish());
        let packed = packed.map_err(|error| format!("{}: {error}", entry.path))?;
        let mut crc = Crc::new();
        crc.update(&entry.data);
        let offset = size(out.len())?;
        // Version 2.0, UTF-8 names, deflate, 1980-01-01 00:00.
        let mut common = Vec::new();
        for half in [20_u16, 1 << 11, 8, 0, 0x21] {
            common.extend(half.to_le_bytes());
        }
        for word in [crc.sum(), size(packed.len())?, size(entry.data.len())?] {
            common.extend(word.to_le_bytes());
        }
        let name = u16::try_from(entry.path.len()).map_err(|_| format!("{}: too long", entry.path))?;
        common.extend(name.to_le_bytes());
        common.extend([0, 0]);

        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(entry.path.as_bytes());
        out.extend(packed);

        // Made on Unix, so that the mode counts.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let count = u16::try_from(entries.len()).map_err(|_| "too many files for a zip archive")?;
    let (start, length) = (size(out.len())?, size(directory.len())?);
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    Ok(out)
}

fn size(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| "a zip archive of more than 4 GB".to_owned())
}

/// SHA-256 of `data`.
pub(super) fn sha256(data: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, data).as_ref().to_vec()
}

/// SHA-256 of `data` in hexadecimal digits.
pub(super) fn sha256_hex(data: &[u8]) -> String {
    sha256(data).iter().map(|byte| format!("{byte:02x}")).collect()
}
