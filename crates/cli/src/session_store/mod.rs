//! The sessions of this user: one record per session, and its history beside it.
//!
//! A record is a JSON file that is replaced in one step, so that a crash leaves the old one or the
//! new one. Records are changed only under the lock of the store, which the system gives back when
//! a process dies. The history is a file of raw messages, one per line, to which only the process
//! that owns the session appends.
//!
//! `record.rs` is a record, `store.rs` finds and changes them, `history.rs` is the history, which
//! `recorder.rs` writes without secrets and `conversation.rs` and `messages.rs` read line by line
//! (`line.rs`); `archive.rs` moves a session elsewhere.

mod archive;
mod conversation;
mod history;
mod line;
mod messages;
mod record;
mod recorder;
mod store;

pub(crate) use archive::{export, import};
pub(crate) use conversation::Message;
pub(crate) use line::{HistoryLine, without_stamps};
pub(crate) use record::{Record, SystemPromptText};
pub(crate) use recorder::Recorder;
pub(crate) use store::{Scope, Store, boundary};

/// Returns the names of the open sessions in this directory and its parents, for completions.
pub(crate) fn names_here(paths: &crate::paths::Paths) -> crate::error::Result<Vec<String>> {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).unwrap_or_default();
    let records = Store::new(paths)
        .all()?
        .into_iter()
        .filter(|record| !record.is_closed() && here.starts_with(&record.cwd));
    Ok(records.filter_map(|record| record.name).collect())
}

/// Shortens an id for lists: its first eight characters after a word such as `sess-`. Ids often end
/// with a counter.
pub(crate) fn short(id: &str) -> &str {
    let id = without_word(id);
    let end = id.char_indices().nth(8).map_or(id.len(), |(at, _)| at);
    id.get(..end).unwrap_or(id)
}

/// Returns whether a typed text is an id or its beginning, with or without the word before it.
pub(crate) fn is_meant(id: &str, typed: &str) -> bool {
    !typed.is_empty() && (id.starts_with(typed) || without_word(id).starts_with(typed))
}

fn without_word(id: &str) -> &str {
    match id.split_once(['-', '_']) {
        Some((word, rest)) if !rest.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic()) => rest,
        _ => id,
    }
}

/// Encodes a name as a file name: plain letters stay, other bytes become their hexadecimal code.
pub(crate) fn file_name(name: &str) -> String {
    let mut safe = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => safe.push(char::from(byte)),
            b'.' if !safe.is_empty() => safe.push('.'),
            other => safe.push_str(&format!("%{other:02x}")),
        }
    }
    // The system's limit is 255 bytes; a hash keeps shortened names distinct.
    if safe.len() > 180 {
        let hash = hash(name);
        safe.truncate(160);
        safe.push_str(&format!("~{hash:016x}"));
    }
    safe
}

/// Returns the FNV-1a hash of a text. It is not cryptographic: callers compare the text, too.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{file_name, is_meant, short};

    #[test]
    fn short_ids_are_beginnings() {
        assert_eq!(short("sess-614afadaccee473900000043"), "614afada");
        assert_eq!(short("0198c0de-1234-7000-8000-000000000001"), "0198c0de");
        assert_eq!(short("s-1"), "1");
        assert!(is_meant("sess-614afadaccee473900000043", "614a") && is_meant("sess-61", "sess-6"));
        assert!(!is_meant("sess-61", "1") && !is_meant("sess-61", ""));
    }

    #[test]
    fn a_name_never_leaves_its_directory() {
        assert_eq!(file_name("sess-1_a.b"), "sess-1_a.b");
        assert_eq!(file_name("../x/y"), "%2e.%2fx%2fy");
        assert_ne!(file_name("a/b"), file_name("a%2fb"));
        assert!(file_name(&"ü".repeat(300)).len() < 200);
    }
}
