//! Streams of lines, and server-sent events made of them.

/// The longest line and the longest event by default. An image may be one line.
const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;

/// Splits bytes that arrive in chunks into lines that end in LF, CR or both.
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here there is no line end.
    seen: usize,
    /// Whether a CR ended the last line, so that an LF at the front belongs to it.
    after_cr: bool,
    limit: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { buffer: Vec::new(), start: 0, seen: 0, after_cr: false, limit: DEFAULT_LIMIT }
    }
}

/// A line or an event exceeds the limit.
#[derive(Debug, PartialEq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.buffer.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        // A chunk may be longer than the limit if its lines are not.
        if self.buffer.len() > self.limit || self.buffer.len() + bytes.len() > self.limit.max(DEFAULT_LIMIT) {
            return Err(TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line, without its end.
    pub(crate) fn next(&mut self) -> Option<String> {
        if self.after_cr && self.seen < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.seen] == b'\n' {
                self.start += 1;
                self.seen += 1;
            }
        }
        let end = self.buffer[self.seen..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = end.map(|end| self.seen + end) else {
            self.seen = self.buffer.len();
            return None;
        };
        let line = String::from_utf8_lossy(&self.buffer[self.start..end]).into_owned();
        self.after_cr = self.buffer[end] == b'\r';
        self.start = end + 1;
        self.seen = self.start;
        Some(line)
    }

    /// The last line, if it has no end.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let rest = String::from_utf8_lossy(&self.buffer[self.start..]).into_owned();
        (self.start, self.seen) = (self.buffer.len(), self.buffer.len());
        (!rest.trim().is_empty()).then_some(rest)
    }
}

/// A server-sent event.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) event: Option<String>,
    pub(crate) data: String,
    pub(crate) id: Option<String>,
    /// Milliseconds before a reconnect.
    pub(crate) retry: Option<u64>,
}

/// Splits bytes into server-sent events.
#[derive(Default)]
pub(crate) struct Sse {
    lines: Lines,
    event: SseEvent,
    has_data: bool,
}

impl Sse {
    /// With a limit for the data of one event.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Sse { lines: Lines { limit, ..Lines::default() }, ..Sse::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.lines.push(bytes)
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, TooLong> {
        while let Some(line) = self.lines.next() {
            // An empty line ends the event; one without data is none.
            if !line.is_empty() {
                self.add(&line)?;
            } else if let Some(event) = self.take() {
                return Ok(Some(event));
            }
        }
        match self.lines.buffer.len() - self.lines.start > self.lines.limit {
            true => Err(TooLong),
            false => Ok(None),
        }
    }

    /// An event without its empty line at the end of the stream. Strictly it is none, but servers
    /// forget the line.
    pub(crate) fn finish(&mut self) -> Result<Option<SseEvent>, TooLong> {
        if let Some(line) = self.lines.finish() {
            self.add(&line)?;
        }
        Ok(self.take())
    }

    /// The data of the event that is too long, as far as it was received.
    pub(crate) fn partial(&self) -> String {
        let line = String::from_utf8_lossy(&self.lines.buffer[self.lines.start..]);
        format!("{}{}", self.event.data, line.strip_prefix("data:").unwrap_or_default())
    }

    fn take(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }

    fn add(&mut self, line: &str) -> Result<(), TooLong> {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                if self.event.data.len() > self.lines.limit {
                    return Err(TooLong);
                }
            }
            // Comments have no name.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut sse = Sse::default();
        let mut events = Vec::new();
        for piece in pieces {
            sse.push(piece).unwrap();
            while let Some(event) = sse.next().unwrap() {
                events.push(event.data);
            }
        }
        events.extend(sse.finish().unwrap().map(|event| event.data));
        events
    }

    const STREAM: &str = "\u{feff}data: {\"a\":1}\n\n: ping\n\nevent: x\nid: 7\ndata:two\ndata: lines\n\nretry: 5\n\n\
        data\n\ndatabase: no\n\ndata: Größe\u{2028}😀\n\ndata: last";

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut_and_however_its_lines_end() {
        let expected = ["{\"a\":1}", "two\nlines", "", "Größe\u{2028}😀", "last"];
        for end in ["\n", "\r\n", "\r"] {
            let stream = STREAM.replace('\n', end);
            let bytes = stream.as_bytes();
            assert_eq!(events(&[bytes]), expected);
            for cut in 0..=bytes.len() {
                assert_eq!(events(&[&bytes[..cut], &bytes[cut..]]), expected, "{end:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(&single), expected, "{end:?}");
        }
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\"";
        for cut in 0..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                lines.push(piece).unwrap();
                found.extend(std::iter::from_fn(|| lines.next()));
            }
            found.extend(lines.finish());
            assert_eq!(found, ["{\"a\":1}", "", "{\"b\":2}", "{\"c\""], "cut at {cut}");
        }
    }

    #[test]
    fn lines_without_end_are_given_up() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; DEFAULT_LIMIT / 2];
        lines.push(&piece).unwrap();
        assert_eq!(lines.next(), None);
        lines.push(&piece).unwrap();
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }

    #[test]
    fn events_above_the_limit_are_given_up_with_their_beginning() {
        let mut sse = Sse::with_limit(4);
        sse.push(b"event: e\ndata: 1\n\ndata: 123456").unwrap();
        let event = sse.next().unwrap().unwrap();
        assert_eq!((event.event.as_deref(), event.data.as_str()), (Some("e"), "1"));
        assert_eq!(sse.next(), Err(TooLong));
        assert_eq!(sse.partial(), " 123456");
        let mut sse = Sse::with_limit(4);
        sse.push(b"data: 12\ndata: 345\n\n").unwrap();
        assert_eq!((sse.next(), sse.partial().as_str()), (Err(TooLong), "12\n345"));
    }
}
