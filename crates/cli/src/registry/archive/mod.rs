//! Unpacks what registries point to: tar (plain, gzip, bzip2), zip, or a program as it is.
//!
//! An archive comes from somebody else and is unpacked as the user, so it is not believed: names that lead out of the directory are
//! refused, links too, files are never written through a link, devices do not exist, and sizes are bounded.
//!
//! `tree.rs` is the only one that writes; the formats are `tar.rs` and `zip.rs`, and `bzip2.rs` for what no dependency reads.

mod bzip2;
mod tar;
mod tree;
mod zip;

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::{Context as _, Failure, Result};
use tree::Tree;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tar,
    TarGz,
    TarBz2,
    Zip,
    /// The program itself.
    Program,
}

/// Endings of installers, which want to be run by an administrator and not unpacked.
const INSTALLERS: &[&str] = &[".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage"];

impl Kind {
    /// What an address leads to, by the ending of its path.
    pub(super) fn of(address: &str) -> Result<Kind> {
        let path = address.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        if ends(INSTALLERS) {
            return Err(Failure::runtime(format_args!("{address} is an installer, and those are not run")));
        }
        Ok(match () {
            () if ends(&[".tar.gz", ".tgz"]) => Kind::TarGz,
            () if ends(&[".tar.bz2", ".tbz2", ".tbz"]) => Kind::TarBz2,
            () if ends(&[".tar"]) => Kind::Tar,
            () if ends(&[".zip"]) => Kind::Zip,
            () if ends(&[".tar.xz", ".txz", ".tar.zst", ".7z", ".rar"]) => {
                return Err(Failure::runtime(format_args!("archives like {address} cannot be unpacked")));
            }
            () => Kind::Program,
        })
    }
}

/// Unpacks an archive into a directory that is empty; `program` is what a bare program is called there.
pub(super) fn unpack(file: &Path, kind: Kind, into: &Path, program: &str) -> Result<()> {
    let opened = File::open(file).context(file.display())?;
    let mut tree = Tree::new(into)?;
    let unpacked = match kind {
        Kind::Tar => tar::unpack(BufReader::new(opened), &mut tree),
        Kind::TarGz => tar::unpack(BufReader::new(MultiGzDecoder::new(BufReader::new(opened))), &mut tree),
        Kind::TarBz2 => tar::unpack(BufReader::new(bzip2::Decoder::new(BufReader::new(opened))), &mut tree),
        Kind::Zip => zip::unpack(BufReader::new(opened), &mut tree),
        Kind::Program => bare(opened, &mut tree, program),
    };
    unpacked.and_then(|()| tree.finish()).map_err(|error| {
        Failure::runtime(format_args!("the archive cannot be unpacked: {error}"))
            .hint("nothing was installed; the archive may be damaged, or made to do damage")
    })
}

fn bare(mut file: File, tree: &mut Tree, program: &str) -> io::Result<()> {
    let mut start = [0; 4];
    let length = file.read(&mut start)?;
    // A page that says "not found" or an archive under another name is not a program.
    let text = start.get(..length).unwrap_or_default();
    if text.is_empty()
        || text.starts_with(b"<")
        || text.starts_with(b"PK\x03\x04")
        || text.starts_with(b"\x1f\x8b")
    {
        return Err(invalid("it is neither an archive that is known by its name nor a program"));
    }
    file.seek(SeekFrom::Start(0))?;
    tree.file(program.as_bytes(), 0o755, &mut file)
}

fn invalid(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

#[cfg(test)]
mod tests;
