//! Ids that no other process can guess.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// An id such as `sess-…`, unique across processes and not to be guessed from other ids.
// SESS-03, TOOL-02: no other session, and no other tool call of a session, has it.
pub(crate) fn unique_id(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Random keys of the operating system, drawn once per process.
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = KEYS.get_or_init(RandomState::new).hash_one(count);
    format!("{prefix}-{random:016x}{count:08x}")
}
