//! Ring buffer for the output of a command.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Upper bound for all rings together.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    kept: AtomicUsize,
}

/// Bytes that every ring may keep, also when the budget is used up.
const SHARE: usize = 32 << 10;

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Budget { limit, kept: AtomicUsize::new(0) })
    }

    /// Returns how many bytes a ring that has `kept` and wants `wanted` may keep, and counts them.
    fn change(&self, kept: usize, wanted: usize) -> usize {
        let granted = |total: usize| {
            let free = self.limit.saturating_sub(total - kept);
            wanted.min(free.max(SHARE).max(kept))
        };
        let changed = |total| Some(total - kept + granted(total));
        let (Ok(before) | Err(before)) = self.kept.fetch_update(Ordering::AcqRel, Ordering::Acquire, changed);
        granted(before)
    }
}

// TERM-19, TERM-06, TERM-07
/// The end of a byte stream as text.
///
/// Invalid UTF-8 becomes U+FFFD. Beyond the limit the oldest characters are dropped, never parts of
/// one, so slightly less than the limit may be left.
#[derive(Debug)]
pub struct Ring {
    text: VecDeque<u8>,
    limit: usize,
    truncated: bool,
    /// The beginning of a character whose end has not arrived yet.
    partial: Vec<u8>,
    budget: Option<Arc<Budget>>,
    /// The bytes counted in the budget.
    counted: usize,
}

impl Ring {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Ring { text: VecDeque::new(), limit, truncated: false, partial: Vec::new(), budget: None, counted: 0 }
    }

    /// Keeps at most `limit` bytes, and less where others have used up the budget.
    pub(super) fn within(limit: usize, budget: &Arc<Budget>) -> Self {
        let mut ring = Ring::new(limit);
        ring.budget = Some(Arc::clone(budget));
        ring
    }

    /// Returns how many of `wanted` bytes may be kept.
    fn allowed(&mut self, wanted: usize) -> usize {
        let wanted = wanted.min(self.limit);
        if let Some(budget) = &self.budget {
            self.counted = budget.change(self.counted, wanted);
            return self.counted;
        }
        wanted
    }

    /// Appends bytes and returns them as text.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let mut text = String::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let bad = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete_char(bad) {
                self.partial = bad.to_vec();
            } else if !bad.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.keep(&text);
        text
    }

    /// Ends the stream. Returns the replacement of an incomplete last character.
    pub fn finish(&mut self) -> Option<&'static str> {
        if std::mem::take(&mut self.partial).is_empty() {
            return None;
        }
        self.keep("\u{fffd}");
        Some("\u{fffd}")
    }

    fn keep(&mut self, text: &str) {
        let limit = self.allowed(self.text.len() + text.len());
        // Of a piece longer than the limit, only the end is copied.
        let from = text.ceil_boundary(text.len().saturating_sub(limit));
        if from > 0 {
            self.text.clear();
            self.truncated = true;
        }
        let new = text.as_bytes().get(from..).unwrap_or_default();
        let mut over = (self.text.len() + new.len()).saturating_sub(limit);
        if over > 0 {
            self.truncated = true;
            while self.text.get(over).is_some_and(|byte| is_inside(*byte)) {
                over += 1;
            }
            self.text.drain(..over.min(self.text.len()));
        }
        self.text.extend(new);
    }

    /// The text that is kept.
    pub fn text(&self) -> String {
        let (a, b) = self.text.as_slices();
        // Text is only dropped at character boundaries.
        String::from_utf8([a, b].concat()).unwrap_or_default()
    }

    /// Whether output was dropped.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The number of bytes kept.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether no bytes are kept.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.text = VecDeque::new();
        self.allowed(0);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether these bytes are the beginning of a character. `utf8_chunks` ends an invalid piece at the
/// first byte that cannot continue a character, so only the length has to be compared.
fn is_incomplete_char(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => return false,
    };
    bytes.len() < length
}

fn is_inside(byte: u8) -> bool {
    matches!(byte, 0x80..=0xBF)
}

/// As `str::ceil_char_boundary`, which this edition's oldest compiler lacks.
trait CeilBoundary {
    fn ceil_boundary(&self, at: usize) -> usize;
}

impl CeilBoundary for str {
    fn ceil_boundary(&self, at: usize) -> usize {
        (at..self.len()).find(|at| self.is_char_boundary(*at)).unwrap_or(self.len())
    }
}
