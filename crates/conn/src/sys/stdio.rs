//! System calls for standard streams: redirecting a descriptor, and socket I/O that does not block.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
#[cfg(target_os = "linux")]
use tokio::io::ReadBuf;

/// Makes descriptor `number` (0, 1 or 2) refer to the file of `target`. Other descriptors of the
/// old file stay open.
pub(crate) fn redirect(number: RawFd, target: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: `dup2` has no memory preconditions. `target` is open while borrowed. The numbers 0 to
    // 2 are owned by no `OwnedFd` (the standard library borrows them for ever), so replacing the
    // file violates no ownership.
    match unsafe { libc::dup2(target.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Asks the system for a pipe of `bytes`. It may refuse, and the pipe then keeps its size.
#[cfg(target_os = "linux")]
pub(crate) fn grow_pipe(pipe: BorrowedFd<'_>, bytes: usize) {
    let Ok(bytes) = libc::c_int::try_from(bytes) else { return };
    // SAFETY: this command of `fcntl` takes a number and touches no memory of ours. `pipe` is open
    // while borrowed.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

/// Returns how many bytes a pipe holds.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn pipe_size(pipe: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: as in `grow_pipe`.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    usize::try_from(size).map_err(|_| io::Error::last_os_error())
}

/// Receives without waiting, whatever the mode of the socket: the flag belongs to this call and not
/// to the file description, which other processes may share.
#[cfg(target_os = "linux")]
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of one slice that lives for the call; `recv`
    // only writes into it, which uninitialised bytes allow. `socket` is open while borrowed.
    let count = unsafe {
        let space = buffer.unfilled_mut();
        libc::recv(socket.as_raw_fd(), space.as_mut_ptr().cast(), space.len(), libc::MSG_DONTWAIT)
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the system has just written that many bytes at the beginning of the unfilled part.
    unsafe { buffer.assume_init(count) };
    buffer.advance(count);
    Ok(count)
}

/// Sends without waiting and without a signal when the peer is gone.
#[cfg(target_os = "linux")]
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and the length are those of one slice that lives for the call, and `send`
    // only reads it.
    let count = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
