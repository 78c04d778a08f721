//! The recorded end of a child's stderr, and its split into lines.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::OnLine;

/// Bytes of stderr that are kept, and the longest line that is passed on in one piece.
pub(super) const KEPT: usize = 64 * 1024;

/// A ring of the last [`KEPT`] bytes.
#[derive(Debug, Default)]
pub(super) struct Tail {
    ring: VecDeque<u8>,
    /// Something was thrown away, so the first line is most likely only half of one.
    cut: bool,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = match bytes.len().checked_sub(KEPT) {
            Some(over @ 1..) => {
                self.cut = true;
                &bytes[over..]
            }
            _ => bytes,
        };
        let over = (self.ring.len() + bytes.len()).saturating_sub(KEPT);
        if over > 0 {
            self.cut = true;
            self.ring.drain(..over);
        }
        self.ring.extend(bytes);
    }

    /// The kept bytes as text. After a cut the text begins with a whole character.
    pub(super) fn text(&self) -> String {
        let (a, b) = self.ring.as_slices();
        let bytes = [a, b].concat();
        let is_inside = |b: &&u8| matches!(**b, 0x80..=0xBF);
        let start = if self.cut { bytes.iter().take(3).take_while(is_inside).count() } else { 0 };
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }
}

/// Splits output into lines for the callback.
pub(super) struct Lines {
    on_line: OnLine,
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn new(on_line: OnLine) -> Self {
        Self { on_line, line: Vec::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.line.extend_from_slice(end);
                    self.flush();
                }
                None => self.line.extend_from_slice(piece),
            }
            if self.line.len() >= KEPT {
                self.flush();
            }
        }
    }

    /// The last line needs no line end.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let mut on_line = self.on_line.lock().unwrap_or_else(PoisonError::into_inner);
        on_line(&String::from_utf8_lossy(line));
        drop(on_line);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use super::*;

    #[test]
    fn the_tail_keeps_the_end() {
        let mut tail = Tail::default();
        tail.push(b"first ");
        assert_eq!(tail.text(), "first ");
        tail.push(&vec![b'x'; KEPT - 3]);
        tail.push(b"end");
        let text = tail.text();
        assert_eq!(text.len(), KEPT);
        assert!(text.starts_with("xxx") && text.ends_with("xend"));
        tail.push(&[b"y".repeat(2 * KEPT), b"z".to_vec()].concat());
        assert_eq!(tail.text(), "y".repeat(KEPT - 1) + "z");
    }

    #[test]
    fn a_cut_tail_begins_with_a_whole_character() {
        let mut tail = Tail::default();
        tail.push("€".as_bytes());
        tail.push(&vec![b'x'; KEPT - 2]);
        assert_eq!(tail.text(), "x".repeat(KEPT - 2));
        let mut whole = Tail::default();
        whole.push(b"\x80\xff");
        assert_eq!(whole.text(), "\u{fffd}\u{fffd}", "an uncut tail hides nothing");
    }

    #[test]
    fn lines_come_whole_in_pieces_and_at_the_end() {
        let (tx, rx) = mpsc::channel();
        let mut lines = Lines::new(Arc::new(Mutex::new(move |line: &str| drop(tx.send(line.to_owned())))));
        lines.push(b"on");
        lines.push(b"e\r\ntwo\n\nthr");
        lines.push(&vec![b'e'; KEPT]);
        lines.push(b"!");
        lines.finish();
        drop(lines);
        let got: Vec<String> = rx.iter().collect();
        assert_eq!(got, ["one", "two", "", &("thr".to_owned() + &"e".repeat(KEPT)), "!"]);
    }
}
