//! Server-sent events: the chunks in which bytes arrive do not change the events, and no event
//! exceeds the limit.
#![no_main]

use attache_http::client::sse::{Sse, SseEvent, TooLong};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [limit, chunk, bytes @ ..] = input else { return };
    let (limit, chunk) = (usize::from(*limit), usize::from(*chunk).max(1));
    let whole = events(limit, [bytes]);
    assert_eq!(events(limit, bytes.chunks(chunk)), whole);
    assert_eq!(events(limit, bytes.chunks(1)), whole);
    // Invalid UTF-8 is replaced by a character of three bytes.
    assert!(whole.iter().flatten().all(|event| event.data.len() <= 3 * limit));
});

/// The events, and `None` for each that is too long.
fn events<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<SseEvent>> {
    let mut sse = Sse::with_limit(limit);
    let mut events = Vec::new();
    let mut take = |next: Result<Option<SseEvent>, TooLong>| {
        let is_end = next == Ok(None);
        events.extend((!is_end).then(|| next.ok().flatten()));
        !is_end
    };
    for chunk in chunks {
        sse.push(chunk);
        while take(sse.next_event()) {}
    }
    take(sse.finish());
    events
}
