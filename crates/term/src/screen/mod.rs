//! Draws frames: finished lines scroll into the terminal's history, live lines are redrawn in place.
//!
//! The alternate screen is not used, so the output stays after the program has ended.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::render::style::Line;
use crate::render::text::Look;

/// One picture of the screen.
#[derive(Debug, Default)]
pub struct Frame {
    /// Clears the screen first, after a resize or when lines changed their form.
    pub clear: bool,
    /// Lines that scroll up into the terminal's history.
    pub scrolled: Vec<Line>,
    /// Lines that stay, at most as many as the screen has rows.
    pub live: Vec<Line>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Draws frames.
pub struct Screen<W> {
    out: W,
    look: Look,
    /// The live lines on the screen, and the row of the cursor in them.
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
        let Frame { clear, scrolled, live, cursor } = frame;
        let mut text = std::mem::take(&mut self.buffer);
        // A synchronized update without a cursor, to avoid flicker.
        text.push_str("\x1b[?2026h\x1b[?25l");
        if clear {
            text.push_str("\x1b[H\x1b[2J");
            self.live.clear();
            self.row = 0;
        }
        text.push('\r');
        if self.row > 0 {
            let _ = write!(text, "\x1b[{}A", self.row);
        }
        if scrolled.is_empty() {
            self.redraw(&live, &mut text);
        } else {
            text.push_str("\x1b[J");
            for line in &scrolled {
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

    /// Writes the lines that differ from those on the screen.
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
            // Erases from the line below; the last line stays.
            text.push_str("\r\n\x1b[J\x1b[A");
        }
    }

    /// Erases the live lines and leaves the cursor where the shell continues.
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
