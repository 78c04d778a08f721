//! The directories of a session, and how a path is followed inside of them without ever leaving.
//!
//! A path is walked one name at a time, each name opened relative to the open directory before it
//! and never through a link; links are read and followed by this code. So the file that was checked
//! is the file that is used, even if names are changed meanwhile. The walk starts at a root and
//! only there: nothing outside is even looked at. `..` goes back to the directory that the walk
//! came from; a link or a `..` that leaves a root is followed only into another root.

// ROOT-18

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::FileError;
use super::text::{self, Window};
use super::write;
use crate::sys::{Dir, Kind};

/// Size limits of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Upper bound of the bytes that one read returns. Default: 10 MiB.
    pub read: u64,
    /// Upper bound of the bytes that are skipped to find the first line. Default: 1 GiB.
    pub scan: u64,
    /// Upper bound of the bytes of one write. Default: 64 MiB.
    pub write: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        FileLimits { read: 10 << 20, scan: 1 << 30, write: 64 << 20 }
    }
}

/// Symbolic links that one path may lead through, the same number as on Linux.
const MAX_LINKS: usize = 40;
/// Attempts when another process changes the path at the same time.
const MAX_TRIES: usize = 64;

/// A directory of the session.
#[derive(Debug)]
struct Root {
    /// The path that the session gave, and the canonical path.
    names: [PathBuf; 2],
    dir: Arc<Dir>,
}

impl Root {
    fn real(&self) -> &Path {
        &self.names[1]
    }
}

/// The open root directories of a session. Paths are resolved inside of them only.
#[derive(Debug)]
pub struct Jail {
    roots: Vec<Root>,
    limits: FileLimits,
    keep_line_ends: bool,
    refuse_links: bool,
}

/// A resolved path: a name in an open directory. The name was not a link when it was checked, and
/// is never followed as one.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    pub(super) dir: Arc<Dir>,
    /// Directories below `dir` that do not exist yet.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    /// The file type; `None` if nothing has this name.
    pub(super) kind: Option<Kind>,
    /// The absolute path without links and dots.
    pub(super) real: PathBuf,
}

impl Jail {
    /// Opens the roots. A root that is not an existing directory is skipped.
    pub fn new(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let open = |path: &Path| {
            let real = fs::canonicalize(path).ok()?;
            let dir = Dir::open(&real).ok()?;
            Some(Root { names: [path.to_owned(), real], dir: Arc::new(dir) })
        };
        let roots = roots.into_iter().filter_map(|path| open(path.as_ref())).collect();
        Jail { roots, limits: FileLimits::default(), keep_line_ends: true, refuse_links: false }
    }

    /// Opens the whole file system, for recorded paths without links: a path is refused when any of
    /// its components is a link now.
    pub fn without_links() -> Self {
        Jail { refuse_links: true, ..Jail::new([Path::new("/")]) }
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether text with LF line ends that replaces a file with CRLF line ends is converted.
    /// Default: true.
    #[must_use]
    pub fn keep_line_ends(mut self, keep: bool) -> Self {
        self.keep_line_ends = keep;
        self
    }

    /// Resolves a path to one without links and dots. The file need not exist.
    ///
    /// # Errors
    /// When the path leads outside, or cannot be followed.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.find(path).map(|place| place.real)
    }

    // FS-05, FS-06
    /// Reads text from line `line` on (counted from 1), at most `limit` lines of it, without the
    /// byte order mark that a file may begin with.
    ///
    /// # Errors
    /// When there is no such file inside, or it holds no text, or too much of it.
    pub fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, FileError> {
        self.read_checked(path, line, limit, |_| Ok(()))
    }

    /// Like [`read`](Self::read), but `check` gets the resolved path first and may refuse it.
    ///
    /// # Errors
    /// As [`read`](Self::read), and the errors of `check`.
    pub fn read_checked(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
        mut check: impl FnMut(&Path) -> Result<(), FileError>,
    ) -> Result<String, FileError> {
        let file = self.retry(path, |place| {
            check(&place.real)?;
            place.open_to_read()
        })?;
        text::read(&file, path, Window { line, limit }, self.limits)
    }

    // FS-10, FS-11, FS-16
    /// Writes a whole file, which is there afterwards either entirely or not at all. Its
    /// permissions, its byte order mark and its line ends are kept; missing parents are made.
    ///
    /// # Errors
    /// When the path leads outside or to something that is no file, or the system refuses; the old
    /// file is intact then.
    pub fn write(&self, path: &Path, content: &str) -> Result<(), FileError> {
        self.write_checked(path, content, |_| Ok(()))
    }

    /// Like [`write`](Self::write), but `check` gets the resolved path before any change and may
    /// refuse it.
    ///
    /// # Errors
    /// As [`write`](Self::write), and the errors of `check`.
    pub fn write_checked(
        &self,
        path: &Path,
        content: &str,
        mut check: impl FnMut(&Path) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        if content.len() as u64 > self.limits.write {
            return Err(FileError::TooLarge(path.to_owned(), self.limits.write));
        }
        self.retry(path, |place| {
            check(&place.real)?;
            write::replace(&place, content, self.keep_line_ends)
        })
    }

    /// Resolves the path and runs `act`; starts again when the file was replaced in between.
    pub(super) fn retry<T>(
        &self,
        path: &Path,
        mut act: impl FnMut(ResolvedPath) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        for _ in 0..MAX_TRIES {
            match act(self.find(path)?) {
                Err(FileError::Changed(_)) => {}
                other => return other,
            }
        }
        Err(FileError::Changed(path.to_owned()))
    }

    /// Resolves a path.
    pub(super) fn find(&self, path: &Path) -> Result<ResolvedPath, FileError> {
        self.walk(path, true)
    }

    /// Resolves a path whose last component may be a link, which is not followed.
    pub(super) fn find_link(&self, path: &Path) -> Result<ResolvedPath, FileError> {
        self.walk(path, false)
    }

    fn walk(&self, path: &Path, follow_last: bool) -> Result<ResolvedPath, FileError> {
        let (root, rest) = self.enter(path, path)?;
        Walk { jail: self, asked: path, root, above: Vec::new(), rest, links: 0, follow_last }.run()
    }

    /// Finds the innermost root that contains an absolute path, and the remaining components.
    fn enter(&self, absolute: &Path, asked: &Path) -> Result<(&Root, VecDeque<OsString>), FileError> {
        let roots = self.roots.iter().flat_map(|root| root.names.iter().map(move |name| (root, name)));
        roots
            .filter_map(|(root, name)| Some((root, absolute.strip_prefix(name).ok()?)))
            .min_by_key(|(_, rest)| rest.components().count())
            .map(|(root, rest)| (root, steps(rest).into()))
            .ok_or_else(|| FileError::Outside(asked.to_owned()))
    }
}

/// The components of a relative path, including `..`.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    };
    path.components().filter_map(step).collect()
}

/// Whether the error means that a name is a link and was not followed; systems use different codes.
fn was_not_followed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP | libc::EMLINK))
}

/// The state of resolving one path.
struct Walk<'a> {
    jail: &'a Jail,
    asked: &'a Path,
    root: &'a Root,
    /// The directories between the root and the current one.
    above: Vec<(OsString, Arc<Dir>)>,
    /// The remaining components.
    rest: VecDeque<OsString>,
    links: usize,
    /// Whether a link as the last component is followed.
    follow_last: bool,
}

impl Walk<'_> {
    fn run(mut self) -> Result<ResolvedPath, FileError> {
        while let Some(step) = self.rest.pop_front() {
            if step == ".." {
                self.go_up()?;
            } else if self.rest.is_empty() {
                match self.here().kind(&step) {
                    Ok(Kind::Link) if self.follow_last => self.follow(step)?,
                    Ok(kind) => return Ok(self.arrive(Vec::new(), step, Some(kind))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return Ok(self.arrive(Vec::new(), step, None));
                    }
                    Err(error) => return Err(self.fail(error)),
                }
            } else {
                match self.here().child(&step) {
                    Ok(dir) => self.above.push((step, Arc::new(dir))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return self.arrive_beyond(step, error);
                    }
                    Err(error) => match self.here().kind(&step) {
                        // It may have become a directory in the meantime.
                        Ok(Kind::Link | Kind::Directory) if was_not_followed(&error) => self.follow(step)?,
                        _ => return Err(self.fail(error)),
                    },
                }
            }
        }
        Err(FileError::NotAFile(self.asked.to_owned(), "a directory"))
    }

    fn here(&self) -> &Arc<Dir> {
        self.above.last().map_or(&self.root.dir, |(_, dir)| dir)
    }

    fn fail(&self, error: io::Error) -> FileError {
        FileError::io(self.asked, error)
    }

    /// Goes to the parent; above a root there may be another root.
    fn go_up(&mut self) -> Result<(), FileError> {
        if self.above.pop().is_none() {
            let outside = self.root.real().parent().unwrap_or(Path::new("/"));
            self.start_at(outside.to_owned())?;
        }
        Ok(())
    }

    fn start_at(&mut self, absolute: PathBuf) -> Result<(), FileError> {
        let whole = absolute.join(self.rest.iter().collect::<PathBuf>());
        (self.root, self.rest) = self.jail.enter(&whole, self.asked)?;
        self.above.clear();
        Ok(())
    }

    /// Follows a link. If the name is no link any more, it is resolved again.
    fn follow(&mut self, name: OsString) -> Result<(), FileError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(self.fail(io::Error::other("too many symbolic links")));
        }
        match self.here().read_link(&name) {
            Ok(_) if self.jail.refuse_links => return Err(FileError::Link(self.path_of(&name))),
            Ok(link) => {
                let link = PathBuf::from(link);
                if link.is_absolute() {
                    return self.start_at(link);
                }
                steps(&link).into_iter().rev().for_each(|step| self.rest.push_front(step));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.rest.push_front(name),
            Err(error) => return Err(self.fail(error)),
        }
        Ok(())
    }

    /// The path of a name in the current directory.
    fn path_of(&self, name: &OsStr) -> PathBuf {
        let mut real = self.root.real().to_owned();
        real.extend(self.above.iter().map(|(name, _)| name));
        real.join(name)
    }

    fn arrive(&self, missing: Vec<OsString>, name: OsString, kind: Option<Kind>) -> ResolvedPath {
        let mut real = self.root.real().to_owned();
        real.extend(self.above.iter().map(|(name, _)| name));
        real.extend(&missing);
        real.push(&name);
        ResolvedPath { dir: self.here().clone(), missing, name, kind, real }
    }

    /// Ends a path whose remaining components do not exist yet; `..` among them is an error.
    fn arrive_beyond(mut self, step: OsString, error: io::Error) -> Result<ResolvedPath, FileError> {
        match self.rest.pop_back() {
            Some(name) if name != ".." && !self.rest.iter().any(|name| name == "..") => {
                let missing = std::iter::once(step).chain(std::mem::take(&mut self.rest)).collect();
                Ok(self.arrive(missing, name, None))
            }
            _ => Err(self.fail(error)),
        }
    }
}

impl ResolvedPath {
    pub(super) fn open_to_read(&self) -> Result<File, FileError> {
        self.expect_file()?;
        let opened = self.dir.read(&self.name);
        self.same_kind(opened)
    }

    /// Fails unless it is a regular file. Other kinds are not opened, since opening a device can
    /// have effects.
    pub(super) fn expect_file(&self) -> Result<(), FileError> {
        match self.kind {
            None => Err(FileError::NotFound(self.real.clone())),
            Some(kind) => regular(&self.real, kind),
        }
    }

    /// Checks the type of an opened file. A name that has become a link or was removed is
    /// `Changed`.
    pub(super) fn same_kind(&self, opened: io::Result<File>) -> Result<File, FileError> {
        match opened {
            Ok(file) => {
                let kind = Kind::of_file(&file).map_err(|error| FileError::io(&self.real, error))?;
                regular(&self.real, kind)?;
                Ok(file)
            }
            Err(error) => match error.raw_os_error() {
                // FreeBSD says EMLINK for a link that is not followed.
                Some(libc::ELOOP | libc::EMLINK | libc::ENOENT) => Err(FileError::Changed(self.real.clone())),
                _ => Err(FileError::io(&self.real, error)),
            },
        }
    }
}

fn regular(path: &Path, kind: Kind) -> Result<(), FileError> {
    let what = match kind {
        Kind::File => return Ok(()),
        Kind::Directory => "a directory",
        Kind::Fifo => "a FIFO",
        Kind::Socket => "a socket",
        Kind::Device => "a device",
        // Only possible if it was created just now.
        Kind::Link => return Err(FileError::Changed(path.to_owned())),
    };
    Err(FileError::NotAFile(path.to_owned(), what))
}
