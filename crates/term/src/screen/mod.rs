//! Draws frames: finished lines scroll into the terminal's history, live lines are redrawn in
//! place.
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
    /// The title of the window; `None` leaves it as it is.
    pub title: Option<String>,
    /// Calls the user, who may look at another window.
    pub alert: Option<Alert>,
}

/// A call for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// A line for the desktop.
    pub text: String,
    /// Whether the terminal's bell rings.
    pub bell: bool,
    /// The sequence for a notice on the desktop.
    pub desktop: Option<Desktop>,
}

/// A sequence that terminals turn into a notice on the desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desktop {
    /// OSC 9: iTerm2, WezTerm, kitty, Windows Terminal.
    Osc9,
    /// OSC 777: VTE, foot, urxvt.
    Osc777,
}

impl Desktop {
    /// Returns the sequence for this terminal. A terminal that knows none of them ignores it.
    pub fn of_terminal() -> Option<Desktop> {
        let term = std::env::var("TERM").unwrap_or_default();
        match term.as_str() {
            "linux" | "dumb" => None,
            _ if std::env::var_os("VTE_VERSION").is_some() => Some(Desktop::Osc777),
            term if term.starts_with("foot") || term.starts_with("rxvt") => Some(Desktop::Osc777),
            _ => Some(Desktop::Osc9),
        }
    }
}

/// Draws frames.
pub struct Screen<W> {
    out: W,
    look: Look,
    /// The live lines on the screen, and the row of the cursor in them.
    live: Vec<Line>,
    row: usize,
    buffer: String,
    /// The title that was set.
    title: Option<String>,
}

impl<W: Write> Screen<W> {
    /// A screen that writes to `out`.
    pub fn new(out: W, look: Look) -> Screen<W> {
        Screen { out, look, live: Vec::new(), row: 0, buffer: String::new(), title: None }
    }

    /// Draws a frame; only rows that changed are written.
    pub fn draw(&mut self, frame: Frame) -> io::Result<()> {
        let Frame { clear, scrolled, live, cursor, title, alert } = frame;
        let mut text = std::mem::take(&mut self.buffer);
        self.show_title(title, &mut text);
        if let Some(alert) = alert {
            call(&alert, &mut text);
        }
        // A synchronized update without a cursor, to avoid flicker.
        text.push_str("\x1b[?2026h\r\x1b[?25l");
        if clear {
            // Erasing the whole screen at once makes many terminals copy it to their scrollback
            // first.
            text.push_str("\x1b[H\x1b[K\r\n\x1b[J\x1b[H");
            self.live.clear();
            self.row = 0;
        }
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

    /// Sets the title of the window; the one before is kept by the terminal.
    fn show_title(&mut self, title: Option<String>, text: &mut String) {
        let Some(title) = title.filter(|title| self.title.as_ref() != Some(title)) else { return };
        if self.title.is_none() {
            text.push_str("\x1b[22;2t");
        }
        let _ = write!(text, "\x1b]2;{}\x07", plain(&title));
        self.title = Some(title);
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

    /// Puts a text into the clipboard (OSC 52), if the terminal allows it. `encoded` is Base64.
    pub fn copy(&mut self, encoded: &str) -> io::Result<()> {
        let encoded: String =
            encoded.chars().filter(|c| c.is_ascii_alphanumeric() || "+/=".contains(*c)).collect();
        write!(self.out, "\x1b]52;c;{encoded}\x07")?;
        self.out.flush()
    }

    /// Erases the live lines and leaves the cursor where the shell continues.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut text = String::from("\r");
        if self.row > 0 {
            let _ = write!(text, "\x1b[{}A", self.row);
        }
        text.push_str("\x1b[J\x1b[?25h");
        if self.title.take().is_some() {
            text.push_str("\x1b[23;2t");
        }
        self.live.clear();
        self.row = 0;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Returns the text without characters that would end a sequence.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn call(alert: &Alert, text: &mut String) {
    let words = plain(&alert.text);
    let _ = match alert.desktop {
        Some(Desktop::Osc9) => write!(text, "\x1b]9;{words}\x07"),
        Some(Desktop::Osc777) => write!(text, "\x1b]777;notify;Attaché;{}\x07", words.replace(';', ",")),
        None => Ok(()),
    };
    if alert.bell {
        text.push('\x07');
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
