//! Paths, followed name by name, with a memory of what was passed on the way.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::sys::{self, Dir, FileStat, Kind};

/// More links than this in one path are a loop.
const MOST_LINKS: usize = 40;

/// The identity of a file or directory, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Id {
    pub(super) fn of(descriptor: BorrowedFd<'_>) -> io::Result<Id> {
        let FileStat { device, inode, .. } = sys::stat(descriptor)?;
        Ok(Id { device, inode })
    }
}

/// Something that was passed on the way. Its path contains no link, except for itself.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) descriptor: OwnedFd,
    /// Where a link points to.
    pub(super) target: OsString,
}

impl Step {
    pub(super) fn id(&self) -> io::Result<Id> {
        Id::of(self.descriptor.as_fd())
    }
}

/// How a path ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// All of it exists.
    Found,
    /// This name does not exist in the last directory.
    Missing { name: OsString },
    /// The last step is a file, or a directory that cannot be searched, and more names follow.
    Blocked,
    /// Links lead in circles, or a name is too long: nothing is there, and nothing can be.
    Lost,
}

/// The way that a path leads.
#[derive(Debug)]
pub(super) struct Trail {
    /// Every directory and link on the way, and what is at its end.
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
}

impl Trail {
    /// Follows an absolute path as far as it exists.
    ///
    /// # Errors
    /// When the system has no room for another descriptor.
    pub(super) fn follow(path: &Path) -> io::Result<Trail> {
        let mut left: VecDeque<OsString> = names(path);
        let mut trail = Trail { steps: vec![root()?], end: End::Found };
        let mut links = 0;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                trail.leave()?;
                continue;
            }
            let place = trail.last();
            if place.kind != Kind::Directory {
                trail.end = End::Blocked;
                break;
            }
            let path = place.path.join(&name);
            let descriptor = match sys::open_path_in(place.descriptor.as_fd(), &name) {
                Ok(descriptor) => descriptor,
                Err(error) => {
                    trail.end = match error.kind() {
                        io::ErrorKind::NotFound => End::Missing { name },
                        io::ErrorKind::PermissionDenied => End::Blocked,
                        _ => End::Lost,
                    };
                    break;
                }
            };
            let kind = sys::stat(descriptor.as_fd())?.kind;
            let mut step = Step { path, kind, descriptor, target: OsString::new() };
            if kind == Kind::Link {
                step.target = sys::target_of(step.descriptor.as_fd())?;
                let target = PathBuf::from(&step.target);
                trail.steps.push(step);
                links += 1;
                if links > MOST_LINKS {
                    trail.end = End::Lost;
                    break;
                }
                if target.is_absolute() {
                    trail.steps.push(root()?);
                }
                names(&target).into_iter().rev().for_each(|name| left.push_front(name));
            } else {
                trail.steps.push(step);
            }
        }
        Ok(trail)
    }

    /// The place that was reached, which is no link.
    pub(super) fn last(&self) -> &Step {
        self.steps.iter().rev().find(|step| step.kind != Kind::Link).unwrap_or(&self.steps[0])
    }

    /// The end of the path, if all of it exists.
    pub(super) fn found(&self) -> Option<&Step> {
        (self.end == End::Found).then(|| self.last())
    }

    /// The links on the way.
    pub(super) fn links(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.kind == Kind::Link)
    }

    /// Goes back to the directory above.
    fn leave(&mut self) -> io::Result<()> {
        let above = self.last().path.parent().unwrap_or(Path::new("/")).to_owned();
        // It has been passed, because the path of a place contains no link.
        let step = self.steps.iter().rev().find(|step| step.kind != Kind::Link && step.path == above);
        if let Some(Step { kind, descriptor, .. }) = step {
            let (kind, descriptor) = (*kind, descriptor.try_clone()?);
            self.steps.push(Step { path: above, kind, descriptor, target: OsString::new() });
        }
        Ok(())
    }
}

fn root() -> io::Result<Step> {
    let descriptor = Dir::open(Path::new("/"))?.into_descriptor();
    Ok(Step { path: "/".into(), kind: Kind::Directory, descriptor, target: OsString::new() })
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

/// All paths in the directory of a file that are the same file.
pub(super) fn hard_links(step: &Step) -> io::Result<Vec<PathBuf>> {
    let id = step.id()?;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(step.path.parent().unwrap_or(Path::new("/")))? {
        let path = entry?.path();
        let metadata = std::fs::symlink_metadata(&path);
        if metadata.is_ok_and(|metadata| metadata.dev() == id.device && metadata.ino() == id.inode) {
            paths.push(path);
        }
    }
    Ok(paths)
}
