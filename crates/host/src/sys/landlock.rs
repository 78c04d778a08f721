//! Landlock: what a process may do with files, TCP ports and other processes from here on. See
//! landlock(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_long};

use super::checked;

/// Rights on files, by the bits of the kernel's interface.
pub(crate) mod right {
    pub(crate) const EXECUTE: u64 = 1;
    pub(crate) const WRITE_FILE: u64 = 1 << 1;
    pub(crate) const READ_FILE: u64 = 1 << 2;
    pub(crate) const READ_DIR: u64 = 1 << 3;
    /// Remove directories and files; make devices, directories, files, sockets, FIFOs and links.
    pub(crate) const CHANGE_DIR: u64 = 0b1_1111_1111 << 4;
    pub(crate) const REFER: u64 = 1 << 13;
    pub(crate) const TRUNCATE: u64 = 1 << 14;
    pub(crate) const IOCTL_DEVICE: u64 = 1 << 15;

    /// Reading and executing.
    pub(crate) const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
    /// Everything.
    pub(crate) const ALL: u64 = READ | WRITE_FILE | CHANGE_DIR | REFER | TRUNCATE | IOCTL_DEVICE;
    /// The rights that apply to something other than a directory.
    pub(super) const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;
}

/// Binding to and connecting to TCP ports.
const TCP: u64 = 0b11;
/// Abstract Unix sockets of, and signals to, processes outside.
const SCOPES: u64 = 0b11;

const PATH_BENEATH: u32 = 1;
const ASK_VERSION: u32 = 1;

#[repr(C)]
struct Attributes {
    fs: u64,
    net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The version of Landlock that the kernel offers; `None` if it has none or it is switched off.
pub(crate) fn version() -> Option<c_long> {
    // SAFETY: asking for the version reads no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK_VERSION)
    };
    (version > 0).then_some(version)
}

/// Rules that are being collected. Everything that no rule allows is refused once they are applied.
pub(crate) struct Ruleset {
    fd: OwnedFd,
    rights: u64,
}

impl Ruleset {
    /// Rules for all rights on files that the kernel knows, for the signals and abstract sockets of
    /// other processes, and for TCP if `tcp` says so. `None` if the kernel has no Landlock.
    pub(crate) fn new(tcp: bool) -> io::Result<Option<Self>> {
        let Some(version) = version() else { return Ok(None) };
        let unknown = match version {
            1 => right::REFER | right::TRUNCATE | right::IOCTL_DEVICE,
            2 => right::TRUNCATE | right::IOCTL_DEVICE,
            3 | 4 => right::IOCTL_DEVICE,
            _ => 0,
        };
        let rights = right::ALL & !unknown;
        let net = if tcp && version >= 4 { TCP } else { 0 };
        let attributes = Attributes { fs: rights, net, scoped: if version >= 6 { SCOPES } else { 0 } };
        // Older kernels know fewer members and refuse a longer structure.
        let size = match version {
            ..4 => 8,
            4 | 5 => 16,
            _ => size_of::<Attributes>(),
        };
        // SAFETY: `attributes` lives across the call and is at least `size` bytes long.
        let fd =
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0_u32) }
                as c_int;
        checked(fd)?;
        // SAFETY: a descriptor that the kernel has just made for us.
        Ok(Some(Ruleset { fd: unsafe { OwnedFd::from_raw_fd(fd) }, rights }))
    }

    /// Allows `rights` on an open file or directory and on everything below it. A file that cannot
    /// be named by a path, such as a pipe, needs no rule and is ignored.
    pub(crate) fn allow(&mut self, place: BorrowedFd<'_>, is_directory: bool, rights: u64) -> io::Result<()> {
        let rights = rights & self.rights & if is_directory { u64::MAX } else { right::OF_FILES };
        if rights == 0 {
            return Ok(());
        }
        let rule = PathBeneath { allowed: rights, parent: place.as_raw_fd() };
        // SAFETY: `rule` and both descriptors live across the call.
        let added = checked(unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.fd.as_fd().as_raw_fd(),
                PATH_BENEATH,
                &raw const rule,
                0_u32,
            )
        } as c_int);
        match added {
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            added => added,
        }
    }

    /// Restricts this process and everything that it starts. It has given up gaining privileges
    /// before.
    pub(crate) fn apply(self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        checked(
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_raw_fd(), 0_u32) } as c_int
        )
    }
}
