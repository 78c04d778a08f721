//! The directory that an archive is unpacked into.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::invalid;
use crate::error::Result;
use crate::lock::private_dir;

/// How much an archive may hold.
const MOST_BYTES: u64 = 8 << 30;
const MOST_ENTRIES: u64 = 500_000;

/// Writes below one directory and nowhere else.
pub(super) struct Tree {
    root: PathBuf,
    /// Links are made when everything else is there, so that nothing is ever written through one.
    links: Vec<(PathBuf, PathBuf)>,
    bytes: u64,
    entries: u64,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Result<Tree> {
        private_dir(root)?;
        Ok(Tree { root: root.to_owned(), links: Vec::new(), bytes: 0, entries: 0 })
    }

    fn count(&mut self) -> io::Result<()> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES { Err(invalid("it holds too many files")) } else { Ok(()) }
    }

    pub(super) fn directory(&mut self, name: &[u8]) -> io::Result<()> {
        self.count()?;
        let path = inside(name)?;
        self.make(&path)
    }

    /// Makes a directory and those above it. Within the root there are no links yet, so this cannot lead out.
    fn make(&self, path: &Path) -> io::Result<()> {
        let mut at = self.root.clone();
        for part in path.components() {
            at.push(part);
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => {
                    return Err(invalid(format_args!("`{}` is both a file and a directory", path.display())));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&at)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A file with its permissions and all that `content` gives.
    pub(super) fn file(&mut self, name: &[u8], mode: u32, content: &mut dyn Read) -> io::Result<()> {
        self.count()?;
        let path = self.place(name)?;
        // Archives may hold a name twice; the last one counts.
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                return Err(invalid(format_args!("`{}` is a directory", path.display())));
            }
            Ok(_) => fs::remove_file(&path)?,
            Err(_) => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        let left = MOST_BYTES.saturating_sub(self.bytes);
        let written = io::copy(&mut content.take(left + 1), &mut file)?;
        self.bytes += written;
        if written > left {
            return Err(invalid("it is too big"));
        }
        permit(&path, mode)
    }

    /// A second name for a file that came before.
    pub(super) fn same(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.count()?;
        let from = self.root.join(inside(target)?);
        if !fs::symlink_metadata(&from)?.is_file() {
            return Err(invalid("a hard link leads to something that is not a file"));
        }
        let to = self.place(name)?;
        if from == to {
            return Ok(());
        }
        let _ = fs::remove_file(&to);
        fs::copy(&from, &to).map(|bytes| self.bytes += bytes)
    }

    /// A link. It must lead to something within the directory: up first, as far as the root, then down.
    pub(super) fn link(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        self.count()?;
        let path = inside(name)?;
        let wrong = || invalid(format_args!("the link `{}` leads out of the archive", path.display()));
        let target = std::str::from_utf8(target).map_err(invalid)?;
        if target.is_empty() || target.contains('\0') || (cfg!(windows) && target.contains('\\')) {
            return Err(wrong());
        }
        let mut above = path.components().count().saturating_sub(1);
        let mut down = false;
        for part in Path::new(target).components() {
            match part {
                Component::CurDir => {}
                // Behind a name, `..` could be anywhere: the name may be a link itself.
                Component::ParentDir if down || above == 0 => return Err(wrong()),
                Component::ParentDir => above -= 1,
                Component::Normal(_) => down = true,
                Component::RootDir | Component::Prefix(_) => return Err(wrong()),
            }
        }
        self.links.push((path, PathBuf::from(target)));
        Ok(())
    }

    /// Where a file goes; its directory is there afterwards.
    fn place(&self, name: &[u8]) -> io::Result<PathBuf> {
        let path = inside(name)?;
        if path.as_os_str().is_empty() {
            return Err(invalid("a file has no name"));
        }
        if let Some(parent) = path.parent() {
            self.make(parent)?;
        }
        Ok(self.root.join(path))
    }

    /// Makes the links.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for (path, target) in std::mem::take(&mut self.links) {
            if let Some(parent) = path.parent() {
                // Fails where a link that was just made stands in for a directory.
                self.make(parent)?;
            }
            let path = self.root.join(path);
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => return Err(invalid("a link has the name of a directory")),
                Ok(_) => fs::remove_file(&path)?,
                Err(_) => {}
            }
            symlink(&target, &path)?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

/// Links need a privilege on Windows; a copy does the same for programs.
#[cfg(not(unix))]
fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    let from = path.parent().unwrap_or(Path::new("")).join(target);
    fs::copy(from, path).map(|_| ())
}

/// Only the plain permissions: no file is run as somebody else, and its owner can always read and write it.
#[cfg(unix)]
fn permit(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o755 | 0o600))
}

#[cfg(not(unix))]
fn permit(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// A name of an archive as a path below the root; empty for the root itself.
pub(super) fn inside(name: &[u8]) -> io::Result<PathBuf> {
    let text = std::str::from_utf8(name).map_err(|_| invalid("a name is not valid UTF-8"))?;
    let wrong = || invalid(format_args!("the name `{}` leads out of the archive", text.escape_default()));
    if text.contains('\0') || text.starts_with('/') || (cfg!(windows) && text.contains(['\\', ':'])) {
        return Err(wrong());
    }
    let mut path = PathBuf::new();
    for part in Path::new(text).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => path.push(part),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(wrong()),
        }
    }
    Ok(path)
}
