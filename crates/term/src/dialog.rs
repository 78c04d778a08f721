//! A dialog on the terminal of a command: live lines and keys for as long as it is open.

use std::io::{self, Write};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::device::{Keys, Raw};
use crate::output::{Channel, Stream, Surface, discard_typed};
use crate::picker::{Picked, Picker};
use crate::render::style::Line;
use crate::render::text::Look;
use crate::screen::{Frame, Screen};

/// Rows and columns if the terminal does not report them.
const SIZE: (usize, usize) = (80, 24);

/// The keys of a command. The thread that reads them is started with the first dialog and paused
/// between dialogs.
#[derive(Default)]
pub struct DialogKeys(Option<Keys>);

/// An open dialog. Dropping it erases its lines, restores the terminal and stops reading keys.
pub struct Dialog<'a> {
    // In this order: no key may be read in the terminal's normal mode, and the lines are erased
    // before it.
    keys: &'a mut Keys,
    screen: Screen<Box<dyn Write>>,
    raw: Raw,
}

/// What happened in a dialog.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// A text was pasted.
    Paste(String),
    /// The lines must be drawn again.
    Redraw,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

impl<'a> Dialog<'a> {
    /// Enters raw mode and reads keys. Keys of an earlier dialog are discarded.
    pub fn open(keys: &'a mut DialogKeys, stream: Stream, look: Look) -> io::Result<Dialog<'a>> {
        let out: Box<dyn Write> = match stream {
            Stream::Stdout => Box::new(io::stdout()),
            Stream::Stderr => Box::new(io::stderr()),
        };
        let raw = Raw::enter()?;
        let keys = match &mut keys.0 {
            Some(keys) => {
                keys.forget();
                keys.resume();
                keys
            }
            none => none.insert(Keys::read()?),
        };
        Ok(Dialog { keys, screen: Screen::new(out, look), raw })
    }

    /// Columns that can be used, and rows.
    pub fn size(&self) -> (usize, usize) {
        let size = crossterm::terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0);
        let (columns, rows) = size.map_or(SIZE, |(columns, rows)| (columns.into(), rows.into()));
        // The last column stays free: a full row would move the cursor to the next one.
        (columns.saturating_sub(1).max(1), rows)
    }

    /// Replaces the live lines. Only their end is shown if the screen is too low.
    pub fn draw(&mut self, mut live: Vec<Line>, cursor: Option<(usize, usize)>) -> io::Result<()> {
        let rows = self.size().1;
        let above = live.len().saturating_sub(rows);
        live.drain(..above);
        let cursor = cursor.map(|(row, column)| (row.saturating_sub(above), column));
        self.screen.draw(Frame { live, cursor, ..Frame::default() })
    }

    /// Closes the dialog and ends the line before it: in raw mode no key does.
    pub fn end_line(self, surface: Surface) {
        drop(self);
        let mut channel = Channel::new(surface);
        channel.line(&Line::new());
        let _ = channel.write();
    }

    /// Discards what was typed so far.
    pub fn discard(&mut self) {
        discard_typed();
        self.keys.forget();
    }

    /// Waits for the next input. Cancel-safe.
    pub async fn next(&mut self) -> Input {
        loop {
            let key = match self.keys.next().await {
                None => return Input::End,
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => key,
                Some(Event::Paste(text)) => return Input::Paste(text),
                Some(Event::Resize(..)) => return Input::Redraw,
                Some(_) => continue,
            };
            let ctrl = key.modifiers == KeyModifiers::CONTROL;
            match key.code {
                KeyCode::Char('c') if ctrl => return Input::Interrupt,
                KeyCode::Char('d') if ctrl => return Input::End,
                KeyCode::Char('z') if ctrl => {
                    let _ = self.screen.leave();
                    let _ = self.raw.suspend();
                    return Input::Redraw;
                }
                _ => return Input::Key(key),
            }
        }
    }
}

impl Drop for Dialog<'_> {
    fn drop(&mut self) {
        let _ = self.keys.pause();
        let _ = self.screen.leave();
    }
}

/// Lets the user choose from a list, below lines that explain it. `None` if they leave.
pub async fn pick<T: Clone>(
    keys: &mut DialogKeys,
    intro: &[Line],
    picker: &mut Picker<T>,
    look: Look,
) -> io::Result<Option<T>> {
    let mut dialog = Dialog::open(keys, Stream::Stdout, look)?;
    loop {
        let (columns, rows) = dialog.size();
        let mut live = intro.to_vec();
        let (lines, (row, column)) = picker.render(columns, rows.saturating_sub(intro.len()), look);
        live.extend(lines);
        dialog.draw(live, Some((intro.len() + row, column)))?;
        match dialog.next().await {
            Input::End | Input::Interrupt => return Ok(None),
            Input::Key(key) => match picker.key(key) {
                Picked::Left => return Ok(None),
                Picked::Value(value) => return Ok(Some(value)),
                Picked::Changed | Picked::Nothing => {}
            },
            Input::Paste(_) | Input::Redraw => {}
        }
    }
}
