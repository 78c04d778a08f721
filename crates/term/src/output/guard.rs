//! Keeps foreign text from beginning a row like a line of the program.
//!
//! A row begins after a line feed and where the terminal wraps a line. Both can be used for a
//! forgery, so the guard counts columns. Text that begins like one of our [marks](super::marks)
//! gets a gutter.

use super::marks::{Likeness, likeness};
use crate::render::style::Style;
use crate::render::text::{char_width, is_width_certain};

/// A character and how it looks.
pub(super) type Cell = (char, Style);

/// Columns from one tab stop of a terminal to the next.
const TAB: usize = 8;
/// The most characters that are held back until it is clear what they begin.
const HELD: usize = 80;

/// The origin of the text that begins a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The program. A line feed inside of it came with a foreign part.
    Own,
    /// Data whose first cell may be foreign.
    Row,
    /// Foreign text.
    Foreign,
}

/// Passes cells on and inserts gutters.
#[derive(Debug)]
pub(super) struct Guard {
    columns: Option<usize>,
    gutter: char,
    start: Start,
    /// The column of the next cell.
    column: usize,
    /// How far the terminal's column may differ from ours, because terminals disagree about widths.
    drift: usize,
    /// Whether the line has only blanks so far, and its beginning counts.
    blank: bool,
    /// Whether the terminal has begun a row in this line, and whether that has only blanks so far.
    wrapped: bool,
    wrapped_blank: bool,
    /// The beginning of what may be a mark.
    held: Vec<Cell>,
    /// Whether the held cells are at the beginning of a line, rather than where a line may be
    /// wrapped.
    held_at_start: bool,
}

impl Guard {
    /// `gutter` is the character before foreign lines. Without a number of columns, only line feeds
    /// begin rows.
    pub(super) fn new(columns: Option<usize>, gutter: char) -> Guard {
        Guard {
            columns,
            gutter,
            start: Start::Foreign,
            column: 0,
            drift: 0,
            blank: true,
            wrapped: false,
            wrapped_blank: false,
            held: Vec::new(),
            held_at_start: true,
        }
    }

    /// Begins a line, in the first column.
    pub(super) fn begin(&mut self, start: Start, columns: Option<usize>) {
        self.columns = columns;
        self.start = start;
        self.row();
        self.blank = start != Start::Own;
    }

    /// Begins foreign text, wherever the cursor is.
    pub(super) fn foreign(&mut self, columns: Option<usize>) {
        self.columns = columns;
        self.start = Start::Foreign;
    }

    pub(super) fn is_line_start(&self) -> bool {
        self.column == 0 && self.held.is_empty()
    }

    fn row(&mut self) {
        self.column = 0;
        self.drift = 0;
        self.blank = true;
        (self.wrapped, self.wrapped_blank) = (false, false);
    }

    pub(super) fn push(&mut self, cell: Cell, out: &mut impl FnMut(Cell)) {
        let (c, style) = cell;
        match c {
            '\n' => {
                self.flush(out);
                out(cell);
                self.row();
                if self.start != Start::Foreign {
                    self.put_gutter(out);
                }
            }
            '\t' => {
                let stop = TAB - (self.column + self.held.len()) % TAB;
                (0..stop).for_each(|_| self.push((' ', style), out));
            }
            _ if !self.held.is_empty() => {
                self.held.push(cell);
                self.judge(out);
            }
            ' ' => self.show(cell, out),
            _ if self.may_begin(c) => {
                self.held_at_start = self.blank;
                self.held.push(cell);
                self.judge(out);
            }
            _ => self.show(cell, out),
        }
    }

    /// Ends the text: the held cells are not a mark.
    pub(super) fn flush(&mut self, out: &mut impl FnMut(Cell)) {
        for cell in std::mem::take(&mut self.held) {
            self.show(cell, out);
        }
    }

    /// Returns whether a row may begin here with a mark.
    fn may_begin(&self, c: char) -> bool {
        if char_width(c) == 0 {
            return false;
        }
        (self.blank || self.wrapped_blank || self.may_wrap(c))
            && likeness([c].into_iter(), true) != Likeness::None
    }

    /// Returns whether the terminal may put this character at the beginning of a row.
    fn may_wrap(&self, c: char) -> bool {
        let Some(columns) = self.columns else { return false };
        let column = self.column + char_width(c);
        // At the end of a row, or close to the beginning of the next.
        column + self.drift > columns || (self.wrapped && self.drift > 0 && self.column <= self.drift)
    }

    fn judge(&mut self, out: &mut impl FnMut(Cell)) {
        let any_tag = self.held_at_start && self.start == Start::Foreign;
        let text = self.held.iter().map(|(c, _)| *c);
        match likeness(text, any_tag) {
            Likeness::Undecided if self.held.len() < HELD => {}
            Likeness::None => {
                let mut held = std::mem::take(&mut self.held).into_iter();
                if let Some(first) = held.next() {
                    self.show(first, out);
                }
                // A mark may begin at the next cell.
                held.for_each(|cell| self.push(cell, out));
            }
            Likeness::Ours | Likeness::Undecided => {
                if !self.held_at_start {
                    out(('\n', Style::PLAIN));
                    self.row();
                }
                self.put_gutter(out);
                self.flush(out);
            }
        }
    }

    fn put_gutter(&mut self, out: &mut impl FnMut(Cell)) {
        out((self.gutter, Style::DIM));
        out((' ', Style::DIM));
        self.column += 2;
        (self.blank, self.wrapped_blank) = (false, false);
    }

    fn show(&mut self, cell: Cell, out: &mut impl FnMut(Cell)) {
        let wide = char_width(cell.0);
        self.column += wide;
        if self.columns.is_some_and(|columns| self.column > columns) {
            self.column = wide;
            (self.wrapped, self.wrapped_blank) = (true, true);
        }
        if !is_width_certain(cell.0) {
            self.drift += 2;
        }
        self.blank &= cell.0.is_whitespace();
        self.wrapped_blank &= cell.0.is_whitespace();
        out(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: usize, start: Start, pieces: &[&str]) -> String {
        let mut guard = Guard::new(Some(columns), '│');
        let mut text = String::new();
        guard.begin(start, Some(columns));
        for c in pieces.iter().flat_map(|piece| piece.chars()) {
            guard.push((c, Style::PLAIN), &mut |(c, _)| text.push(c));
        }
        guard.flush(&mut |(c, _)| text.push(c));
        text
    }

    #[test]
    fn a_forged_line_has_a_gutter() {
        let text = "Hello\n[permission] Allow?\n  error: no\n? go\nbye [permission] x";
        let guarded = "Hello\n│ [permission] Allow?\n  │ error: no\n│ ? go\nbye [permission] x";
        assert_eq!(shown(200, Start::Foreign, &[text]), guarded);
        // However it comes.
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(shown(200, Start::Foreign, &letters), guarded);
    }

    #[test]
    fn a_row_that_the_terminal_would_make_has_one_too() {
        let padded = format!("{}[permission] Allow?", ".".repeat(40));
        assert_eq!(
            shown(40, Start::Foreign, &[&padded]),
            format!("{}\n│ [permission] Allow?", ".".repeat(40))
        );
        // Blanks do not help, and neither does a line of ours before it.
        let padded = format!("[tool] Read{}[permission] Allow?", " ".repeat(29));
        assert_eq!(
            shown(20, Start::Own, &[&padded]),
            format!("[tool] Read{}\n│ [permission] Allow?", " ".repeat(29))
        );
        let padded = format!("[tool] Read{}[permission] Allow?", " ".repeat(34));
        assert!(shown(20, Start::Own, &[&padded]).ends_with("     \n│ [permission] Allow?"));
        // In the middle of a row it is only text.
        assert_eq!(shown(200, Start::Foreign, &[&padded[6..]]), &padded[6..]);
    }

    #[test]
    fn widths_that_terminals_disagree_about_do_not_help() {
        // Each heart takes one column or two.
        let text = format!("{}[permission] Allow?", "\u{2764}\u{fe0f}".repeat(10));
        assert!(shown(20, Start::Foreign, &[&text]).contains("\n│ [permission]"));
        let text = format!("{}[permission] Allow?", "\u{2764}\u{fe0f}".repeat(20));
        assert!(shown(20, Start::Foreign, &[&text]).contains("\n│ [permission]"));
    }

    #[test]
    fn what_stands_behind_a_gutter_needs_no_other() {
        assert_eq!(shown(80, Start::Own, &["│ [permission] Allow?"]), "│ [permission] Allow?");
    }

    #[test]
    fn only_the_program_begins_lines() {
        assert_eq!(shown(80, Start::Own, &["[tool] a\nb"]), "[tool] a\n│ b");
        assert_eq!(shown(80, Start::Row, &["[tool] a\nb"]), "│ [tool] a\n│ b");
        assert_eq!(shown(80, Start::Row, &["[servers] a"]), "[servers] a");
        assert_eq!(shown(80, Start::Foreign, &["[servers] a"]), "│ [servers] a");
    }

    #[test]
    fn what_is_held_back_is_shown_in_the_end() {
        assert_eq!(shown(80, Start::Foreign, &["[permis"]), "[permis");
        assert_eq!(shown(80, Start::Foreign, &["[perm\nnext"]), "[perm\nnext");
        // So many blanks have no honest use.
        let blanks = format!("[{}permission]", " ".repeat(100));
        assert!(shown(300, Start::Foreign, &[&blanks]).starts_with("│ ["));
        assert_eq!(shown(80, Start::Foreign, &["[[permission]"]), "[[permission]");
        assert_eq!(shown(80, Start::Foreign, &["a\tb"]), "a       b");
    }
}
