//! Landlock: what a process may write from here on, for itself and everything that it starts. See landlock(7).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use libc::c_long;

const WRITE_FILE: u64 = 1 << 1;
const TRUNCATE: u64 = 1 << 14;
const REFER: u64 = 1 << 13;
/// Everything that changes the file system, by the first version that knows it.
const WRITES: [(c_long, u64); 3] = [
    // Write, remove directories and files, make devices, directories, files, sockets, FIFOs, links.
    (1, WRITE_FILE | 0b1_1111_1111 << 4),
    (2, REFER),
    (3, TRUNCATE),
];
/// What of it makes sense for something that is no directory.
const OF_A_FILE: u64 = WRITE_FILE | TRUNCATE;
const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 1 << 1;
/// Sockets without a name in the file system, and signals, to processes outside.
const SCOPES: u64 = 0b11;

const BENEATH: u32 = 1;
const ASK_VERSION: u32 = 1;

#[repr(C)]
struct Attributes {
    fs: u64,
    net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

/// Which version of it the kernel has; `None`: it has none, or it is switched off.
pub(crate) fn version() -> Option<c_long> {
    // SAFETY: asking for the version reads no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK_VERSION)
    };
    (version > 0).then_some(version)
}

/// From here on this thread and what it starts can write below `writable` only, and reach no network if so asked and if the
/// kernel can do that.
pub(crate) fn restrict<'a>(writable: impl IntoIterator<Item = &'a Path>, network: bool) -> io::Result<()> {
    let version = version().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    if !network && version < 4 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel cannot keep a command from the network",
        ));
    }
    let fs = WRITES.iter().filter(|(since, _)| *since <= version).fold(0, |all, (_, bits)| all | bits);
    let net = if network { 0 } else { BIND_TCP | CONNECT_TCP };
    let attributes = Attributes { fs, net, scoped: if version >= 6 { SCOPES } else { 0 } };
    // Older kernels know fewer members and refuse more.
    let size = match version {
        ..4 => 8,
        4 | 5 => 16,
        _ => size_of::<Attributes>(),
    };
    // SAFETY: `attributes` lives across the call and is at least `size` bytes long.
    let ruleset =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0_u32) };
    let ruleset = descriptor(ruleset)?;
    for path in writable {
        allow(&ruleset, path, fs)?;
    }
    // SAFETY: plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn allow(ruleset: &OwnedFd, path: &Path, fs: u64) -> io::Result<()> {
    let place = match File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path) {
        Ok(place) => place,
        // What is not there cannot be written.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let allowed = if place.metadata()?.is_dir() { fs } else { fs & OF_A_FILE };
    let rule = Beneath { allowed, parent: place.as_raw_fd() };
    // SAFETY: `rule` and both descriptors live across the call.
    match unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), BENEATH, &raw const rule, 0_u32)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn descriptor(result: c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: a descriptor that the kernel has just made for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
