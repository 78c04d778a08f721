//! Waiting for pipes outside of any runtime.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Waits until one of `fds` can be read or has ended, for ever or, without `wait`, not at all. Says which of them.
pub(crate) fn readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    wait: bool,
) -> io::Result<[bool; N]> {
    // A negative descriptor is one that poll passes over.
    let mut set = fds.map(|fd| libc::pollfd {
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = if wait { -1 } else { 0 };
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
