//! What is kept of output, for any output in any pieces.

use attache_host::terminals::Ring;
use proptest::prelude::*;

/// The same, the slow way: all at once.
fn expected(bytes: &[u8], limit: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    (text[from..].to_owned(), from > 0)
}

/// Bytes in pieces, with many characters and many mistakes in them.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        "[a-z€ß😀\n]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..6),
        Just(vec![0xF0, 0x9F]),
        Just(vec![0x98, 0x80]),
        Just(vec![0xE2]),
        Just(vec![0x82]),
    ];
    prop::collection::vec(piece, 0..24)
}

proptest! {
    #[test]
    fn pieces_make_no_difference(pieces in pieces(), limit in 0_usize..80) {
        // shows TERM-06, TERM-07, TERM-19
        let mut ring = Ring::new(limit);
        let mut passed_on = String::new();
        for piece in &pieces {
            passed_on.push_str(&ring.push(piece));
            prop_assert!(ring.len() <= limit);
        }
        passed_on.push_str(ring.finish().unwrap_or_default());
        let whole = pieces.concat();
        prop_assert_eq!(&passed_on, &String::from_utf8_lossy(&whole));
        prop_assert_eq!((ring.text(), ring.is_truncated()), expected(&whole, limit));
    }
}

#[test]
fn less_than_the_limit_may_be_left() {
    // shows TERM-07
    let mut ring = Ring::new(4);
    ring.push("a€€".as_bytes());
    assert_eq!((ring.text().as_str(), ring.is_truncated()), ("€", true));
    let mut tiny = Ring::new(2);
    tiny.push("€".as_bytes());
    assert_eq!((tiny.text().as_str(), tiny.is_truncated()), ("", true));
}

#[test]
fn a_character_in_two_pieces_is_one_character() {
    let mut ring = Ring::new(100);
    assert_eq!(ring.push(b"a\xE2\x82"), "a");
    assert_eq!(ring.push(b"\xAC"), "€");
    assert_eq!(ring.push(b"\xE2"), "");
    assert_eq!(ring.finish(), Some("\u{fffd}"));
    assert_eq!(ring.finish(), None);
    assert_eq!(ring.text(), "a€\u{fffd}");
}
