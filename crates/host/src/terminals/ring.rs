//! What is kept of a command's output: its end, as text.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all rings together may keep.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    kept: AtomicUsize,
}

/// What every ring may keep of what it is allowed, also when others have used up the budget.
const SHARE: usize = 32 << 10;

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Budget { limit, kept: AtomicUsize::new(0) })
    }

    /// How many bytes a ring may keep that has `kept` and wants `wanted`. Counted from now on.
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

/// The last bytes of a text that comes as bytes.
///
/// TERM-19: what is not UTF-8 becomes U+FFFD. TERM-06, TERM-07: when there is more than the limit, the oldest characters go, whole
/// ones, so that less than the limit may be left.
#[derive(Debug)]
pub struct Ring {
    text: VecDeque<u8>,
    limit: usize,
    cut: bool,
    /// The beginning of a character whose rest has not come yet.
    half: Vec<u8>,
    budget: Option<Arc<Budget>>,
    /// The bytes that count in the budget.
    counted: usize,
}

impl Ring {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Ring { text: VecDeque::new(), limit, cut: false, half: Vec::new(), budget: None, counted: 0 }
    }

    /// Keeps at most `limit` bytes, and less where others have used up the budget.
    pub(super) fn within(limit: usize, budget: &Arc<Budget>) -> Self {
        let mut ring = Ring::new(limit);
        ring.budget = Some(Arc::clone(budget));
        ring
    }

    /// How many bytes may be kept if there are `wanted`.
    fn allowed(&mut self, wanted: usize) -> usize {
        let wanted = wanted.min(self.limit);
        if let Some(budget) = &self.budget {
            self.counted = budget.change(self.counted, wanted);
            return self.counted;
        }
        wanted
    }

    /// Adds what has come. Returns it as text.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.half);
        whole.extend_from_slice(bytes);
        let mut text = String::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let bad = chunk.invalid();
            if chunks.peek().is_none() && may_go_on(bad) {
                self.half = bad.to_vec();
            } else if !bad.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.keep(&text);
        text
    }

    /// There will be no more. Returns what is left of a character that never came to its end.
    pub fn finish(&mut self) -> Option<&'static str> {
        if std::mem::take(&mut self.half).is_empty() {
            return None;
        }
        self.keep("\u{fffd}");
        Some("\u{fffd}")
    }

    fn keep(&mut self, text: &str) {
        let limit = self.allowed(self.text.len() + text.len());
        // Of a piece that is too long by itself, only its end is ever copied.
        let from = text.ceil_boundary(text.len().saturating_sub(limit));
        if from > 0 {
            self.text.clear();
            self.cut = true;
        }
        let new = text.as_bytes().get(from..).unwrap_or_default();
        let mut over = (self.text.len() + new.len()).saturating_sub(limit);
        if over > 0 {
            self.cut = true;
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
        // It was text when it came, and was only cut between characters.
        String::from_utf8([a, b].concat()).unwrap_or_default()
    }

    /// Whether something is gone.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// How many bytes are kept.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing is kept.
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

/// Whether these bytes are the beginning of a character, so that more may make it whole. `utf8_chunks` ends an invalid piece where
/// no character can go on; so of a first byte and what fits after it, only the number is missing.
fn may_go_on(bytes: &[u8]) -> bool {
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
