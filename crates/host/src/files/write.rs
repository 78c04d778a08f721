//! Writing a file so that it is there entirely or not at all.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::FileError;
use super::jail::Place;
use super::text::Habits;
use crate::sys::{self, Dir};

/// A file that is longer than this is replaced without looking at its line ends.
const HABITS_LIMIT: u64 = 64 << 20;

/// Puts new content in the place of a file, or makes it.
///
/// The text goes into a file of its own in the same directory, which takes the name once all of it has reached the
/// disk. So a full disk, a crash or a kill leaves the old file as it was, and no reader ever sees half of it. Other
/// hard links of the file keep the old content.
pub(super) fn replace(place: &Place, content: &str, keep_line_ends: bool) -> Result<(), FileError> {
    let fail = |error| FileError::io(&place.real, error);
    let old = match place.kind {
        None => None,
        Some(_) => {
            place.expect_file()?;
            Some(open_old(place)?)
        }
    };
    let habits = match &old {
        Some(Old { file, readable: true }) => Habits::of(file, HABITS_LIMIT).map_err(fail)?,
        _ => Habits::default(),
    };
    let bytes = habits.apply(content, keep_line_ends);
    // Nobody may read the new text who could not read the old one, not even while it is written.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    put_with(place, mode, |file| fill(file, &bytes, old.as_ref().map(|old| &old.file)))
}

/// Puts what `fill` writes in the place of a file, or makes it. Nobody else may read it unless `fill` allows that.
pub(super) fn put(place: &Place, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    put_with(place, 0o600, |file| {
        fill(file)?;
        file.sync_all()
    })
}

fn put_with(
    place: &Place,
    mode: libc::mode_t,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let fail = |error| FileError::io(&place.real, error);
    let dir = make_parents(place)?;
    let (name, file) = create(&dir, mode).map_err(fail)?;
    let done = fill(&file).and_then(|()| dir.rename(&name, &place.name));
    if let Err(error) = done {
        // What stays behind if even this fails is a hidden file with our name on it.
        let _ = dir.remove(&name);
        return Err(fail(error));
    }
    Ok(())
}

struct Old {
    file: File,
    readable: bool,
}

/// A file that may not be written to is not replaced either, although its directory would allow it. Opening it for
/// writing is what asks that question of the system.
fn open_old(place: &Place) -> Result<Old, FileError> {
    let (opened, readable) = match place.dir.read_and_write(&place.name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (place.dir.write(&place.name), false)
        }
        opened => (opened, true),
    };
    Ok(Old { file: place.same_kind(opened)?, readable })
}

/// FS-11: missing parents are made, each inside the one before.
pub(super) fn make_parents(place: &Place) -> Result<Arc<Dir>, FileError> {
    let mut dir = place.dir.clone();
    for name in &place.missing {
        match dir.make_dir(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(FileError::io(&place.real, error));
            }
            _ => {}
        }
        // Somebody else may have made it, as a link; that is for another walk to follow.
        dir = Arc::new(dir.child(name).map_err(|_| FileError::Changed(place.real.clone()))?);
    }
    Ok(dir)
}

/// A new file under a name that nobody uses.
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
        take_after(file, old)?;
    }
    file.sync_all()
}

/// Owner, group and permissions of the old file, as far as the system lets us. The bits that make a program run as
/// somebody else are not handed on to a text that its owner has not seen.
fn take_after(file: &File, old: &File) -> io::Result<()> {
    let (new, before) = (file.metadata()?, old.metadata()?);
    let mode = before.mode() & 0o777;
    // A group that is not the old one gets what others get; and where there was a list of who may access the file, the
    // group's bits were not the group's.
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
