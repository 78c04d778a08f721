//! The one way to stdout and stderr: text and styles go in, bytes come out.
//!
//! On a terminal every text passes the [filter] and the [guard](super::guard), own text too. The
//! only control characters in the output are line feeds and the codes of styles. Streams that are
//! not terminals get the text unchanged.

use std::io::{self, Write as _};

use tokio::io::AsyncWriteExt as _;

use super::guard::{Cell, Guard, Start};
use super::surface::{Stream, Surface, gutter};
use crate::render::filter::{self, Filter};
use crate::render::style::{Line, Style};
use crate::render::text::{Look, clean, cut, to_ascii};

/// Goes to the first column and erases the row.
const ERASE: &str = "\r\x1b[K";
/// A buffer that one huge text has made larger than this is given back.
const KEEP: usize = 1 << 20;

/// An output stream with its unwritten bytes.
#[derive(Debug)]
pub struct Channel {
    surface: Surface,
    bytes: Vec<u8>,
    filter: Filter,
    guard: Guard,
    /// Whether the last text ended its line; used if the stream is not a terminal.
    line_start: bool,
    /// Whether foreign text has begun and not ended.
    in_foreign: bool,
}

impl Channel {
    /// A channel without output.
    pub fn new(surface: Surface) -> Channel {
        Channel {
            surface,
            bytes: Vec::new(),
            filter: Filter::default(),
            guard: Guard::new(None, gutter()),
            line_start: true,
            in_foreign: false,
        }
    }

    /// Returns the properties of the stream.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// Returns whether the next text begins a line.
    pub fn is_line_start(&self) -> bool {
        if self.surface.terminal { self.guard.is_line_start() } else { self.line_start }
    }

    /// Writes a line of the program.
    pub fn line(&mut self, line: &Line) {
        self.whole(line, Start::Own);
    }

    /// Writes a line of data, which may begin with foreign text.
    pub fn row(&mut self, line: &Line) {
        self.whole(line, Start::Row);
    }

    /// Writes any number of lines that hold only text of the program.
    pub fn own_text(&mut self, text: &str) {
        self.lines(text, |_| Start::Own);
    }

    /// Writes any number of lines. Only the first is known to begin with text of the program.
    pub fn text(&mut self, text: &str) {
        self.lines(text, |number| if number == 0 { Start::Own } else { Start::Row });
    }

    /// Writes a line of the program. Leading and trailing line feeds are empty lines; inner ones
    /// came with a foreign part.
    pub fn one_line(&mut self, text: &str) {
        let line = text.trim_start_matches('\n');
        let before = text.len() - line.len();
        let inner = line.trim_end_matches('\n');
        let after = line.len() - inner.len();
        (0..before).for_each(|_| self.line(&Line::new()));
        self.line(&Line::from(inner));
        (0..after).for_each(|_| self.line(&Line::new()));
    }

    fn lines(&mut self, text: &str, start: impl Fn(usize) -> Start) {
        for (number, line) in text.split_inclusive('\n').enumerate() {
            match line.strip_suffix('\n') {
                Some(line) => self.whole(&Line::from(line), start(number)),
                None => {
                    self.end_foreign();
                    self.styled(&Line::from(line), start(number));
                    self.line_start = false;
                }
            }
        }
    }

    /// Writes the beginning of a line of the program, for example a prompt.
    pub fn part(&mut self, line: &Line) {
        self.end_foreign();
        self.styled(line, Start::Own);
        self.line_start = false;
    }

    /// Writes the next piece of a foreign text.
    pub fn foreign(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.surface.terminal {
            self.bytes.extend_from_slice(text.as_bytes());
            self.line_start = text.ends_with('\n');
            return;
        }
        self.guard.foreign(self.surface.columns());
        self.in_foreign = true;
        let Channel { surface, bytes, filter, guard, .. } = self;
        let mut painter = Painter::new(*surface, bytes);
        filter.push(text, &mut |c| painter.guarded(guard, c, Style::PLAIN));
        painter.switch(Style::PLAIN);
    }

    /// Ends a foreign text: writes what was held back and forgets an open sequence.
    pub fn end_foreign(&mut self) {
        if !std::mem::take(&mut self.in_foreign) {
            return;
        }
        let Channel { surface, bytes, filter, guard, .. } = self;
        let mut painter = Painter::new(*surface, bytes);
        filter.finish(&mut |c| painter.guarded(guard, c, Style::PLAIN));
        guard.flush(&mut |cell| painter.cell(cell));
        painter.switch(Style::PLAIN);
    }

    /// Notes that the user has answered a prompt, which ended its line.
    pub fn answered(&mut self) {
        self.guard.begin(Start::Foreign, None);
        self.line_start = true;
    }

    /// Ends the line, if one is open.
    pub fn end_line(&mut self) {
        self.end_foreign();
        if !self.is_line_start() {
            self.whole(&Line::new(), Start::Own);
        }
    }

    /// Writes a line of JSON. On a terminal, characters that JSON allows and a terminal must not
    /// get are escaped; the value stays the same.
    pub fn json(&mut self, line: &[u8]) {
        self.end_foreign();
        if self.surface.terminal {
            let text = String::from_utf8_lossy(line);
            self.bytes.extend_from_slice(filter::json(&text).as_bytes());
        } else {
            self.bytes.extend_from_slice(line);
        }
        self.bytes.push(b'\n');
    }

    fn whole(&mut self, line: &Line, start: Start) {
        self.end_foreign();
        self.styled(line, start);
        self.bytes.push(b'\n');
        self.answered();
    }

    fn styled(&mut self, line: &Line, start: Start) {
        if !self.surface.terminal {
            self.bytes.extend(line.spans.iter().flat_map(|span| span.text.bytes()));
            return;
        }
        let columns = self.surface.columns();
        if self.guard.is_line_start() {
            self.guard.begin(start, columns);
        }
        let Channel { surface, bytes, guard, .. } = self;
        let mut painter = Painter::new(*surface, bytes);
        for span in &line.spans {
            filter::line(&span.text).chars().for_each(|c| painter.guarded(guard, c, span.style));
        }
        guard.flush(&mut |cell| painter.cell(cell));
        painter.switch(Style::PLAIN);
    }

    /// Replaces the last row of the terminal; see [`super::status`].
    pub(super) fn replace(&mut self, line: &Line) {
        let columns = self.surface.columns().unwrap_or(80);
        let text = filter::line(&line.plain()).replace(['\n', '\t'], " ");
        let text = cut(&text, columns.saturating_sub(1), self.surface.look());
        self.bytes.extend_from_slice(ERASE.as_bytes());
        let mut painter = Painter::new(self.surface, &mut self.bytes);
        let text = clean(&text, self.surface.look());
        text.chars().for_each(|c| painter.cell((c, Style::PLAIN)));
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Moves the unwritten bytes to `into`.
    pub(super) fn take_bytes(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.bytes);
    }

    /// Drops the unwritten bytes.
    pub fn forget(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        }
    }

    /// Writes the bytes to the stream and waits until they are written.
    pub fn write(&mut self) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let written = match self.surface.stream {
            Stream::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&self.bytes).and_then(|()| stdout.flush())
            }
            Stream::Stderr => io::stderr().lock().write_all(&self.bytes),
        };
        self.clear();
        written
    }
}

/// Stdout and stderr of a command that runs a turn.
#[derive(Debug)]
pub struct Written {
    /// Standard output.
    pub stdout: Channel,
    /// Standard error.
    pub stderr: Channel,
    device: Option<tokio::io::Stdout>,
    /// The error after which stdout is not written any more.
    lost: Option<io::Error>,
}

impl Written {
    /// Channels without output.
    pub fn new(stdout: Surface, stderr: Surface) -> Written {
        Written { stdout: Channel::new(stdout), stderr: Channel::new(stderr), device: None, lost: None }
    }

    /// Returns whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.stdout.is_empty() && self.stderr.is_empty()
    }

    /// Writes both streams and waits for a slow reader of stdout. After a failure every later call
    /// fails too, so that the caller sees it at the end.
    pub async fn flush(&mut self) -> io::Result<()> {
        if !self.stdout.is_empty() && self.lost.is_none() {
            let device = self.device.get_or_insert_with(tokio::io::stdout);
            let written = match device.write_all(&self.stdout.bytes).await {
                Ok(()) => device.flush().await,
                Err(error) => Err(error),
            };
            self.lost = written.err();
        }
        self.stdout.clear();
        let _ = self.stderr.write();
        match &self.lost {
            Some(error) => Err(same(error)),
            None => Ok(()),
        }
    }
}

/// Copies an error.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Turns cells into bytes.
struct Painter<'a> {
    look: Look,
    style: Style,
    /// Whether a link is open.
    linked: bool,
    bytes: &'a mut Vec<u8>,
}

impl Painter<'_> {
    fn new(surface: Surface, bytes: &mut Vec<u8>) -> Painter<'_> {
        Painter { look: surface.look(), style: Style::PLAIN, linked: false, bytes }
    }

    /// Passes a character through the guard, as the terminal can show it.
    fn guarded(&mut self, guard: &mut Guard, c: char, style: Style) {
        if self.look.unicode || c.is_ascii() {
            guard.push((c, style), &mut |cell| self.cell(cell));
        } else {
            to_ascii(c).chars().for_each(|c| guard.push((c, style), &mut |cell| self.cell(cell)));
        }
    }

    fn cell(&mut self, (c, style): Cell) {
        if c == '\n' {
            self.switch(Style::PLAIN);
            self.bytes.push(b'\n');
            return;
        }
        // The filter has run already; this is the last place where a character can be stopped.
        if filter::is_forbidden(c) {
            return;
        }
        self.switch(style);
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn switch(&mut self, style: Style) {
        if self.look.colours && style != self.style {
            if self.style != Style::PLAIN {
                self.bytes.extend_from_slice(Style::RESET.as_bytes());
            }
            let mut codes = String::new();
            if std::mem::take(&mut self.linked) {
                codes.push_str(Style::END_LINK);
            }
            self.linked = style.begin_link(&mut codes);
            style.write(true, &mut codes);
            self.bytes.extend_from_slice(codes.as_bytes());
            self.style = style;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(colours: bool) -> Channel {
        Channel::new(Surface { stream: Stream::Stdout, terminal: true, colours })
    }

    fn written(channel: &Channel) -> String {
        String::from_utf8_lossy(&channel.bytes).into_owned()
    }

    #[test]
    fn text_is_cleaned_and_styles_are_ours() {
        let mut channel = terminal(true);
        channel.line(&Line::styled("[tool]", Style::BOLD).with(" a\x1b[2J\u{202e}b", Style::PLAIN));
        assert_eq!(written(&channel), "\x1b[1m[tool]\x1b[m a^[[2Jb\n");
        let mut channel = terminal(false);
        channel.line(&Line::styled("[tool]", Style::BOLD).with(" a\nb", Style::PLAIN));
        assert_eq!(written(&channel), format!("[tool] a\n{} b\n", gutter()));
    }

    #[test]
    fn what_is_no_terminal_gets_text_as_it_is() {
        let mut channel = Channel::new(Surface { stream: Stream::Stdout, terminal: false, colours: false });
        channel.line(&Line::styled("[tool]", Style::BOLD).with(" a\x1b[2J\nb", Style::PLAIN));
        channel.foreign("\x1b]0;t\x07[permission] x");
        assert!(!channel.is_line_start());
        channel.end_line();
        channel.json(b"{\"a\":\"\xc2\x9b\"}");
        assert_eq!(written(&channel), "[tool] a\x1b[2J\nb\n\x1b]0;t\x07[permission] x\n{\"a\":\"\u{9b}\"}\n");
    }

    #[test]
    fn a_sequence_of_foreign_text_ends_with_it() {
        let mut channel = terminal(false);
        channel.foreign("before \x1b]0;title");
        channel.end_line();
        channel.line(&Line::from("ours"));
        channel.foreign("after\r");
        channel.foreign("\n[permis");
        channel.foreign("sion] x");
        channel.end_line();
        assert_eq!(written(&channel), format!("before \nours\nafter\n{} [permission] x\n", gutter()));
    }

    #[test]
    fn lines_of_one_text_are_not_all_ours() {
        let mut channel = terminal(false);
        channel.text("head\n[permission] x\ny");
        assert_eq!(written(&channel), format!("head\n{} [permission] x\ny", gutter()));
        let mut channel = terminal(false);
        channel.one_line("\nhead\n[servers]\n\n");
        assert_eq!(written(&channel), format!("\nhead\n{} [servers]\n\n\n", gutter()));
        let mut channel = terminal(false);
        channel.own_text("[permission] x\n[tool] y\n");
        assert_eq!(written(&channel), "[permission] x\n[tool] y\n");
    }
}
