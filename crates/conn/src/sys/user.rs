//! The user that this process runs as, and random bytes of the system.

use std::io;

/// The effective user id.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Fills a buffer of at most 256 bytes from the system's random source.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of one slice, which lives for the call.
    match unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
