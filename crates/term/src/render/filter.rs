//! The filter between foreign text and a terminal.
//!
//! Agents, models, files and servers write most of what this program shows. None of their
//! characters may command the terminal, reorder text or hide it. [`Filter`] drops whole escape
//! sequences, also when they arrive in pieces. [`reveal`] drops nothing, for text that the user
//! decides about. [`line()`] is for lines of several parts, in which a sequence of one part must
//! not swallow the next.

use std::borrow::Cow;

use super::text::{Look, char_width, to_ascii};

/// Combining marks on one character. More than this only cover the lines above and below.
const MARKS: usize = 6;
/// Columns from one tab stop of [`clean`] to the next.
const TAB: usize = 4;

/// The effect of a character on a terminal or its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It is shown.
    Visible,
    LineBreak,
    CarriageReturn,
    Tab,
    /// ESC, which begins a sequence.
    Escape,
    /// The eight-bit form of `ESC [`.
    Csi,
    /// The eight-bit forms of `ESC P`, `ESC X`, `ESC ]`, `ESC ^` and `ESC _`.
    StringStart,
    /// Any other control character.
    Control,
    /// It reorders, hides or separates text and is never seen itself.
    Invisible,
    /// It joins its neighbours, in some scripts and in emoji.
    Joiner,
    /// It selects a variant of the character before it.
    Selector,
    /// It is drawn onto the character before it.
    Mark,
}

fn class(c: char) -> Class {
    match c {
        ' '..='~' => Class::Visible,
        '\n' | '\u{2028}' | '\u{2029}' => Class::LineBreak,
        '\r' => Class::CarriageReturn,
        '\t' => Class::Tab,
        '\x1b' => Class::Escape,
        '\u{9b}' => Class::Csi,
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Class::StringStart,
        c if c.is_control() => Class::Control,
        '\u{200c}' | '\u{200d}' => Class::Joiner,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            Class::Selector
        }
        c if is_invisible(c) => Class::Invisible,
        c if char_width(c) == 0 => Class::Mark,
        _ => Class::Visible,
    }
}

/// Bidirectional controls, blanks without width, tags, fillers, annotations and noncharacters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Returns whether a character must never reach a terminal.
pub fn is_forbidden(c: char) -> bool {
    !matches!(class(c), Class::Visible | Class::Joiner | Class::Selector | Class::Mark)
}

/// The position inside of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// After a carriage return.
    Return,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte.
    Intermediate,
    Csi,
    /// Inside of an OSC, DCS, SOS, PM or APC.
    String,
    /// After an ESC inside of one.
    StringEscape,
}

/// Filters text that comes in pieces. Its output has no control character except line feed and tab.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    state: State,
    /// The last character of the output.
    last: Option<char>,
    marks: usize,
}

impl Filter {
    /// Filters the next piece.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(char)) {
        for c in text.chars() {
            self.char(c, out);
        }
    }

    /// Ends the text. What follows begins outside of any sequence.
    pub fn finish(&mut self, out: &mut impl FnMut(char)) {
        if self.state == State::Return {
            self.show('\n', out);
        }
        *self = Filter::default();
    }

    fn char(&mut self, c: char, out: &mut impl FnMut(char)) {
        match self.state {
            State::Text => self.text(c, out),
            State::Return => {
                // Some terminals would go back to the first column and write over what stands
                // there.
                self.show('\n', out);
                self.state = State::Text;
                if c != '\n' {
                    self.text(c, out);
                }
            }
            State::Escape => match c {
                '[' => self.state = State::Csi,
                ']' | 'P' | 'X' | '^' | '_' => self.state = State::String,
                '\x20'..='\x2f' => self.state = State::Intermediate,
                '\x30'..='\x7e' => self.state = State::Text,
                _ => self.again(c, out),
            },
            State::Intermediate => match c {
                '\x20'..='\x2f' => {}
                '\x30'..='\x7e' => self.state = State::Text,
                _ => self.again(c, out),
            },
            State::Csi => match c {
                '\x20'..='\x3f' => {}
                '\x40'..='\x7e' => self.state = State::Text,
                // Not a sequence after all.
                _ => self.again(c, out),
            },
            State::String => match c {
                // A string that does not end hides no more than the rest of its line.
                '\n' | '\r' => self.again(c, out),
                '\x07' | '\u{9c}' | '\x18' | '\x1a' => self.state = State::Text,
                '\x1b' => self.state = State::StringEscape,
                _ => {}
            },
            State::StringEscape => match c {
                '\\' => self.state = State::Text,
                // The string is over, and another sequence begins.
                _ => {
                    self.state = State::Escape;
                    self.char(c, out);
                }
            },
        }
    }

    /// Reads a character as text that a broken sequence has left.
    fn again(&mut self, c: char, out: &mut impl FnMut(char)) {
        self.state = State::Text;
        self.text(c, out);
    }

    fn text(&mut self, c: char, out: &mut impl FnMut(char)) {
        match class(c) {
            Class::Visible | Class::Tab => self.show(c, out),
            Class::LineBreak => self.show('\n', out),
            Class::CarriageReturn => self.state = State::Return,
            Class::Escape => self.state = State::Escape,
            Class::Csi => self.state = State::Csi,
            Class::StringStart => self.state = State::String,
            Class::Control | Class::Invisible => {}
            Class::Joiner | Class::Selector | Class::Mark => {
                if self.can_follow(c) {
                    self.marks += 1;
                    self.last = Some(c);
                    out(c);
                }
            }
        }
    }

    fn show(&mut self, c: char, out: &mut impl FnMut(char)) {
        self.marks = 0;
        self.last = Some(c);
        out(c);
    }

    /// Returns whether a character without a width of its own may follow the output. At the
    /// beginning it would change the character that the program has written before it.
    fn can_follow(&self, c: char) -> bool {
        let Some(last) = self.last else { return false };
        let base = !last.is_whitespace();
        self.marks < MARKS
            && match class(c) {
                // Between ASCII letters nothing needs to be joined.
                Class::Joiner => base && !last.is_ascii() && class(last) != Class::Joiner,
                Class::Selector => base && matches!(class(last), Class::Visible | Class::Mark),
                _ => base,
            }
    }
}

/// Cleans text for the screen: removes escape sequences and controls, keeps line breaks, expands
/// tabs.
pub fn clean(text: &str, look: Look) -> Cow<'_, str> {
    let harmless = |c: char| c == '\n' || (class(c) == Class::Visible && (look.unicode || c.is_ascii()));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    let mut filter = Filter::default();
    let mut push = |c: char| match c {
        '\n' => {
            out.push('\n');
            column = 0;
        }
        '\t' => {
            let stop = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', stop));
            column += stop;
        }
        c if look.unicode || c.is_ascii() => {
            out.push(c);
            column += char_width(c);
        }
        c => {
            let ascii = to_ascii(c);
            out.push_str(ascii);
            column += ascii.len();
        }
    };
    filter.push(text, &mut push);
    filter.finish(&mut push);
    Cow::Owned(out)
}

/// Cleans foreign text as a part of one line; each run of blanks and line breaks becomes one blank.
pub fn inline(text: &str, look: Look) -> String {
    clean(text, look).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes invisible characters visible as `^[` or `<U+202E>`, for text that the user decides about.
pub fn reveal(text: &str, look: Look) -> Cow<'_, str> {
    let harmless = |c: char| c == '\n' || (class(c) == Class::Visible && (look.unicode || c.is_ascii()));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut marks = 0;
    for c in text.chars() {
        match c {
            c if harmless(c) => {
                marks = 0;
                out.push(c);
            }
            '\t' => out.push_str(&" ".repeat(TAB)),
            // Accents belong to their letters; joiners have no use in commands and addresses.
            c if look.unicode && is_accent(c) && marks < MARKS && !out.ends_with([' ', '\n']) => {
                marks += 1;
                out.push(c);
            }
            c => out.push_str(&named(c)),
        }
    }
    Cow::Owned(out)
}

fn is_accent(c: char) -> bool {
    class(c) == Class::Mark && (c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}'))
}

/// Names an invisible character in visible ones.
fn named(c: char) -> String {
    match c {
        '\0'..='\x1f' => ['^', char::from(c as u8 + 64)].iter().collect(),
        '\x7f' => "^?".to_owned(),
        c => format!("<U+{:04X}>", u32::from(c)),
    }
}

/// Cleans a line of several parts: removes colours and names other controls, because dropping a
/// sequence could drop the next part.
pub fn line(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| matches!(class(c), Class::Visible | Class::Tab) || c == '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut marks = Filter::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if let Some(after) = after_colour(c, rest) {
            rest = after;
            continue;
        }
        match class(c) {
            Class::CarriageReturn if rest.starts_with('\n') => {}
            Class::CarriageReturn | Class::Escape | Class::Csi | Class::StringStart | Class::Control => {
                out.push_str(&named(c));
                marks.last = Some('^');
            }
            _ => marks.text(c, &mut |c| out.push(c)),
        }
    }
    Cow::Owned(out)
}

/// Returns the text after a sequence that sets colours, given its first character and the text
/// after that.
fn after_colour(first: char, rest: &str) -> Option<&str> {
    let rest = match first {
        '\x1b' => rest.strip_prefix('[')?,
        '\u{9b}' => rest,
        _ => return None,
    };
    rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':')).strip_prefix('m')
}

/// Escapes invisible characters of a JSON text; its value stays the same.
pub fn json(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| class(c) == Class::Visible) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut marks = 0;
    for c in text.chars() {
        match class(c) {
            Class::Visible => {
                marks = 0;
                out.push(c);
            }
            Class::Mark if marks < MARKS => {
                marks += 1;
                out.push(c);
            }
            // Between values these are blanks; inside of a text they are not allowed as they are.
            _ if matches!(c, '\t' | '\n' | '\r') => out.push(' '),
            _ => {
                let mut units = [0; 2];
                out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
