//! Settings of the C library's allocator.

use libc::c_int;

/// Blocks of this size and more are mapped by themselves. To set it also keeps the library from
/// raising it.
const MAPPED: c_int = 512 << 10;
/// How many arenas there may be; each keeps its freed blocks.
const ARENAS: c_int = 2;

/// Has large blocks mapped by themselves, so that they go back to the system when they are freed.
pub(crate) fn return_large_blocks() {
    // SAFETY: takes plain numbers, and may be called at any time. Unsupported options are refused,
    // which is fine.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}
