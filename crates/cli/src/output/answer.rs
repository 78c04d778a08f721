//! The answer of the agent on a terminal: Markdown that is drawn block by block while it grows.

use attache_term::render::markdown;
use attache_term::render::style::{Line, Style};

use super::{Channel, Surface};

/// A block that does not end is split at this length, so that memory stays bounded.
const MAX_BLOCK: usize = 16 << 10;

/// The columns of a terminal that does not report its size.
const COLUMNS: usize = 80;

/// The part of an answer that is not drawn yet.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    /// Whether a block was drawn, so that the next one has an empty line before it.
    begun: bool,
    /// Whether the last part ended inside a block of code, which the next part continues.
    in_code: bool,
}

/// Whether answers are drawn on this stream. Other programs get the text as the agent sent it.
pub(super) fn is_drawn(surface: Surface) -> bool {
    surface.terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

impl Answer {
    /// Adds a piece and draws the blocks that will not change.
    pub(super) fn push(&mut self, text: &str, out: &mut Channel) {
        self.text.push_str(text);
        // Blocks end with lines.
        if !text.contains('\n') && self.text.len() <= MAX_BLOCK {
            return;
        }
        let mut at = markdown::settled(&self.text);
        let mut fence = None;
        if self.text.len() - at > MAX_BLOCK {
            at = split(&self.text, at);
            fence = self.text.get(..at).and_then(markdown::open_fence).map(str::to_owned);
        }
        if at == 0 {
            return;
        }
        let mut rest = self.text.split_off(at);
        if let Some(fence) = &fence {
            rest.insert_str(0, &format!("{fence}\n"));
        }
        self.draw(out);
        self.in_code = fence.is_some();
        self.text = rest;
    }

    /// Whether a part of the answer was drawn or waits for its end.
    pub(super) fn has_begun(&self) -> bool {
        self.begun || !self.text.is_empty()
    }

    /// Draws the rest. The next piece begins another answer.
    pub(super) fn finish(&mut self, out: &mut Channel) {
        self.draw(out);
        (self.begun, self.in_code) = (false, false);
    }

    fn draw(&mut self, out: &mut Channel) {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return;
        }
        let surface = out.surface();
        let columns = surface.columns().unwrap_or(COLUMNS).max(20);
        let lines = markdown::render(&text, columns, Style::PLAIN, surface.look());
        if self.begun && !self.in_code && !lines.is_empty() {
            out.line(&Line::new());
        }
        self.begun |= !lines.is_empty();
        lines.iter().for_each(|line| out.row(line));
    }
}

/// Returns where to split a block that is too long: after a line if there is one, else after a
/// word.
fn split(text: &str, from: usize) -> usize {
    let tail = text.get(from..).unwrap_or_default();
    let cut = tail.rfind('\n').or_else(|| tail.rfind(' ')).map_or(tail.len(), |at| at + 1);
    from + cut
}
