//! The terminal: what is finished scrolls up into its own history, what still changes is drawn over again.
//!
//! Nothing here needs the alternate screen, so everything that was said is still there after the program has ended.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::render::style::Line;
use crate::render::text::Look;

/// One picture of the screen.
#[derive(Debug, Default)]
pub struct Frame {
    /// Clears the screen first, after a resize or when lines changed their form.
    pub anew: bool,
    /// Lines that scroll up into the terminal's history.
    pub up: Vec<Line>,
    /// Lines that stay, at most as many as the screen has rows.
    pub live: Vec<Line>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Draws frames.
pub struct Screen<W> {
    out: W,
    look: Look,
    /// What is drawn, and in which of its rows the cursor is.
    live: Vec<Line>,
    row: usize,
    buffer: String,
}

impl<W: Write> Screen<W> {
    /// A screen that writes to `out`.
    pub fn new(out: W, look: Look) -> Screen<W> {
        Screen { out, look, live: Vec::new(), row: 0, buffer: String::new() }
    }

    /// Draws a frame; only rows that changed are written.
    pub fn draw(&mut self, frame: Frame) -> io::Result<()> {
        let Frame { anew, up, live, cursor } = frame;
        let mut text = std::mem::take(&mut self.buffer);
        // The terminal shows all of it at once, if it knows how, and without a cursor that jumps.
        text.push_str("\x1b[?2026h\x1b[?25l");
        if anew {
            text.push_str("\x1b[H\x1b[2J");
            self.live.clear();
            self.row = 0;
        }
        text.push('\r');
        if self.row > 0 {
            let _ = write!(text, "\x1b[{}A", self.row);
        }
        if up.is_empty() {
            self.redraw(&live, &mut text);
        } else {
            text.push_str("\x1b[J");
            for line in &up {
                line.write(self.look.colours, &mut text);
                text.push_str("\r\n");
            }
            lines(&live, self.look, &mut text);
        }
        let last = live.len().saturating_sub(1);
        let (row, column) = cursor.unwrap_or((last, 0));
        if last > row {
            let _ = write!(text, "\x1b[{}A", last - row);
        }
        let _ = write!(text, "\x1b[{}G", column + 1);
        if cursor.is_some() {
            text.push_str("\x1b[?25h");
        }
        text.push_str("\x1b[?2026l");
        self.live = live;
        self.row = row;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        text.clear();
        self.buffer = text;
        Ok(())
    }

    /// Writes the lines that differ from what is on the screen.
    fn redraw(&self, live: &[Line], text: &mut String) {
        for (at, line) in live.iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            if self.live.get(at) != Some(line) {
                line.write(self.look.colours, text);
                text.push_str("\x1b[K");
            }
        }
        if live.len() < self.live.len() {
            // From the line below; the last one stays.
            text.push_str("\r\n\x1b[J\x1b[A");
        }
    }

    /// Leaves the cursor below everything, where a shell goes on.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut text = String::from("\r");
        if self.row > 0 {
            let _ = write!(text, "\x1b[{}A", self.row);
        }
        text.push_str("\x1b[J\x1b[?25h");
        self.live.clear();
        self.row = 0;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

fn lines(lines: &[Line], look: Look, text: &mut String) {
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            text.push_str("\r\n");
        }
        line.write(look.colours, text);
    }
}

#[cfg(all(test, unix))]
mod tests;
