//! Streams of lines, and server-sent events made of them.

use memchr::memchr2;

/// The longest line and the longest event by default. An image may be one line.
const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;
/// The length of `data: `, which does not count.
const FIELD: usize = 6;
/// Bytes of an event over the limit that are kept for an error report.
const HEAD: usize = 4096;

/// A line or an event exceeds the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLong {
    /// The beginning of the data.
    pub head: String,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message is too long")
    }
}

impl std::error::Error for TooLong {}

/// Splits bytes that arrive in chunks into lines that end in LF, CR or both.
pub struct Lines {
    buffer: Vec<u8>,
    /// The start of the next line.
    start: usize,
    /// The end of the part without a line end.
    searched: usize,
    /// Whether a CR ended the last line, so that an LF at the front belongs to it.
    after_cr: bool,
    /// Whether the rest of the current line is discarded.
    skipping: bool,
    limit: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Lines::with_limit(DEFAULT_LIMIT)
    }
}

impl Lines {
    /// With a limit for the length of a line.
    pub fn with_limit(limit: usize) -> Self {
        Lines { buffer: Vec::new(), start: 0, searched: 0, after_cr: false, skipping: false, limit }
    }

    /// Adds a chunk. All lines before it should have been taken.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its end.
    ///
    /// # Errors
    /// The line is over the limit. The rest of it is skipped.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, TooLong> {
        loop {
            if self.after_cr && self.start < self.buffer.len() {
                self.after_cr = false;
                if self.buffer[self.start] == b'\n' {
                    self.start += 1;
                    self.searched = self.searched.max(self.start);
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.skipping {
                    self.start = self.searched;
                } else if self.searched - self.start > self.limit {
                    return Err(self.skip_line());
                }
                return Ok(None);
            };
            let end = self.searched + end;
            let line = self.start..end;
            self.after_cr = self.buffer[end] == b'\r';
            if !self.skipping && line.len() > self.limit {
                self.searched = end;
                return Err(self.skip_line());
            }
            self.start = end + 1;
            self.searched = self.start;
            if !std::mem::take(&mut self.skipping) {
                return Ok(Some(&self.buffer[line]));
            }
        }
    }

    fn skip_line(&mut self) -> TooLong {
        let rest = &self.buffer[self.start..self.searched];
        let head = String::from_utf8_lossy(&rest[..rest.len().min(HEAD)]).into_owned();
        self.skipping = true;
        self.after_cr = false;
        self.start = self.searched;
        TooLong { head }
    }

    /// Returns the last line if it has no end and is not blank.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let rest = self.buffer[self.start..].to_vec();
        (self.start, self.searched) = (self.buffer.len(), self.buffer.len());
        (!self.skipping && !rest.trim_ascii().is_empty()).then_some(rest)
    }
}

/// A server-sent event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; `None` means `message`.
    pub event: Option<String>,
    /// The data. Several lines are joined with LF.
    pub data: String,
    /// The id, to be sent back as `Last-Event-ID`.
    pub id: Option<String>,
    /// Milliseconds before a reconnect.
    pub retry: Option<u64>,
}

/// Splits bytes that arrive in chunks into server-sent events. The events do not depend on the
/// chunks.
///
/// ```
/// use attache_http::client::sse::Sse;
///
/// let mut sse = Sse::default();
/// sse.push(b": comment\n\ndata: one\nda");
/// assert_eq!(sse.next_event(), Ok(None));
/// sse.push(b"ta: two\r\n\r\n");
/// assert_eq!(sse.next_event().unwrap().unwrap().data, "one\ntwo");
/// ```
// HTTP-32: comments, `event:` and `id:` fields and several `data:` lines are understood. HTTP-45:
// in any chunks.
pub struct Sse {
    lines: Lines,
    event: SseEvent,
    data: Vec<u8>,
    limit: usize,
    has_data: bool,
    /// Whether no line was read yet, so that a byte order mark may come.
    at_start: bool,
    /// Whether the rest of the current event is discarded.
    skipping: bool,
    has_comments: bool,
}

impl Default for Sse {
    fn default() -> Self {
        Sse::with_limit(DEFAULT_LIMIT)
    }
}

impl Sse {
    /// With a limit for the data of one event.
    pub fn with_limit(limit: usize) -> Self {
        Sse {
            lines: Lines::with_limit(limit.saturating_add(FIELD)),
            event: SseEvent::default(),
            data: Vec::new(),
            limit,
            has_data: false,
            at_start: true,
            skipping: false,
            has_comments: false,
        }
    }

    /// Adds a chunk. All events before it should have been taken.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Whether the stream contained a comment so far, which servers send to keep it alive.
    pub fn has_comments(&self) -> bool {
        self.has_comments
    }

    /// Returns the next event. One without data is none.
    ///
    /// # Errors
    /// The event is over the limit. The next call continues after it.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, TooLong> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(_) if self.skipping => continue,
                Err(TooLong { head }) => {
                    if self.has_data {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(field(head.as_bytes()).1);
                    self.at_start = false;
                    return Err(self.skip_event());
                }
            };
            let line = match std::mem::take(&mut self.at_start) {
                true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
                false => line,
            };
            if line.is_empty() {
                let event = self.take();
                if !std::mem::take(&mut self.skipping) && event.is_some() {
                    return Ok(event);
                }
                continue;
            }
            if self.skipping {
                continue;
            }
            if line[0] == b':' {
                self.has_comments = true;
                continue;
            }
            // The field borrows the line; only the other members change.
            let (name, value) = field(line);
            if name == b"data" {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                if self.data.len() > self.limit {
                    return Err(self.skip_event());
                }
            } else {
                set_field(&mut self.event, name, value);
            }
        }
    }

    /// Returns an event without its empty line at the end of the stream. Strictly it is none, but
    /// servers forget the line.
    ///
    /// # Errors
    /// The event is over the limit.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, TooLong> {
        if let Some(line) = self.lines.finish()
            && !self.skipping
        {
            self.push(&line);
            self.push(b"\n");
        }
        self.push(b"\n\n");
        self.next_event()
    }

    fn skip_event(&mut self) -> TooLong {
        self.skipping = true;
        let event = self.take();
        let head: String = event.map(|event| event.data.chars().take(HEAD).collect()).unwrap_or_default();
        TooLong { head }
    }

    fn take(&mut self) -> Option<SseEvent> {
        let mut event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        event.data = String::from_utf8(data)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        (std::mem::take(&mut self.has_data) || self.skipping).then_some(event)
    }
}

/// Name and value of a line.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

fn set_field(event: &mut SseEvent, name: &[u8], value: &[u8]) {
    let text = || String::from_utf8_lossy(value).into_owned();
    match name {
        b"event" => event.event = Some(text()),
        b"id" if !value.contains(&0) => event.id = Some(text()),
        b"retry" if value.iter().all(u8::is_ascii_digit) => event.retry = text().parse().ok(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The data of each event; `None` for one that is too long.
    fn events<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Option<SseEvent>> {
        let mut sse = Sse::with_limit(limit);
        let mut events = Vec::new();
        let mut take = |next: Result<Option<SseEvent>, TooLong>| match next {
            Ok(None) => false,
            Ok(Some(event)) => {
                events.push(Some(event));
                true
            }
            Err(TooLong { .. }) => {
                events.push(None);
                true
            }
        };
        for piece in pieces {
            sse.push(piece);
            while take(sse.next_event()) {}
        }
        take(sse.finish());
        events
    }

    fn data<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        events(DEFAULT_LIMIT, pieces).into_iter().map(|event| event.unwrap().data).collect()
    }

    const STREAM: &str = "\u{feff}data: {\"a\":1}\n\n: ping\n\nevent: x\nid: 7\ndata:two\ndata: lines\n\nretry: 5\n\n\
        data\n\ndatabase: no\n\ndata: Größe\u{2028}😀\n\ndata: last";

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut_and_however_its_lines_end() {
        let expected = ["{\"a\":1}", "two\nlines", "", "Größe\u{2028}😀", "last"];
        for end in ["\n", "\r\n", "\r"] {
            let stream = STREAM.replace('\n', end);
            let bytes = stream.as_bytes();
            assert_eq!(data([bytes]), expected);
            for cut in 0..=bytes.len() {
                assert_eq!(data([&bytes[..cut], &bytes[cut..]]), expected, "{end:?} cut at {cut}");
            }
            assert_eq!(data(bytes.chunks(1)), expected, "{end:?}");
        }
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\"";
        for cut in 0..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                lines.push(piece);
                while let Some(line) = lines.next_line().unwrap() {
                    found.push(line.to_vec());
                }
            }
            found.extend(lines.finish());
            let expected: [&[u8]; 4] = [b"{\"a\":1}", b"", b"{\"b\":2}", b"{\"c\""];
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        let mut lines = Lines::with_limit(4);
        lines.push(b"12345");
        assert_eq!(lines.next_line(), Err(TooLong { head: "12345".into() }));
        lines.push(b"678\n9\n");
        assert_eq!(lines.next_line(), Ok(Some(&b"9"[..])));
        assert_eq!(lines.next_line(), Ok(None));
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_and_its_beginning_is_reported() {
        let mut sse = Sse::with_limit(5);
        sse.push(b"event: e\ndata: 1\n\ndata: 123456");
        let event = sse.next_event().unwrap().unwrap();
        assert_eq!((event.event.as_deref(), event.data.as_str()), (Some("e"), "1"));
        assert_eq!(sse.next_event(), Err(TooLong { head: "123456".into() }));
        sse.push(b"789\nid: 4\ndata: x\n\ndata: 2\n\n");
        assert_eq!(sse.next_event().unwrap().unwrap().data, "2");
        let mut sse = Sse::with_limit(8);
        sse.push(b"data: 12\ndata: 345\ndata: 678\n\n");
        assert_eq!(sse.next_event(), Err(TooLong { head: "12\n345\n678".into() }));
        assert_eq!(sse.next_event(), Ok(None));
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let literals = [
            &b"\n"[..],
            b"\n",
            b"\n\n",
            b"\r",
            b"\r\n",
            b":",
            b" ",
            b"d",
            b"\xc3",
            b"\xef\xbb\xbf",
            b"data: ",
            b"id:7",
        ];
        prop_oneof![
            proptest::sample::select(literals.map(<[u8]>::to_vec).to_vec()),
            any::<u8>().prop_map(|byte| vec![byte])
        ]
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            bytes in proptest::collection::vec(piece(), 0..60),
            cuts in proptest::collection::vec(0usize..200, 0..6),
            limit in 0usize..40,
        ) {
            let bytes = bytes.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut start = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|&cut| { let piece = &bytes[start..cut]; start = cut; piece }).collect();
            let whole = events(limit, [&bytes[..]]);
            prop_assert_eq!(&events(limit, pieces), &whole);
            prop_assert_eq!(&events(limit, bytes.chunks(1)), &whole);
        }
    }
}
