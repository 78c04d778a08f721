//! Directories and files that only this user can change.
//!
//! Other users can create names in shared places such as `/tmp` before this program does. So no
//! name is trusted: directories are opened without following a link and their owner is checked,
//! files are created exclusively, and temporary names come from the system's random source.
//!
//! On systems without Unix permissions the functions create files and directories without checks.
//! Errors name the path, so callers need not.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The largest file that [`read_secret`] reads.
const MAX_SECRET_BYTES: u64 = 1 << 20;

/// Creates a directory with mode 0700, or checks the one that exists. Missing parents are created
/// in the same way.
///
/// # Errors
/// When it cannot be created, when it is a symbolic link or not a directory, when it belongs to
/// another user, or when others can write to it or replace it. The text names the remedy.
pub fn create_directory(path: &Path) -> io::Result<()> {
    // A slash at the end would make the system follow a link.
    let path: PathBuf = path.components().collect();
    create_parents(&path)?;
    check_directory(&path)
}

/// Creates a file that did not exist, readable and writable by this user only.
///
/// # Errors
/// When there is something of this name, a link included, or the file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().write(true).create_new(true))
}

/// Creates a file that did not exist, for appending; otherwise like [`create`].
///
/// # Errors
/// As those of [`create`].
pub fn create_log(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create_new(true))
}

/// Opens a file for appending, or creates it readable and writable by this user only.
///
/// A regular file that other users can read is made private first. A device or a pipe is opened as
/// it is.
///
/// # Errors
/// When it is a link to a regular file, when it belongs to another user, or when it cannot be
/// opened.
pub fn append(path: &Path) -> io::Result<File> {
    if is_special(path) {
        return open_special(path);
    }
    let file = open(path, OpenOptions::new().append(true).create(true))?;
    make_private(path, &file)?;
    Ok(file)
}

/// Opens a file for reading and writing, for example to lock it; otherwise like [`append`].
///
/// # Errors
/// As those of [`append`], and when it is not a regular file.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let file = open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))?;
    if !file.metadata()?.is_file() {
        return Err(denied(format!("{} is not a regular file", path.display())));
    }
    make_private(path, &file)?;
    Ok(file)
}

/// Replaces a file in one step: a reader sees the old content or the new one, also after a crash.
/// Only this user can read the new file. A symbolic link of that name is replaced, not followed.
///
/// # Errors
/// When the file cannot be written; the old one is then untouched.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = dir.join(format!(".{name}.{}.tmp", random_name()?));
    let mut file = create(&temporary)?;
    let written = (|| {
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        with_path(path, &error)
    })
}

/// Writes a file whose path the user gave: like [`replace`], except that a device or a pipe is
/// written to.
///
/// # Errors
/// As those of [`replace`].
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if !is_special(path) {
        return replace(path, content);
    }
    open_special(path)?.write_all(content).map_err(|error| with_path(path, &error))
}

/// Opens a device or a pipe for writing. A pipe of another user is refused: that user could block
/// the open forever.
fn open_special(path: &Path) -> io::Result<File> {
    // A pipe that was inherited is open already.
    if !is_descriptor(path) && is_foreign_pipe(path) {
        return Err(denied(format!("{} is a pipe that belongs to another user", path.display())));
    }
    // Standard output may be a file that others write to as well.
    OpenOptions::new().append(true).open(path).map_err(|error| with_path(path, &error))
}

/// Whether a path leads to something that exists and is neither a file nor a directory: a device, a
/// pipe, a socket. A descriptor of this process, such as `/dev/stderr`, counts too, whatever it is.
pub fn is_special(path: &Path) -> bool {
    is_descriptor(path) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn is_descriptor(path: &Path) -> bool {
    let descriptors = ["/dev/fd", "/proc/self/fd", "/dev/stdout", "/dev/stderr"];
    descriptors.iter().any(|descriptor| path.starts_with(descriptor))
}

/// Reads a file that holds secrets. Returns `None` when there is none.
///
/// # Errors
/// When other users can read it, when it belongs to another user, when it is not a regular file or
/// not UTF-8, or when it is larger than 1 MiB.
pub fn read_secret(path: &Path) -> io::Result<Option<String>> {
    let file = match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    check_secret(path, &file.metadata()?)?;
    let mut text = String::new();
    let read = file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| with_path(path, &error))?;
    if text.len() as u64 > MAX_SECRET_BYTES {
        return Err(denied(format!("{} is larger than {MAX_SECRET_BYTES} bytes", path.display())));
    }
    Ok(Some(text))
}

/// Fails if other users can read a file, which also depends on its directory. A file that cannot be
/// examined is accepted.
///
/// # Errors
/// When they can. The text names the remedy.
pub fn check_unreadable(path: &Path) -> io::Result<()> {
    match is_readable_by_others(path) {
        true => Err(denied(format!(
            "{path} can be read by other users; run: chmod 600 {path}",
            path = path.display()
        ))),
        false => Ok(()),
    }
}

/// Fails if a path is not a regular file of this user, or if other users can use it. The file is
/// not opened.
///
/// # Errors
/// When it is not such a file; the text names the remedy.
pub fn check_file(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path).map_err(|error| with_path(path, &error))?;
    check_secret(path, &found)
}

/// A new directory with a random name and mode 0700, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates one in the system's directory for temporary files. Its path is absolute and free of
    /// links.
    ///
    /// # Errors
    /// When it cannot be created, or when other users could replace it there.
    pub fn new(prefix: &str) -> io::Result<TempDir> {
        TempDir::within(&std::env::temp_dir(), prefix)
    }

    /// Creates one in another directory.
    ///
    /// # Errors
    /// As those of [`new`](Self::new).
    pub fn within(base: &Path, prefix: &str) -> io::Result<TempDir> {
        let base = base.canonicalize().map_err(|error| with_path(base, &error))?;
        check_parent(&base)?;
        let path = base.join(format!("{prefix}-{}", random_name()?));
        create_one(&path).map_err(|error| with_path(&path, &error))?;
        let dir = TempDir { path };
        check_directory(&dir.path)?;
        Ok(dir)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // The standard library walks by descriptors and follows no link.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Opens a file without following a link; a new file is private.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    private(options).open(path).map_err(|error| explain_link(path, &error))
}

fn create_parents(path: &Path) -> io::Result<()> {
    let made = match create_one(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                create_parents(parent)?;
                create_one(path)
            }
            _ => Err(error),
        },
        made => made,
    };
    match made {
        // Another process may create it at the same moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|error| with_path(path, &error)),
    }
}

fn denied(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(unix)]
pub use unix::user_id;
#[cfg(unix)]
use unix::{
    check_directory, check_parent, check_secret, create_one, explain_link, is_foreign_pipe,
    is_readable_by_others, make_private, private, random_name,
};

#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
    use std::path::Path;

    use super::{denied, with_path};
    use crate::sys::user;

    const STICKY: u32 = 0o1000;

    /// The user that this process acts as.
    pub fn user_id() -> u32 {
        user::effective_uid()
    }

    pub(super) fn random_name() -> io::Result<String> {
        let mut bytes = [0; 8];
        user::random(&mut bytes)?;
        Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
    }

    pub(super) fn is_foreign_pipe(path: &Path) -> bool {
        use std::os::unix::fs::FileTypeExt as _;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo() && found.uid() != user_id())
    }

    /// Creates exactly this directory with mode 0700, whatever the umask is.
    pub(super) fn create_one(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        if fs::symlink_metadata(path)?.mode() & 0o777 != 0o700 {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Checks the directory itself and its name in its parent.
    pub(super) fn check_directory(path: &Path) -> io::Result<()> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let found = match opened.and_then(|dir| dir.metadata()) {
            Ok(found) => found,
            Err(error) => return Err(explain_directory(path, &error)),
        };
        check_owner(path, &found)?;
        if found.mode() & 0o022 != 0 {
            let (path, mode) = (path.display(), found.mode() & 0o7777);
            return Err(denied(format!(
                "{path} can be changed by other users (mode {mode:04o}); run: chmod 700 {path}"
            )));
        }
        check_parent(path.parent().unwrap_or(path))
    }

    /// Adds a cause that the system's error does not name.
    fn explain_directory(path: &Path, error: &io::Error) -> io::Error {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => {
                denied(format!("{} is a symbolic link; put a directory of your own there", path.display()))
            }
            Ok(found) if !found.is_dir() => {
                denied(format!("{} is not a directory; move it away", path.display()))
            }
            Ok(found) => check_owner(path, &found).err().unwrap_or_else(|| with_path(path, error)),
            Err(_) => with_path(path, error),
        }
    }

    fn check_owner(path: &Path, found: &Metadata) -> io::Result<()> {
        let (own, owner) = (user_id(), found.uid());
        if owner == own {
            return Ok(());
        }
        Err(denied(format!(
            "{} belongs to user {owner}, and this is user {own}; remove it or use another place",
            path.display()
        )))
    }

    /// Fails if other users can rename or remove entries of this directory.
    pub(super) fn check_parent(path: &Path) -> io::Result<()> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let found = fs::metadata(path).map_err(|error| with_path(path, &error))?;
        let is_sticky = found.mode() & STICKY != 0;
        let is_shared = found.mode() & 0o002 != 0;
        // Root can do everything anyway. The sticky bit protects the names in a shared directory.
        let is_foreign = found.uid() != user_id() && found.uid() != 0;
        if is_sticky || !(is_shared || is_foreign) {
            return Ok(());
        }
        Err(denied(match is_foreign {
            true => format!(
                "{} belongs to user {}, who could replace what is put there; use another place",
                path.display(),
                found.uid()
            ),
            false => format!(
                "{} can be changed by every user and is not sticky (mode {:04o}); use another place",
                path.display(),
                found.mode() & 0o7777
            ),
        }))
    }

    /// A pipe that appears at the path must not block the open.
    pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
    }

    pub(super) fn explain_link(path: &Path, error: &io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(libc::ELOOP) => {
                denied(format!("{} is a symbolic link, which is not followed", path.display()))
            }
            _ => with_path(path, error),
        }
    }

    /// Makes an opened file private, if it is one of this user.
    pub(super) fn make_private(path: &Path, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(());
        }
        check_owner(path, &found)?;
        if found.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(found.mode() & 0o700))?;
        }
        Ok(())
    }

    pub(super) fn is_readable_by_others(path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode());
        let (file, dir) = (mode(&real), mode(real.parent().unwrap_or(&real)));
        // The group and all others.
        (file & 0o040 != 0 && dir & 0o010 != 0) || (file & 0o004 != 0 && dir & 0o001 != 0)
    }

    pub(super) fn check_secret(path: &Path, found: &Metadata) -> io::Result<()> {
        if !found.is_file() {
            return Err(denied(format!("{} is not a regular file", path.display())));
        }
        check_owner(path, found)?;
        if found.mode() & 0o077 != 0 {
            let (path, mode) = (path.display(), found.mode() & 0o7777);
            return Err(denied(format!(
                "{path} holds secrets and other users can read it (mode {mode:04o}); run: chmod 600 {path}"
            )));
        }
        Ok(())
    }
}

#[cfg(not(unix))]
use other::{
    check_directory, check_parent, check_secret, create_one, explain_link, is_foreign_pipe,
    is_readable_by_others, make_private, private, random_name,
};

#[cfg(not(unix))]
mod other {
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::hash::{BuildHasher as _, RandomState};
    use std::io;
    use std::path::Path;

    use super::with_path;

    /// The keys of a hasher come from the system's random source.
    pub(super) fn random_name() -> io::Result<String> {
        Ok(format!("{:016x}", RandomState::new().hash_one(std::process::id())))
    }

    pub(super) fn is_foreign_pipe(_path: &Path) -> bool {
        false
    }

    pub(super) fn create_one(path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    pub(super) fn check_directory(path: &Path) -> io::Result<()> {
        fs::metadata(path).map(drop).map_err(|error| with_path(path, &error))
    }

    pub(super) fn check_parent(_path: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(super) fn explain_link(path: &Path, error: &io::Error) -> io::Error {
        with_path(path, error)
    }

    pub(super) fn make_private(_path: &Path, _file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn is_readable_by_others(_path: &Path) -> bool {
        false
    }

    pub(super) fn check_secret(_path: &Path, _found: &Metadata) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
#[path = "private_tests.rs"]
mod tests;
