//! The properties of stdout and stderr: terminal or not, colours, size, characters.

use std::io::{self, IsTerminal as _};

use crate::render::text::Look;

/// An output stream of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The properties of an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surface {
    /// The stream.
    pub stream: Stream,
    /// Whether the stream is a terminal. If not, text is written unchanged.
    pub terminal: bool,
    /// Colours and emphasis; only ever on a terminal.
    pub colours: bool,
}

impl Surface {
    /// A stream without colours.
    pub fn plain(stream: Stream) -> Surface {
        let terminal = match stream {
            Stream::Stdout => io::stdout().is_terminal(),
            Stream::Stderr => io::stderr().is_terminal(),
        };
        Surface { stream, terminal, colours: false }
    }

    /// Allows colours on a terminal.
    pub fn colours(self, allowed: bool) -> Surface {
        Surface { colours: allowed && self.terminal, ..self }
    }

    /// Returns the capabilities of the terminal.
    pub fn look(self) -> Look {
        Look { colours: self.colours, unicode: shows_unicode() }
    }

    /// Returns columns and rows of the terminal, if it reports them.
    pub fn size(self) -> Option<(usize, usize)> {
        if !self.terminal {
            return None;
        }
        let (columns, rows) = size(self.stream)?;
        (columns > 0 && rows > 0).then_some((columns, rows))
    }

    /// Returns the columns of the terminal, if it reports them.
    pub fn columns(self) -> Option<usize> {
        self.size().map(|(columns, _)| columns)
    }
}

/// Returns the character before foreign lines.
pub(crate) fn gutter() -> char {
    if shows_unicode() { '│' } else { '|' }
}

#[cfg(unix)]
fn size(stream: Stream) -> Option<(usize, usize)> {
    let size = match stream {
        Stream::Stdout => rustix::termios::tcgetwinsize(io::stdout()),
        Stream::Stderr => rustix::termios::tcgetwinsize(io::stderr()),
    };
    size.ok().map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(not(unix))]
fn size(_: Stream) -> Option<(usize, usize)> {
    crossterm::terminal::size().ok().map(|(columns, rows)| (usize::from(columns), usize::from(rows)))
}

/// Without a locale, a terminal is taken to show Unicode, as nearly all do.
fn shows_unicode() -> bool {
    locale_is_unicode().unwrap_or(true)
}

/// Returns whether the locale uses Unicode; `None` if no locale is set.
pub fn locale_is_unicode() -> Option<bool> {
    if cfg!(windows) {
        return Some(true);
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"))?;
    let locale = locale.to_ascii_lowercase();
    Some(locale.contains("utf-8") || locale.contains("utf8"))
}
