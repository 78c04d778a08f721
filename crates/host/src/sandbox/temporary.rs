//! A private directory for temporary files, where no file system in memory can be mounted.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// More names than this are not tried.
const ATTEMPTS: u32 = 100;

/// A directory that only this user can enter.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Creates one with a name that cannot be guessed, in the first of these directories where that
    /// works.
    pub(crate) fn create_in(parents: &[PathBuf]) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in parents {
            // The command sees the real path, so that a link in it cannot be exchanged.
            let Ok(parent) = parent.canonicalize() else { continue };
            for _ in 0..ATTEMPTS {
                let path = parent.join(format!("attache-{:016x}", random()));
                match fs::DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => return Ok(PrivateDirectory { path }),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        last = error;
                        break;
                    }
                }
            }
        }
        Err(io::Error::new(last.kind(), format!("cannot create a private directory: {last}")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all its contents, at any depth and with any permissions. Nothing may write
    /// to it any more.
    pub(crate) fn remove(self) {
        // Nested files are moved up first, so that neither the length of a path nor the number of
        // open files is a limit.
        let mut next = 0_u64;
        while let Ok(entries) = fs::read_dir(&self.path) {
            let mut progress = false;
            for entry in entries.flatten() {
                progress |= self.remove_entry(&entry.path(), &mut next);
            }
            if !progress {
                break;
            }
        }
        let _ = fs::remove_dir(&self.path);
    }

    fn remove_entry(&self, path: &Path, next: &mut u64) -> bool {
        let Ok(kind) = fs::symlink_metadata(path) else { return false };
        if !kind.is_dir() {
            return fs::remove_file(path).is_ok();
        }
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(path) else { return false };
        let mut moved = false;
        for entry in entries.flatten() {
            *next += 1;
            let from = entry.path();
            // Only a writable directory can be moved.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _ = fs::set_permissions(&from, fs::Permissions::from_mode(0o700));
            }
            moved |= fs::rename(&from, self.path.join(format!(".removed-{next}"))).is_ok();
        }
        fs::remove_dir(path).is_ok() || moved
    }
}

/// A number that another process cannot guess. The keys of a hash map come from the system's random
/// source.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn everything_in_it_goes_with_it() {
        let private = PrivateDirectory::create_in(&[std::env::temp_dir()]).unwrap();
        let path = private.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        let mut deep = path.join("deep");
        for _ in 0..60 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("/", path.join("link")).unwrap();
        fs::write(path.join(".removed-1"), "in the way").unwrap();
        let closed = path.join("closed");
        fs::create_dir_all(closed.join("in")).unwrap();
        for directory in [closed.join("in"), closed] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o000)).unwrap();
        }
        private.remove();
        assert!(!path.exists());
    }

    #[test]
    fn the_first_place_that_works_is_taken() {
        let parents = ["/no/such/directory".into(), std::env::temp_dir()];
        let private = PrivateDirectory::create_in(&parents).unwrap();
        assert!(private.path().starts_with(std::env::temp_dir().canonicalize().unwrap()));
        private.remove();
        assert!(PrivateDirectory::create_in(&parents[..1]).is_err());
    }
}
