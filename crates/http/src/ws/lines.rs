//! Line feeds within a text message.
//!
//! JSON may contain line feeds as whitespace, and some peers put several messages into one frame,
//! separated by line feeds. Both are distinguished by their neighbours: between `}` and `{` a line
//! feed separates two messages, because one JSON value never has these side by side; everywhere
//! else it is whitespace.

/// State within one message.
#[derive(Debug, Default)]
pub(super) struct LineFeeds {
    /// The last byte that is not whitespace.
    last: u8,
    /// A line feed whose next neighbour has not arrived: its place in the output is a space so far.
    open: bool,
}

impl LineFeeds {
    /// Rewrites the line feeds of the next piece of a message in place. Returns whether a separator
    /// belongs before the piece.
    pub(super) fn piece(&mut self, bytes: &mut [u8]) -> bool {
        let first = if self.open { Some(0) } else { memchr::memchr(b'\n', bytes) };
        let plain = bytes.get(..first.unwrap_or(bytes.len())).unwrap_or_default();
        if let Some(&last) = plain.iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = last;
        }
        let mut before = false;
        // The place of the open line feed in this piece.
        let mut place: Option<usize> = None;
        for at in first.unwrap_or(bytes.len())..bytes.len() {
            let Some(&byte) = bytes.get(at) else { break };
            if byte == b'\n' {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = b' ';
                }
                self.open = true;
                place = Some(at);
            } else if !byte.is_ascii_whitespace() {
                if self.open && self.last == b'}' && byte == b'{' {
                    match place.and_then(|place| bytes.get_mut(place)) {
                        Some(byte) => *byte = b'\n',
                        None => before = true,
                    }
                }
                self.open = false;
                self.last = byte;
            }
        }
        before
    }

    /// Begins the next message.
    pub(super) fn reset(&mut self) {
        *self = LineFeeds::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(pieces: &[&[u8]]) -> String {
        let (mut state, mut out) = (LineFeeds::default(), Vec::new());
        for piece in pieces {
            let mut piece = piece.to_vec();
            if state.piece(&mut piece) {
                out.push(b'\n');
            }
            out.extend_from_slice(&piece);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pretty_printed_messages_stay_one_line() {
        let text = "{\n  \"a\": [\n    {\n    },\n    {}\n  ]\n}\n";
        assert!(!pieces(&[text.as_bytes()]).contains('\n'));
    }

    #[test]
    fn several_messages_become_lines() {
        assert_eq!(pieces(&[b"{\"a\":1}\n{\"b\":2}\r\n\n{\n}"]).lines().count(), 3);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[ {}\\[\\],a\n]{0,24}", cuts in prop::collection::vec(0usize..24, 0..4)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            let lines = |text: &str| -> Vec<String> {
                text.lines().map(|line| line.split_whitespace().collect()).collect()
            };
            prop_assert_eq!(lines(&pieces(&parts)), lines(&pieces(&[text.as_bytes()])));
        }
    }
}
