//! The directories of a session, and how a path is followed inside of them without ever leaving.
//!
//! A path is walked one name at a time, each name opened relative to the open directory before it and never through a
//! link; links are read and followed by this code. So what was checked is what is used, however somebody renames things
//! meanwhile (ROOT-18). The walk starts at a root and only there: nothing outside is even looked at. `..` goes back to
//! the directory that the walk came from; a link or a `..` that leaves a root is followed only into another root.

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

/// How large files may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// The most bytes that one read returns; 10 MiB unless said.
    pub read: u64,
    /// How far into a file a read looks for its first line; 1 GiB unless said.
    pub scan: u64,
    /// The most bytes that one write may have; 64 MiB unless said.
    pub write: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        FileLimits { read: 10 << 20, scan: 1 << 30, write: 64 << 20 }
    }
}

/// How many links one path may lead through. Linux allows as many.
const MAX_LINKS: usize = 40;
/// How often to start again when somebody exchanges things under our hands.
const MAX_TRIES: usize = 64;

/// A directory that may be used, with everything below.
#[derive(Debug)]
struct Root {
    /// As the session names it, and as the system does.
    names: [PathBuf; 2],
    dir: Arc<Dir>,
}

impl Root {
    fn real(&self) -> &Path {
        &self.names[1]
    }
}

/// The roots of a session, open.
#[derive(Debug)]
pub struct Jail {
    roots: Vec<Root>,
    limits: FileLimits,
    keep_line_ends: bool,
    refuse_links: bool,
}

/// Where a path leads: a name in an open directory. The name was not a link when it was looked at, and is never used as one.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: Arc<Dir>,
    /// Directories below `dir` that are not there yet.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    /// What the name stands for; `None` when there is nothing.
    pub(super) kind: Option<Kind>,
    /// The whole path, free of links and dots.
    pub(super) real: PathBuf,
}

impl Jail {
    /// Opens the roots. A root that does not exist, or is no directory, lends nothing.
    pub fn new(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let open = |path: &Path| {
            let real = fs::canonicalize(path).ok()?;
            let dir = Dir::open(&real).ok()?;
            Some(Root { names: [path.to_owned(), real], dir: Arc::new(dir) })
        };
        let roots = roots.into_iter().filter_map(|path| open(path.as_ref())).collect();
        Jail { roots, limits: FileLimits::default(), keep_line_ends: true, refuse_links: false }
    }

    /// Opens the whole file system, for paths that were free of links when they were recorded: should one lead through a
    /// link by now, at any component, it is refused.
    pub fn without_links() -> Self {
        Jail { refuse_links: true, ..Jail::new([Path::new("/")]) }
    }

    /// Other limits than the usual.
    #[must_use]
    pub fn limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether text with line feeds only that is written over a file with CRLF line ends gets those; it does unless said.
    #[must_use]
    pub fn keep_line_ends(mut self, keep: bool) -> Self {
        self.keep_line_ends = keep;
        self
    }

    /// The path of a file inside, free of links and dots. The file need not exist.
    ///
    /// # Errors
    /// When the path leads outside, or cannot be followed.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.find(path).map(|place| place.real)
    }

    /// Reads text from line `line` on (counted from 1), at most `limit` lines of it, without the byte order mark that a file
    /// may begin with (FS-05, FS-06).
    ///
    /// # Errors
    /// When there is no such file inside, or it holds no text, or too much of it.
    pub fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, FileError> {
        self.read_checked(path, line, limit, |_| Ok(()))
    }

    /// As [`read`](Self::read), with a last word for `check`, which sees the path that is really used.
    ///
    /// # Errors
    /// As [`read`](Self::read), and whatever `check` says.
    pub fn read_checked(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
        mut check: impl FnMut(&Path) -> Result<(), FileError>,
    ) -> Result<String, FileError> {
        let file = self.again(path, |place| {
            check(&place.real)?;
            place.open_to_read()
        })?;
        text::read(&file, path, Window { line, limit }, self.limits)
    }

    /// Writes a whole file, which is there afterwards either entirely or not at all. Its permissions, its byte order mark and
    /// its line ends are kept; missing parents are made (FS-10, FS-11, FS-16).
    ///
    /// # Errors
    /// When the path leads outside or to something that is no file, or the system refuses; the old file is intact then.
    pub fn write(&self, path: &Path, content: &str) -> Result<(), FileError> {
        self.write_checked(path, content, |_| Ok(()))
    }

    /// As [`write`](Self::write), with a last word for `check`, which sees the path that is really used, before
    /// anything is changed.
    ///
    /// # Errors
    /// As [`write`](Self::write), and whatever `check` says.
    pub fn write_checked(
        &self,
        path: &Path,
        content: &str,
        mut check: impl FnMut(&Path) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        if content.len() as u64 > self.limits.write {
            return Err(FileError::TooLarge(path.to_owned(), self.limits.write));
        }
        self.again(path, |place| {
            check(&place.real)?;
            write::replace(&place, content, self.keep_line_ends)
        })
    }

    /// Does something with what the path leads to. When that has become something else in the meantime, follows the path again.
    pub(super) fn again<T>(
        &self,
        path: &Path,
        mut act: impl FnMut(Place) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        for _ in 0..MAX_TRIES {
            match act(self.find(path)?) {
                Err(FileError::Changed(_)) => {}
                other => return other,
            }
        }
        Err(FileError::Changed(path.to_owned()))
    }

    /// Follows a path to its end.
    pub(super) fn find(&self, path: &Path) -> Result<Place, FileError> {
        let (root, rest) = self.enter(path, path)?;
        Walk { jail: self, asked: path, root, above: Vec::new(), rest, links: 0 }.run()
    }

    /// The root that an absolute path begins with, the innermost if there are several, and the way from there.
    fn enter(&self, absolute: &Path, asked: &Path) -> Result<(&Root, VecDeque<OsString>), FileError> {
        let roots = self.roots.iter().flat_map(|root| root.names.iter().map(move |name| (root, name)));
        roots
            .filter_map(|(root, name)| Some((root, absolute.strip_prefix(name).ok()?)))
            .min_by_key(|(_, rest)| rest.components().count())
            .map(|(root, rest)| (root, steps(rest).into()))
            .ok_or_else(|| FileError::Outside(asked.to_owned()))
    }
}

/// The names of a relative path, `..` among them.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    };
    path.components().filter_map(step).collect()
}

/// Systems do not agree on how to say that a name is a link and was not followed.
fn was_not_followed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP | libc::EMLINK))
}

/// A walk along a path.
struct Walk<'a> {
    jail: &'a Jail,
    asked: &'a Path,
    root: &'a Root,
    /// The directories between the root and where we are.
    above: Vec<(OsString, Arc<Dir>)>,
    /// The names that are still to go.
    rest: VecDeque<OsString>,
    links: usize,
}

impl Walk<'_> {
    fn run(mut self) -> Result<Place, FileError> {
        while let Some(step) = self.rest.pop_front() {
            if step == ".." {
                self.go_up()?;
            } else if self.rest.is_empty() {
                match self.here().kind(&step) {
                    Ok(Kind::Link) => self.follow(step)?,
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
                        // It may have become a directory in this moment.
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

    /// Back to where the walk came from; above a root there may be another root, by the same path.
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

    /// Goes where a link points. Should it be none any more, looks at the name again.
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

    /// The path of a name in the directory where we are.
    fn path_of(&self, name: &OsStr) -> PathBuf {
        let mut real = self.root.real().to_owned();
        real.extend(self.above.iter().map(|(name, _)| name));
        real.join(name)
    }

    fn arrive(&self, missing: Vec<OsString>, name: OsString, kind: Option<Kind>) -> Place {
        let mut real = self.root.real().to_owned();
        real.extend(self.above.iter().map(|(name, _)| name));
        real.extend(&missing);
        real.push(&name);
        Place { dir: self.here().clone(), missing, name, kind, real }
    }

    /// The path goes on where there is nothing yet. What is not there cannot be gone back from.
    fn arrive_beyond(mut self, step: OsString, error: io::Error) -> Result<Place, FileError> {
        match self.rest.pop_back() {
            Some(name) if name != ".." && !self.rest.iter().any(|name| name == "..") => {
                let missing = std::iter::once(step).chain(std::mem::take(&mut self.rest)).collect();
                Ok(self.arrive(missing, name, None))
            }
            _ => Err(self.fail(error)),
        }
    }
}

impl Place {
    pub(super) fn open_to_read(&self) -> Result<File, FileError> {
        self.expect_file()?;
        let opened = self.dir.read(&self.name);
        self.same_kind(opened)
    }

    /// What is known to be no file is not even opened: opening a device can have effects.
    pub(super) fn expect_file(&self) -> Result<(), FileError> {
        match self.kind {
            None => Err(FileError::NotFound(self.real.clone())),
            Some(kind) => regular(&self.real, kind),
        }
    }

    /// A file, or else why not. A name that has become a link or has vanished since it was looked at is `Changed`.
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
        // Met only when it has just been put there.
        Kind::Link => return Err(FileError::Changed(path.to_owned())),
    };
    Err(FileError::NotAFile(path.to_owned(), what))
}
