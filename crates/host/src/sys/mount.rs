//! Mounts by descriptors: what is mounted and where is decided once, by open files, never again by
//! a path. See mount_setattr(2), open_tree(2), move_mount(2) and fsopen(2).

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use libc::{c_int, c_long, c_uint};

use super::checked;

/// Attributes of a mount.
pub(crate) mod attribute {
    pub(crate) const READ_ONLY: u64 = 0x1;
    pub(crate) const NO_SETUID: u64 = 0x2;
    pub(crate) const NO_DEVICES: u64 = 0x4;
    pub(crate) const NO_EXEC: u64 = 0x8;
}

const OPEN_TREE_CLONE: c_uint = 1;
const CLOSE_ON_EXEC: c_uint = libc::O_CLOEXEC as c_uint;
const RECURSIVE: c_uint = libc::AT_RECURSIVE as c_uint;
const EMPTY_PATH: c_uint = libc::AT_EMPTY_PATH as c_uint;
const NO_FOLLOW: c_uint = libc::AT_SYMLINK_NOFOLLOW as c_uint;
const FROM_DESCRIPTOR_TO_DESCRIPTOR: c_uint = 0x04 | 0x40;
const PRIVATE: u64 = libc::MS_PRIVATE;
const FSCONFIG_SET_FLAG: c_uint = 0;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CREATE: c_uint = 6;

/// A change by `mount_setattr`.
#[repr(C)]
struct Change {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn owned(result: c_long) -> io::Result<OwnedFd> {
    super::owned(result as c_int)
}

/// Copies the mount that an open file or directory is on, from that place on, with all mounts below
/// it. A link is copied itself.
pub(crate) fn copy(place: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | CLOSE_ON_EXEC | RECURSIVE | EMPTY_PATH | NO_FOLLOW;
    // SAFETY: the path ends with a zero byte.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags) })
}

/// Puts a mount that is nowhere yet on top of an open file, directory or link.
pub(crate) fn place(mount: BorrowedFd<'_>, on: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both paths end with a zero byte.
    checked(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            on.as_raw_fd(),
            c"".as_ptr(),
            FROM_DESCRIPTOR_TO_DESCRIPTOR,
        )
    } as c_int)
}

fn change(mount: BorrowedFd<'_>, flags: c_uint, change: &Change) -> io::Result<()> {
    // SAFETY: the structure lives across the call and has the size that is passed.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            EMPTY_PATH | flags,
            ptr::from_ref(change),
            size_of::<Change>(),
        )
    } as c_int)
}

/// Sets attributes of one mount.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    change(mount, 0, &Change { set, clear: 0, propagation: 0, user_namespace: 0 })
}

/// Sets attributes of a mount and of all mounts below it.
pub(crate) fn set_attributes_below(mount: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    change(mount, RECURSIVE, &Change { set, clear: 0, propagation: 0, user_namespace: 0 })
}

/// Keeps mounts that others make from appearing below this one.
pub(crate) fn make_private_below(mount: BorrowedFd<'_>) -> io::Result<()> {
    change(mount, RECURSIVE, &Change { set: 0, clear: 0, propagation: PRIVATE, user_namespace: 0 })
}

/// Makes a new file system of a kind that has no device. An option without a value is a flag.
pub(crate) fn new_file_system(
    kind: &CStr,
    options: &[(&CStr, Option<&str>)],
    attributes: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero byte.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1_u32) })?;
    let configure = |command: c_uint, key: *const libc::c_char, value: *const libc::c_char| {
        // SAFETY: key and value are null or end with a zero byte, as the command demands.
        checked(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) }
            as c_int)
    };
    for (key, value) in options {
        match value {
            Some(value) => {
                let value = CString::new(*value)?;
                configure(FSCONFIG_SET_STRING, key.as_ptr(), value.as_ptr())?;
            }
            None => configure(FSCONFIG_SET_FLAG, key.as_ptr(), ptr::null())?,
        }
    }
    configure(FSCONFIG_CREATE, ptr::null(), ptr::null())?;
    // SAFETY: numbers only.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1_u32, attributes as c_uint) })
}

/// Makes the root of a mounted file system the root of this process and lets go of the former one.
pub(crate) fn change_root(new_root: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the paths end with a zero byte.
    unsafe {
        checked(libc::fchdir(new_root.as_raw_fd()))?;
        // The former root is put on top of the new one, and is the first to be taken off again.
        checked(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) as c_int)?;
        checked(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        checked(libc::chdir(c"/".as_ptr()))
    }
}

/// Opens a path below `base` without following any link; a link as the last name is opened itself.
/// It is good for a place only.
pub(crate) fn open_place(base: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let path = if path.as_os_str().is_empty() { OsStr::new(".") } else { path.as_os_str() };
    let path = CString::new(path.as_bytes())?;
    let resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_BENEATH;
    open_path(base, &path, libc::O_NOFOLLOW, resolve)
}

/// Opens a path relative to `base` as a place, with these flags and restrictions.
pub(super) fn open_path(
    base: BorrowedFd<'_>,
    path: &CStr,
    flags: c_int,
    resolve: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: `open_how` is plain data.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC | flags) as u64;
    how.resolve = resolve;
    // SAFETY: path and structure live across the call; the size is that of the structure.
    owned(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            base.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    })
}
