//! Operations on whole files: reading bytes, restoring, removing, moving. They resolve paths like
//! all others, so nothing outside of the roots is touched.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::write::{self, make_parents};
use super::{FileError, Jail};
use crate::sys::Kind;

impl Jail {
    /// Reads the bytes of a file, at most `limit` of them.
    ///
    /// # Errors
    /// When there is no such file inside, or it is longer.
    pub fn bytes(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        self.open(path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| FileError::io(path, error))?;
        match bytes.len() as u64 > limit {
            true => Err(FileError::TooLarge(path.to_owned(), limit)),
            false => Ok(bytes),
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// When there is no such file inside.
    pub fn open(&self, path: &Path) -> Result<File, FileError> {
        self.retry(path, |place| place.open_to_read())
    }

    /// The size of a file, which may change before it is read.
    ///
    /// # Errors
    /// When there is no such file inside.
    pub fn size(&self, path: &Path) -> Result<u64, FileError> {
        let metadata = self.open(path)?.metadata();
        metadata.map(|metadata| metadata.len()).map_err(|error| FileError::io(path, error))
    }

    /// Creates or replaces a file atomically. It gets the permissions `mode` without setuid and
    /// setgid bits. Missing parents are created. Other hard links of the old file keep their
    /// content.
    ///
    /// # Errors
    /// When the path leads outside or to something that is no file, or the system refuses; the old
    /// file is intact then.
    pub fn restore(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        self.retry(path, |place| {
            if place.kind.is_some() {
                place.expect_file()?;
            }
            write::put(&place, |file| {
                file.set_permissions(Permissions::from_mode(mode & 0o777))?;
                (&*file).write_all(bytes)
            })
        })
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When there is no such directory inside, it is not empty, or the system refuses.
    pub fn remove_dir(&self, path: &Path) -> Result<(), FileError> {
        self.retry(path, |place| match place.kind {
            Some(Kind::Directory) => {
                place.dir.remove_dir(&place.name).map_err(|error| FileError::io(&place.real, error))
            }
            None => Err(FileError::NotFound(place.real)),
            Some(_) => Err(FileError::io(path, io::Error::from(io::ErrorKind::NotADirectory))),
        })
    }

    /// Removes a file. A link is followed, and its target is removed.
    ///
    /// # Errors
    /// When there is no such file inside, or the system refuses.
    pub fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.retry(path, |place| {
            place.expect_file()?;
            place.dir.remove(&place.name).map_err(|error| FileError::io(&place.real, error))
        })
    }

    /// The target of a symbolic link, which is not followed. Returns `None` if the path is
    /// something else.
    ///
    /// # Errors
    /// When the path leads outside, or nothing has this name.
    pub fn link_target(&self, path: &Path) -> Result<Option<OsString>, FileError> {
        let place = self.find_link(path)?;
        match place.kind {
            None => Err(FileError::NotFound(place.real)),
            Some(Kind::Link) => match place.dir.read_link(&place.name) {
                Ok(target) => Ok(Some(target)),
                Err(error) => Err(FileError::io(&place.real, error)),
            },
            Some(_) => Ok(None),
        }
    }

    /// Creates a symbolic link, whose target is not looked at. Missing parents are created.
    ///
    /// # Errors
    /// When the path leads outside, the name is taken, or the system refuses.
    pub fn create_link(&self, path: &Path, target: &OsStr) -> Result<(), FileError> {
        let place = self.find_link(path)?;
        let dir = make_parents(&place)?;
        dir.make_link(&place.name, target).map_err(|error| FileError::io(&place.real, error))
    }

    /// Removes a symbolic link and keeps its target.
    ///
    /// # Errors
    /// When there is no such link inside, or the system refuses.
    pub fn remove_link(&self, path: &Path) -> Result<(), FileError> {
        let place = self.find_link(path)?;
        match place.kind {
            None => Err(FileError::NotFound(place.real)),
            Some(Kind::Link) => {
                place.dir.remove(&place.name).map_err(|error| FileError::io(&place.real, error))
            }
            Some(_) => Err(FileError::Changed(place.real)),
        }
    }

    /// Moves a file to a name that is not used yet. Missing parents are created.
    ///
    /// # Errors
    /// When there is no such file inside, the new name is outside or taken, or the system refuses.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.retry(from, |place| {
            place.expect_file()?;
            let target = self.find(to)?;
            match target.kind {
                None => {}
                Some(Kind::Directory) => return Err(FileError::NotAFile(to.to_owned(), "a directory")),
                Some(_) => return Err(FileError::io(to, io::Error::from(io::ErrorKind::AlreadyExists))),
            }
            let dir = make_parents(&target)?;
            match place.dir.move_to(&place.name, &dir, &target.name) {
                // A file cannot be renamed to another disk, so it is copied.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    let file = place.open_to_read()?;
                    copy(&file, || dir.create(&target.name, 0o600))
                        .and_then(|()| place.dir.remove(&place.name))
                        .map_err(|error| FileError::io(to, error))
                }
                other => other.map_err(|error| FileError::io(from, error)),
            }
        })
    }
}

fn copy(mut from: &File, create: impl FnOnce() -> io::Result<File>) -> io::Result<()> {
    let mut to = create()?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(Permissions::from_mode(from.metadata()?.permissions().mode() & 0o777))?;
    to.flush()?;
    to.sync_all()
}
