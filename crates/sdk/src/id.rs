//! Ids that no other process can guess.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// An id such as `sess-…`, unique across processes and not to be guessed from other ids.
// SESS-03, TOOL-02: no other session, and no other tool call of a session, has it.
pub(crate) fn unique_id<T: for<'a> From<&'a str>>(prefix: &str) -> T {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Random keys of the operating system, drawn once per process.
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = KEYS.get_or_init(RandomState::new).hash_one(count);
    // `format!` takes longer than the rest of opening a session.
    let mut text = [b'-'; 32];
    let end = prefix.len() + 25;
    text[..prefix.len()].copy_from_slice(prefix.as_bytes());
    text[prefix.len() + 1..end - 8].copy_from_slice(&hex(random));
    text[end - 8..end].copy_from_slice(&hex(count)[8..]);
    T::from(std::str::from_utf8(&text[..end]).unwrap_or_default())
}

fn hex(number: u64) -> [u8; 16] {
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    let bytes = number.to_be_bytes();
    let (high, low) = (bytes.map(|byte| digit(byte >> 4)), bytes.map(|byte| digit(byte & 15)));
    std::array::from_fn(|i| if i % 2 == 0 { high[i / 2] } else { low[i / 2] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hexadecimal_and_differ() {
        let [one, two]: [String; 2] = [unique_id("sess"), unique_id("call")];
        let digits = |id: &str, prefix: &str| id.strip_prefix(prefix).map(str::to_owned).unwrap_or_default();
        let (one, two) = (digits(&one, "sess-"), digits(&two, "call-"));
        for digits in [&one, &two] {
            assert!(digits.len() == 24 && u128::from_str_radix(digits, 16).is_ok(), "{digits}");
        }
        assert_ne!(one, two);
    }
}
