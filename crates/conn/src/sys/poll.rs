//! Waiting for pipes and processes outside of any runtime.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Waits until one of `fds` can be read or has ended, at most for `wait` if that is given. Says
/// which of them.
pub(crate) fn readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    wait: Option<Duration>,
) -> io::Result<[bool; N]> {
    // A negative descriptor is one that poll passes over.
    let mut set = fds.map(|fd| libc::pollfd {
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = wait.map_or(-1, |wait| libc::c_int::try_from(wait.as_millis()).unwrap_or(libc::c_int::MAX));
    loop {
        // SAFETY: `set` is an array of N initialised entries that lives through the call.
        if unsafe { libc::poll(set.as_mut_ptr(), N as libc::nfds_t, timeout) } >= 0 {
            return Ok(set.map(|entry| entry.revents != 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A descriptor that can be read once a child, which is not reaped yet, has ended. `None` where the
/// system has no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn end_of(child: u32) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: takes plain numbers; the descriptor that it returns is ours alone, and closed at
    // exec.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child as libc::pid_t, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_of(_child: u32) -> Option<OwnedFd> {
    None
}
