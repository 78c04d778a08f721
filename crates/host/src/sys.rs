//! System calls that the standard library does not offer: files relative to an open directory,
//! processes, mounts, filters. The only module with `unsafe` code. Nothing here makes decisions.
#![expect(unsafe_code, reason = "system calls; each block carries its reason")]

#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
pub(crate) mod mount;
#[cfg(target_os = "linux")]
pub(crate) mod notify;
pub(crate) mod process;
#[cfg(target_os = "linux")]
pub(crate) mod seccomp;

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use libc::{c_int, mode_t};

/// Flag that opens a directory for lookups, without the permission to read it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const WALK: c_int = libc::O_PATH;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
const WALK: c_int = libc::O_EXEC;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "freebsd")))]
const WALK: c_int = libc::O_RDONLY;

/// Flags of every open: no symbolic link is followed, no FIFO blocks, no terminal is acquired,
/// children inherit nothing.
const CAREFUL: c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Device,
}

impl Kind {
    fn of(mode: mode_t) -> Self {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Link,
            libc::S_IFIFO => Kind::Fifo,
            libc::S_IFSOCK => Kind::Socket,
            _ => Kind::Device,
        }
    }

    /// The type of an open file.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Kind::of(file.metadata()?.mode() as mode_t))
    }
}

/// An open directory. It stays the same directory when its name changes.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

#[cfg(target_os = "linux")]
impl From<OwnedFd> for Dir {
    /// The descriptor is one of a directory.
    fn from(descriptor: OwnedFd) -> Self {
        Dir(descriptor)
    }
}

impl Dir {
    /// Opens a trusted path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = WALK | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero byte and lives for the call.
        owned(unsafe { libc::open(path.as_ptr(), flags) }).map(Dir)
    }

    /// Opens a subdirectory; a link to one is refused.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        let flags = WALK | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        self.open_at(name, flags, 0).map(Dir)
    }

    /// Opens a name with `O_PATH`, links included. The descriptor cannot be read.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_path(&self, name: &OsStr) -> io::Result<OwnedFd> {
        open_path_in(self.descriptor(), name)
    }

    /// The descriptor of this directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    /// Opens a file for reading.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_RDONLY | CAREFUL, 0).map(File::from)
    }

    /// Opens a file for reading and writing, without changing it.
    pub(crate) fn read_and_write(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR | CAREFUL, 0).map(File::from)
    }

    /// Opens a file for writing, without changing it.
    pub(crate) fn write(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_WRONLY | CAREFUL, 0).map(File::from)
    }

    /// Creates a file; fails if the name is used.
    pub(crate) fn create(&self, name: &OsStr, mode: mode_t) -> io::Result<File> {
        self.open_at(name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | CAREFUL, mode).map(File::from)
    }

    /// The type of a name; links are not followed.
    pub(crate) fn kind(&self, name: &OsStr) -> io::Result<Kind> {
        let name = CString::new(name.as_bytes())?;
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the name ends with a zero byte; the system writes one `stat`, to a place that is
        // one.
        let done = unsafe {
            libc::fstatat(self.0.as_raw_fd(), name.as_ptr(), stat.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW)
        };
        checked(done)?;
        // SAFETY: the call has succeeded, so it has filled it in.
        Ok(Kind::of(unsafe { stat.assume_init() }.st_mode))
    }

    /// The target of a link. `InvalidInput` if the name is no link.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        let name = CString::new(name.as_bytes())?;
        let mut text = vec![0_u8; 4096];
        loop {
            // SAFETY: the system writes at most as many bytes as the vector has.
            let n = unsafe {
                libc::readlinkat(self.0.as_raw_fd(), name.as_ptr(), text.as_mut_ptr().cast(), text.len())
            };
            let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
            if n < text.len() {
                text.truncate(n);
                return Ok(OsString::from_vec(text));
            }
            // It may have been truncated.
            text.resize(text.len() * 2, 0);
        }
    }

    pub(crate) fn make_dir(&self, name: &OsStr) -> io::Result<()> {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: the name ends with a zero byte and lives for the call.
        checked(unsafe { libc::mkdirat(self.0.as_raw_fd(), name.as_ptr(), 0o777) })
    }

    /// Creates a symbolic link.
    pub(crate) fn make_link(&self, name: &OsStr, target: &OsStr) -> io::Result<()> {
        let (name, target) = (CString::new(name.as_bytes())?, CString::new(target.as_bytes())?);
        // SAFETY: both texts end with a zero byte and live for the call.
        checked(unsafe { libc::symlinkat(target.as_ptr(), self.0.as_raw_fd(), name.as_ptr()) })
    }

    /// Renames a file inside the directory and replaces the file of that name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let (from, to) = (CString::new(from.as_bytes())?, CString::new(to.as_bytes())?);
        let dir = self.0.as_raw_fd();
        // SAFETY: both names end with a zero byte and live for the call.
        checked(unsafe { libc::renameat(dir, from.as_ptr(), dir, to.as_ptr()) })
    }

    /// Moves a file to another directory, under an unused name.
    pub(crate) fn move_to(&self, from: &OsStr, other: &Dir, to: &OsStr) -> io::Result<()> {
        let (from, to) = (CString::new(from.as_bytes())?, CString::new(to.as_bytes())?);
        // SAFETY: both names end with a zero byte and live for the call.
        checked(unsafe {
            libc::renameat(self.0.as_raw_fd(), from.as_ptr(), other.0.as_raw_fd(), to.as_ptr())
        })
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: the name ends with a zero byte and lives for the call.
        checked(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), 0) })
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: the name ends with a zero byte and lives for the call.
        checked(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) })
    }

    /// Converts the directory into its descriptor.
    #[cfg(target_os = "linux")]
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    fn open_at(&self, name: &OsStr, flags: c_int, mode: mode_t) -> io::Result<OwnedFd> {
        let name = CString::new(name.as_bytes())?;
        // SAFETY: the name ends with a zero byte and lives for the call.
        owned(unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags, libc::c_uint::from(mode)) })
    }
}

/// Like [`Dir::open_path`], in any open directory.
#[cfg(target_os = "linux")]
pub(crate) fn open_path_in(directory: std::os::fd::BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let name = CString::new(name.as_bytes())?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero byte and lives for the call.
    owned(unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) })
}

/// The target of a link that was opened with `O_PATH`.
#[cfg(target_os = "linux")]
pub(crate) fn target_of(link: std::os::fd::BorrowedFd<'_>) -> io::Result<OsString> {
    let mut text = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the empty name ends with a zero byte; the system writes at most as many bytes as the
    // vector has.
    let n = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    text.truncate(usize::try_from(n).map_err(|_| io::Error::last_os_error())?);
    Ok(OsString::from_vec(text))
}

/// Metadata of an open file.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileStat {
    pub(crate) kind: Kind,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Permissions with setuid, setgid and sticky bits.
    pub(crate) mode: mode_t,
    pub(crate) user: u32,
    pub(crate) names: u64,
}

/// Returns the metadata of a descriptor, which may be an `O_PATH` one.
#[cfg(target_os = "linux")]
pub(crate) fn stat(descriptor: std::os::fd::BorrowedFd<'_>) -> io::Result<FileStat> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the system writes one `stat`, to a place that is one.
    checked(unsafe { libc::fstat(descriptor.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, so it has filled it in.
    let stat = unsafe { stat.assume_init() };
    Ok(FileStat {
        kind: Kind::of(stat.st_mode),
        device: stat.st_dev,
        inode: stat.st_ino,
        mode: stat.st_mode & 0o7777,
        user: stat.st_uid,
        names: stat.st_nlink as _,
    })
}

/// Acquires the exclusive lock of a file, which is held until the file is closed.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    lock_with(file, libc::LOCK_EX)
}

/// Acquires the shared lock of a file, which is held until the file is closed.
#[cfg(target_os = "linux")]
pub(crate) fn lock_shared(file: &File) -> io::Result<()> {
    lock_with(file, libc::LOCK_SH)
}

/// Acquires the exclusive lock of a file without waiting; returns whether it succeeded.
#[cfg(target_os = "linux")]
pub(crate) fn try_lock(file: &File) -> bool {
    lock_with(file, libc::LOCK_EX | libc::LOCK_NB).is_ok()
}

fn lock_with(file: &File, operation: c_int) -> io::Result<()> {
    loop {
        // SAFETY: takes plain numbers; the descriptor is open while borrowed.
        match checked(unsafe { libc::flock(file.as_raw_fd(), operation) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The extended attribute of access control lists.
#[cfg(target_os = "linux")]
const ACCESS_LIST: &std::ffi::CStr = c"system.posix_acl_access";

/// Copies access control list, security label and user attributes to another file, but no
/// capabilities. Returns false when the access control list is lost.
#[cfg(target_os = "linux")]
pub(crate) fn copy_attributes(from: &File, to: &File) -> bool {
    let Ok(names) = sized(|place, size| {
        // SAFETY: the system writes at most `size` bytes.
        unsafe { libc::flistxattr(from.as_raw_fd(), place.cast(), size) }
    }) else {
        return true;
    };
    let mut complete = true;
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = std::ffi::CStr::from_bytes_with_nul(name) else { continue };
        if name != ACCESS_LIST && name != c"security.selinux" && !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        let value = sized(|place, size| {
            // SAFETY: the name ends with a zero byte, and the system writes at most `size` bytes.
            unsafe { libc::fgetxattr(from.as_raw_fd(), name.as_ptr(), place.cast(), size) }
        });
        let copied = value.and_then(|value| {
            // SAFETY: the name ends with a zero byte, and the length is that of the value.
            checked(unsafe {
                libc::fsetxattr(to.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
            })
        });
        complete &= copied.is_ok() || name != ACCESS_LIST;
    }
    complete
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_attributes(_from: &File, _to: &File) -> bool {
    true
}

/// Calls a function that reports the needed size for an empty buffer, then again with a buffer of
/// that size.
#[cfg(target_os = "linux")]
fn sized(call: impl Fn(*mut u8, usize) -> libc::ssize_t) -> io::Result<Vec<u8>> {
    let count = |n: libc::ssize_t| usize::try_from(n).map_err(|_| io::Error::last_os_error());
    let mut bytes = vec![0; count(call(std::ptr::null_mut(), 0))?];
    let length = count(call(bytes.as_mut_ptr(), bytes.len()))?;
    bytes.truncate(length);
    Ok(bytes)
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    checked(fd)?;
    // SAFETY: the system has just given us this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(file: &File, name: &std::ffi::CStr, value: &[u8]) -> io::Result<()> {
        // SAFETY: the name ends with a zero byte, and the length is that of the value.
        checked(unsafe {
            libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
        })
    }

    fn get(file: &File, name: &std::ffi::CStr) -> io::Result<Vec<u8>> {
        // SAFETY: the name ends with a zero byte, and the system writes at most `size` bytes.
        sized(|place, size| unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), place.cast(), size) })
    }

    /// Everything for the owner, nothing for the group, reading for user 1234; the mask lets both
    /// read and write.
    const LIST: &[u8] = &[
        2, 0, 0, 0, // version
        1, 0, 6, 0, 255, 255, 255, 255, // the owner
        2, 0, 4, 0, 210, 4, 0, 0, // user 1234
        4, 0, 0, 0, 255, 255, 255, 255, // the group
        16, 0, 6, 0, 255, 255, 255, 255, // the mask
        32, 0, 0, 0, 255, 255, 255, 255, // others
    ];

    #[test]
    fn a_written_file_keeps_who_may_access_it() {
        let dir = std::env::temp_dir().join(format!("attache-host-acl-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("file");
        let file = File::create(&path).unwrap();
        let (listed, noted) = (set(&file, ACCESS_LIST, LIST), set(&file, c"user.note", b"mine"));
        crate::files::Jail::new([&dir]).write(&path, "new").unwrap();
        let new = File::open(&path).unwrap();
        // Not every file system has such things.
        if listed.is_ok() {
            assert_eq!(get(&new, ACCESS_LIST).unwrap(), LIST);
        }
        if noted.is_ok() {
            assert_eq!(get(&new, c"user.note").unwrap(), b"mine");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
