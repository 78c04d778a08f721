//! Atomic writes.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::FileError;
use super::jail::ResolvedPath;
use super::text::TextFormat;
use crate::sys::{self, Dir};

/// The line ends of a longer file are not examined.
const FORMAT_LIMIT: u64 = 64 << 20;

/// Creates a file or replaces its content.
///
/// The text is written to a temporary file in the same directory, which is renamed after it was
/// synced. So a full disk, a crash or a kill leaves the old file intact, and no reader sees half of
/// the new one. Other hard links of the file keep the old content.
pub(super) fn replace(place: &ResolvedPath, content: &str, keep_line_ends: bool) -> Result<(), FileError> {
    let fail = |error| FileError::io(&place.real, error);
    let old = match place.kind {
        None => None,
        Some(_) => {
            place.expect_file()?;
            Some(open_old(place)?)
        }
    };
    let format = match &old {
        Some(Old { file, readable: true }) => TextFormat::of(file, FORMAT_LIMIT).map_err(fail)?,
        _ => TextFormat::default(),
    };
    let bytes = format.apply(content, keep_line_ends);
    // Only users who could read the old file may read the new one, also while it is written.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    put_with(place, mode, |file| fill(file, &bytes, old.as_ref().map(|old| &old.file)))
}

/// Creates or replaces a file with the output of `fill`. The file is private unless `fill` changes
/// its permissions.
pub(super) fn put(place: &ResolvedPath, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    put_with(place, 0o600, |file| {
        fill(file)?;
        file.sync_all()
    })
}

fn put_with(
    place: &ResolvedPath,
    mode: libc::mode_t,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let fail = |error| FileError::io(&place.real, error);
    let dir = make_parents(place)?;
    let (name, file) = create(&dir, mode).map_err(fail)?;
    let done = fill(&file).and_then(|()| dir.rename(&name, &place.name));
    if let Err(error) = done {
        // If this fails too, a hidden file with our name stays behind.
        let _ = dir.remove(&name);
        return Err(fail(error));
    }
    Ok(())
}

struct Old {
    file: File,
    readable: bool,
}

/// Opens the old file for writing, so that the system refuses where the file is read-only: a rename
/// would replace it all the same.
fn open_old(place: &ResolvedPath) -> Result<Old, FileError> {
    let (opened, readable) = match place.dir.read_and_write(&place.name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (place.dir.write(&place.name), false)
        }
        opened => (opened, true),
    };
    Ok(Old { file: place.same_kind(opened)?, readable })
}

// FS-11
/// Creates missing parents, each relative to the one before.
pub(super) fn make_parents(place: &ResolvedPath) -> Result<Arc<Dir>, FileError> {
    let mut dir = place.dir.clone();
    for name in &place.missing {
        match dir.make_dir(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(FileError::io(&place.real, error));
            }
            _ => {}
        }
        // Another process may have created it as a link, which the next attempt resolves.
        dir = Arc::new(dir.child(name).map_err(|_| FileError::Changed(place.real.clone()))?);
    }
    Ok(dir)
}

/// Creates a file with an unused name.
fn create(dir: &Dir, mode: libc::mode_t) -> io::Result<(OsString, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..64 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".attache-{}-{number}.tmp", std::process::id()));
        match dir.create(&name, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (name, file)),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn fill(mut file: &File, bytes: &[u8], old: Option<&File>) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(old) = old {
        copy_metadata(file, old)?;
    }
    file.sync_all()
}

/// Copies owner, group and permissions of the old file where the system allows it. Setuid and
/// setgid bits are dropped, because the owner has not seen the new content.
fn copy_metadata(file: &File, old: &File) -> io::Result<()> {
    let (new, before) = (file.metadata()?, old.metadata()?);
    let mode = before.mode() & 0o777;
    // Another group gets the permissions of others. With an access control list, the group bits are
    // its mask and not the permissions of the group.
    let narrow = mode & 0o707 | (mode & 0o007) << 3;
    let same_group = (new.uid(), new.gid()) == (before.uid(), before.gid())
        || fchown(file, Some(before.uid()), Some(before.gid())).is_ok()
        || fchown(file, None, Some(before.gid())).is_ok();
    file.set_permissions(Permissions::from_mode(if same_group { mode } else { narrow }))?;
    if !sys::copy_attributes(old, file) {
        file.set_permissions(Permissions::from_mode(narrow))?;
    }
    Ok(())
}
