//! Sockets that a service manager opened for this process.

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor that is passed, by the convention of systemd.
const FIRST: RawFd = 3;
/// Sockets that are taken at most.
const MOST: RawFd = 64;

/// Takes the sockets that `LISTEN_PID` and `LISTEN_FDS` announce. A second call finds none.
pub(crate) fn take() -> Vec<OwnedFd> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name: &str| std::env::var(name).ok()?.parse::<RawFd>().ok();
    // The variables may be inherited from a parent, whose sockets are not there.
    let is_ours = number("LISTEN_PID").is_some_and(|pid| u32::try_from(pid) == Ok(std::process::id()));
    if !is_ours || TAKEN.swap(true, Ordering::AcqRel) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, MOST);
    let taken = (FIRST..FIRST + count).filter_map(|fd| {
        // SAFETY: takes plain numbers; a descriptor that is not open is an error.
        let is_open = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == 0;
        // SAFETY: the service manager passed this descriptor to this process, and it is taken once.
        is_open.then(|| unsafe { OwnedFd::from_raw_fd(fd) })
    });
    taken.collect()
}
