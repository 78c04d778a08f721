//! The directory that an archive is unpacked into.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::invalid;
use crate::error::Result;
use crate::lock::private_dir;

/// Limits of an archive.
const MOST_BYTES: u64 = 8 << 30;
const MOST_ENTRIES: u64 = 500_000;

/// Writes below one directory only.
pub(super) struct Tree {
    root: PathBuf,
    /// Links are created last, so that nothing is ever written through one.
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

    /// Creates a directory and its parents. The root has no links yet, so this cannot lead out.
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

    /// Writes a file.
    pub(super) fn file(&mut self, name: &[u8], mode: u32, content: &mut dyn Read) -> io::Result<()> {
        self.count()?;
        let path = self.place(name)?;
        // Archives may contain a name twice; the last one counts.
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

    /// Adds a second name for an earlier file.
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

    /// Adds a link. It must stay in the directory: first up, at most to the root, then down.
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
                // After a name, `..` could be anywhere: the name may be a link itself.
                Component::ParentDir if down || above == 0 => return Err(wrong()),
                Component::ParentDir => above -= 1,
                Component::Normal(_) => down = true,
                Component::RootDir | Component::Prefix(_) => return Err(wrong()),
            }
        }
        self.links.push((path, PathBuf::from(target)));
        Ok(())
    }

    /// Returns the path of a file and creates its directory.
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

    /// Creates the links.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for (path, target) in std::mem::take(&mut self.links) {
            if let Some(parent) = path.parent() {
                // Fails if a new link takes the place of a directory.
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

/// Keeps plain permissions only: no set-user-id, and the owner can always read and write.
#[cfg(unix)]
fn permit(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o755 | 0o600))
}

#[cfg(not(unix))]
fn permit(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Reads a name as a path below the root; empty for the root itself.
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
