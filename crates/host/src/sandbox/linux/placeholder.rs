//! Empty directories in the place of protected paths that do not exist.
//!
//! A mount needs something to be mounted on, so a missing path can be kept from being created only
//! if something is there. An empty directory is the least harmful thing: git and most other
//! programs ignore it. A placeholder is recognised by permissions that nothing else has. Each
//! sandbox that uses it holds a shared lock, because a mount vanishes from all sandboxes when its
//! place is removed outside; the last user removes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::PermissionsExt as _;

use super::explain;
use super::resolve::{End, Id, Step, Trail};
use super::roots::Root;
use crate::sandbox::Confinement;
use crate::sys::process::user_and_group;
use crate::sys::{self, Dir, Kind};

/// Permissions of placeholders. No other directory is sticky and cannot be written to.
const MODE: u32 = 0o1555;

/// Attempts to share a placeholder before another sandbox removes it.
const ATTEMPTS: usize = 100;

/// A placeholder in use.
#[derive(Debug)]
pub(super) struct Placeholder {
    directory: Dir,
    name: OsString,
    lock: File,
}

/// Creates what is missing of the protected paths of a confinement, and takes a share in what
/// others have created.
///
/// Everything happens in directories that are open, so that a link that takes the place of one of
/// them changes nothing.
pub(super) fn create_all(confinement: &Confinement) -> io::Result<Vec<Placeholder>> {
    let mut roots = Root::all(confinement)?;
    roots.retain(|root| root.writable);
    let mut placeholders = Vec::new();
    for path in &confinement.read_only {
        for _ in 0..ATTEMPTS {
            let trail = Trail::follow(path)?;
            let last = trail.last();
            if !roots.iter().any(|root| last.path.starts_with(root.path())) {
                break;
            }
            if is_placeholder(last) {
                if let Some(placeholder) = Placeholder::share(&trail, last)? {
                    placeholders.push(placeholder);
                    break;
                }
                continue;
            }
            let End::Missing { name } = &trail.end else { break };
            let directory = Dir::from(last.descriptor.try_clone()?);
            let created = create(&directory, name);
            let place = last.path.join(name);
            if !created.map_err(explain(format!("cannot protect `{}`", place.display())))? {
                break;
            }
        }
    }
    Ok(placeholders)
}

/// Whether what a path leads to is a placeholder.
pub(super) fn is_placeholder(step: &Step) -> bool {
    let facts = sys::stat(step.descriptor.as_fd());
    step.kind == Kind::Directory
        && facts.is_ok_and(|facts| facts.mode == MODE && facts.user == user_and_group().0)
}

/// Creates a placeholder. False if the user may not: then no command of the user can create
/// anything there.
fn create(directory: &Dir, name: &OsStr) -> io::Result<bool> {
    let created = directory.make_dir(name).and_then(|()| {
        let made = directory.child(name)?.into_descriptor();
        // By the descriptor, which stays the directory that was just made.
        let place = format!("/proc/self/fd/{}", made.as_raw_fd());
        fs::set_permissions(place, fs::Permissions::from_mode(MODE))
    });
    match created {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(true),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Ok(false),
            _ => Err(error),
        },
    }
}

impl Placeholder {
    /// Takes a share in a placeholder; `None` if it is gone or being removed.
    fn share(trail: &Trail, step: &Step) -> io::Result<Option<Placeholder>> {
        let above = step.path.parent();
        let above =
            trail.steps.iter().rev().find(|other| other.kind != Kind::Link && Some(&*other.path) == above);
        let (Some(above), Some(name)) = (above, step.path.file_name()) else { return Ok(None) };
        let directory = Dir::from(above.descriptor.try_clone()?);
        let lock = match directory.read(name) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        sys::lock_shared(&lock)?;
        let placeholder = Placeholder { directory, name: name.to_owned(), lock };
        Ok(placeholder.is_there().then_some(placeholder))
    }

    /// Whether the name still stands for what is locked.
    fn is_there(&self) -> bool {
        let there = self.directory.open_path(&self.name).and_then(|place| Id::of(place.as_fd()));
        let locked = Id::of(self.lock.as_fd());
        matches!((there, locked), (Ok(there), Ok(locked)) if there == locked)
    }

    /// Removes it, unless others use it or it has become something else.
    pub(super) fn release(self) {
        // The lock becomes exclusive only if no other sandbox shares it.
        if !sys::try_lock(&self.lock) {
            return;
        }
        if self.is_there() {
            // One that is not empty any more stays.
            let _ = self.directory.remove_dir(&self.name);
        }
    }
}
