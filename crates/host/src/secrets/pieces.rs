//! Masking in a text that comes in pieces, so that a secret may begin in one of them and end in a later one.

use super::names::{Level, Scan};
use super::{MASKED, Mask};

/// Hides secrets in a text that comes in pieces, such as the answer of a model.
///
/// What a later piece could turn into a secret is held back.
#[derive(Debug)]
pub struct PieceMask {
    mask: Mask,
    scan: Scan,
    held: String,
}

impl PieceMask {
    /// For one text.
    pub fn new(mask: Mask) -> Self {
        PieceMask { mask, scan: Scan::new(Level::Names), held: String::new() }
    }

    /// Adds a piece. Returns the text that is certain by now and was not returned before.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.release(true)
    }

    /// Whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Ends the text. Returns the rest of it, and begins a new one.
    pub fn finish(&mut self) -> String {
        let rest = self.release(false);
        self.scan = Scan::new(Level::Names);
        rest
    }

    fn release(&mut self, more: bool) -> String {
        let text = self.mask.known(&self.held);
        let ready = if more { text.len() - self.mask.open_tail(&text) } else { text.len() };
        let mut out = String::new();
        let mut done = 0;
        let end = self.scan.run(&text[..ready], more, |from, to| {
            out.push_str(&text[done..from]);
            out.push_str(MASKED);
            done = to;
        });
        out.push_str(&text[done.min(end)..end]);
        let rest = text[end..].to_owned();
        self.held = rest;
        out
    }
}
