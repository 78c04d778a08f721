//! Masking of streamed text, where a secret may begin in one chunk and end in a later one.

use super::names::{Level, Scan};
use super::{MASKED, Mask};

/// Replaces secrets in a streamed text, such as the answer of a model.
///
/// Text that the next chunk could turn into a secret is held back.
#[derive(Debug)]
pub struct StreamMask {
    mask: Mask,
    scan: Scan,
    held: String,
}

impl StreamMask {
    /// Creates a mask for one text.
    pub fn new(mask: Mask) -> Self {
        StreamMask { mask, scan: Scan::new(Level::Names), held: String::new() }
    }

    /// Adds a chunk. Returns the text that can be released.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.release(true)
    }

    /// Whether no text is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Ends the text, returns the rest of it, and starts a new one.
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
