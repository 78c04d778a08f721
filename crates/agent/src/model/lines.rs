//! Streams of lines: one JSON text to a line, or server-sent events.

/// The longest line and the longest event. A picture may come in one piece, but not without end.
const LONGEST: usize = 64 * 1024 * 1024;

/// Bytes that come in pieces, cut into lines that end in LF, CR or both.
#[derive(Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// How far there is no end of a line.
    seen: usize,
    /// A CR ended the last line, so an LF at the front belongs to it.
    after_cr: bool,
}

/// A line or an event that does not end.
#[derive(Debug, PartialEq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.buffer.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        if self.buffer.len() + bytes.len() > LONGEST {
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

    /// What is left when nothing more comes.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let rest = String::from_utf8_lossy(&self.buffer[self.start..]).into_owned();
        (self.start, self.seen) = (self.buffer.len(), self.buffer.len());
        (!rest.trim().is_empty()).then_some(rest)
    }
}

/// Server-sent events out of lines. Only the data counts: every provider names the kind of an event in there, too.
#[derive(Default)]
pub(crate) struct Sse {
    lines: Lines,
    data: Option<String>,
}

impl Sse {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.lines.push(bytes)
    }

    /// The data of the next event.
    pub(crate) fn next(&mut self) -> Result<Option<String>, TooLong> {
        while let Some(line) = self.lines.next() {
            // An empty line ends the event; without data it is none.
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Ok(Some(data));
                }
                continue;
            }
            self.line(&line)?;
        }
        Ok(None)
    }

    /// The event that the end of the stream cut short of its empty line. Strictly it is none, but servers forget the line.
    pub(crate) fn rest(&mut self) -> Result<Option<String>, TooLong> {
        if let Some(line) = self.lines.rest() {
            self.line(&line)?;
        }
        Ok(self.data.take())
    }

    fn line(&mut self, line: &str) -> Result<(), TooLong> {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        // Comments begin with a colon, and so have no name; ids and names are not needed.
        let Some(value) = line.strip_prefix("data") else { return Ok(()) };
        let value = match value.strip_prefix(':') {
            Some(value) => value.strip_prefix(' ').unwrap_or(value),
            None if value.is_empty() => "",
            None => return Ok(()),
        };
        match &mut self.data {
            Some(data) if data.len() + value.len() > LONGEST => return Err(TooLong),
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
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
                events.push(event);
            }
        }
        events.extend(sse.rest().unwrap());
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
            found.extend(lines.rest());
            assert_eq!(found, ["{\"a\":1}", "", "{\"b\":2}", "{\"c\""], "cut at {cut}");
        }
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; LONGEST / 2];
        lines.push(&piece).unwrap();
        assert_eq!(lines.next(), None);
        lines.push(&piece).unwrap();
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }
}
