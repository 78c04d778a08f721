//! Styled text, made by renderers and written by screens and channels.

use std::fmt::Write as _;

use super::filter::is_forbidden;
use super::link::Link;
use super::text::width;

/// A colour of the user's own palette, so that light and dark terminals both stay readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// The default colour.
    #[default]
    Plain,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Blue.
    Blue,
    /// Magenta.
    Magenta,
    /// Cyan.
    Cyan,
}

impl Colour {
    #[cfg(test)]
    fn name(self) -> Option<&'static str> {
        Some(match self {
            Colour::Plain => return None,
            Colour::Red => "red",
            Colour::Green => "green",
            Colour::Yellow => "yellow",
            Colour::Blue => "blue",
            Colour::Magenta => "magenta",
            Colour::Cyan => "cyan",
        })
    }

    fn code(self) -> Option<u8> {
        Some(match self {
            Colour::Plain => return None,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Blue => 34,
            Colour::Magenta => 35,
            Colour::Cyan => 36,
        })
    }
}

/// Colour and attributes of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Foreground colour.
    pub colour: Colour,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// Foreground and background swapped.
    pub reverse: bool,
    /// What the text leads to, where the terminal has links.
    pub link: Option<Link>,
}

impl Style {
    /// Default colour without attributes.
    pub const PLAIN: Style = Style {
        colour: Colour::Plain,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
        reverse: false,
        link: None,
    };
    /// The sequence that ends every style.
    pub const RESET: &str = "\x1b[m";
    /// Dim text.
    pub const DIM: Style = Style { dim: true, ..Style::PLAIN };
    /// Bold text.
    pub const BOLD: Style = Style { bold: true, ..Style::PLAIN };

    /// A colour without attributes.
    pub const fn of(colour: Colour) -> Style {
        Style { colour, ..Style::PLAIN }
    }

    /// Sets the colour.
    pub const fn colour(mut self, colour: Colour) -> Style {
        self.colour = colour;
        self
    }

    /// Makes it bold.
    pub const fn bold(mut self) -> Style {
        self.bold = true;
        self
    }

    /// Makes it dim.
    pub const fn dim(mut self) -> Style {
        self.dim = true;
        self
    }

    /// Makes it italic.
    pub const fn italic(mut self) -> Style {
        self.italic = true;
        self
    }

    /// Underlines it.
    pub const fn underline(mut self) -> Style {
        self.underline = true;
        self
    }

    /// Strikes it through.
    pub const fn strike(mut self) -> Style {
        self.strike = true;
        self
    }

    /// Swaps foreground and background.
    pub const fn reverse(mut self) -> Style {
        self.reverse = true;
        self
    }

    /// Makes it a link.
    pub const fn link(mut self, link: Option<Link>) -> Style {
        self.link = link;
        self
    }

    /// The sequence that ends a link.
    pub(crate) const END_LINK: &str = "\x1b]8;;\x1b\\";

    /// Writes the sequence that begins the link, if there is one. Returns whether it was written.
    pub(crate) fn begin_link(self, out: &mut String) -> bool {
        let Some((number, address)) = self.link.and_then(Link::target) else { return false };
        // The number joins the rows of a wrapped link.
        let _ = write!(out, "\x1b]8;id={number};{address}\x1b\\");
        true
    }

    /// Returns attributes and colour as words.
    #[cfg(test)]
    pub fn name(self) -> String {
        let flags = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (self.strike, "strike"),
            (self.reverse, "reverse"),
        ];
        let flags = flags.iter().filter(|(on, _)| *on).map(|(_, name)| *name);
        flags.chain(self.colour.name()).collect::<Vec<_>>().join(" ")
    }

    /// Writes the escape sequences. Attributes stay without colours: `NO_COLOR` is about colour
    /// only.
    pub fn write(self, colours: bool, out: &mut String) {
        let flags = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underline, 4),
            (self.reverse, 7),
            (self.strike, 9),
        ];
        let codes = flags.iter().filter(|(on, _)| *on).map(|(_, code)| *code);
        let colour = self.colour.code().filter(|_| colours);
        for code in codes.chain(colour) {
            let _ = write!(out, "\x1b[{code}m");
        }
    }
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub text: String,
    /// The style.
    pub style: Style,
}

/// One line of the screen, or a longer one before it is wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Pieces in order; neighbours differ in style.
    pub spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Line {
        Line::default()
    }

    /// A line of one piece.
    pub fn styled(text: impl Into<String>, style: Style) -> Line {
        Line::new().with(text, style)
    }

    /// Appends text and returns the line.
    pub fn with(mut self, text: impl Into<String>, style: Style) -> Line {
        self.push(text, style);
        self
    }

    /// Appends text; it joins the last piece if the style is the same.
    pub fn push(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ => self.spans.push(Span { text, style }),
        }
    }

    /// Appends a character.
    pub fn push_char(&mut self, c: char, style: Style) {
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push(c),
            _ => self.spans.push(Span { text: c.to_string(), style }),
        }
    }

    /// Appends another line.
    pub fn append(&mut self, other: &Line) {
        for span in &other.spans {
            self.push(span.text.clone(), span.style);
        }
    }

    /// Returns how many columns it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// Returns the text without styles.
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Writes the line for a terminal and resets the style. Forbidden characters are dropped here
    /// too, so that no renderer can forget it.
    pub fn write(&self, colours: bool, out: &mut String) {
        for span in &self.spans {
            let linked = span.style.begin_link(out);
            let before = out.len();
            span.style.write(colours, out);
            let styled = out.len() > before;
            out.extend(span.text.chars().filter(|c| !is_forbidden(*c)));
            if styled {
                out.push_str(Style::RESET);
            }
            if linked {
                out.push_str(Style::END_LINK);
            }
        }
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        Line::styled(text, Style::PLAIN)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::styled(text, Style::PLAIN)
    }
}

/// Returns lines with their styles as text, for snapshots: `{bold red|text}`.
#[cfg(test)]
pub fn marked(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        for Span { text, style } in &line.spans {
            let name = style.name();
            if name.is_empty() {
                out.push_str(text);
            } else {
                let _ = write!(out, "{{{name}|{text}}}");
            }
        }
        out.push('\n');
    }
    out
}

/// Returns lines as plain text, for snapshots.
pub fn plain(lines: &[Line]) -> String {
    lines.iter().map(|line| line.plain().trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leaves_no_style_behind_and_colours_can_be_left_out() {
        let line =
            Line::from("a").with("b", Style::of(Colour::Red)).with("c", Style::BOLD.colour(Colour::Blue));
        let mut out = String::new();
        line.write(true, &mut out);
        assert_eq!(out, "a\x1b[31mb\x1b[m\x1b[1m\x1b[34mc\x1b[m");
        out.clear();
        Line::from("x\x1b[2Jy\n").write(true, &mut out);
        assert_eq!(out, "x[2Jy");
        out.clear();
        line.write(false, &mut out);
        assert_eq!(out, "ab\x1b[1mc\x1b[m");
    }
}
