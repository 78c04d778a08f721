//! Unpacks the archives of registries: tar (plain, gzip, bzip2), zip, or a bare program.
//!
//! An archive is not trusted: names and links that lead out of the directory are refused, files are
//! never written through a link, devices are refused, and sizes are bounded.
//!
//! `tree` is the only module that writes. `tar` and `zip` are read by hand, because refusing is
//! their point.

mod tar;
mod tree;
mod zip;

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;

use crate::error::{Context as _, Error, Result};
use tree::Tree;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    Tar,
    TarGz,
    TarBz2,
    Zip,
    /// The program itself.
    Program,
}

/// Endings of installers, which an administrator would have to run.
const INSTALLERS: &[&str] = &[".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage"];

impl ArchiveKind {
    /// Guesses the format by the ending of the address's path.
    pub(super) fn of(address: &str) -> Result<ArchiveKind> {
        let path = address.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        if ends(INSTALLERS) {
            return Err(Error::new(format_args!("{address} is an installer, and those are not run")));
        }
        Ok(match () {
            () if ends(&[".tar.gz", ".tgz"]) => ArchiveKind::TarGz,
            () if ends(&[".tar.bz2", ".tbz2", ".tbz"]) => ArchiveKind::TarBz2,
            () if ends(&[".tar"]) => ArchiveKind::Tar,
            () if ends(&[".zip"]) => ArchiveKind::Zip,
            () if ends(&[".tar.xz", ".txz", ".tar.zst", ".7z", ".rar"]) => {
                return Err(Error::new(format_args!("archives like {address} cannot be unpacked")));
            }
            () => ArchiveKind::Program,
        })
    }
}

/// Unpacks an archive into an empty directory; a bare program gets the name `program` there.
pub(super) fn unpack(file: &Path, kind: ArchiveKind, into: &Path, program: &str) -> Result<()> {
    let opened = File::open(file).context(file.display())?;
    let mut tree = Tree::new(into)?;
    let unpacked = match kind {
        ArchiveKind::Tar => tar::unpack(BufReader::new(opened), &mut tree),
        ArchiveKind::TarGz => {
            tar::unpack(BufReader::new(MultiGzDecoder::new(BufReader::new(opened))), &mut tree)
        }
        ArchiveKind::TarBz2 => {
            tar::unpack(BufReader::new(MultiBzDecoder::new(BufReader::new(opened))), &mut tree)
        }
        ArchiveKind::Zip => zip::unpack(BufReader::new(opened), &mut tree),
        ArchiveKind::Program => bare(opened, &mut tree, program),
    };
    let unpacked = unpacked.and_then(|()| tree.finish());
    tracing::debug!(
        ?kind,
        error = unpacked.as_ref().err().map(|error| error.kind().to_string()),
        "archive unpacked"
    );
    unpacked.map_err(|error| {
        Error::new(format_args!("the archive cannot be unpacked: {error}"))
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
