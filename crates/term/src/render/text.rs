//! Measures, cuts and wraps text.

use unicode_width::UnicodeWidthChar;

pub use super::filter::{clean, inline, reveal};
use super::style::{Line, Span, Style};

/// The capabilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether colours are shown.
    pub colours: bool,
    /// Whether the locale's characters are Unicode; if not, everything is ASCII.
    pub unicode: bool,
}

impl Look {
    /// Chooses between a Unicode and an ASCII form.
    pub const fn pick<T: Copy>(self, unicode: T, ascii: T) -> T {
        if self.unicode { unicode } else { ascii }
    }
}

/// Returns the columns of a character. A sequence counts as the sum of its parts: never too little,
/// and too much only wraps early.
pub fn char_width(c: char) -> usize {
    match c {
        // Turns the previous character into an emoji, which is wider in many terminals.
        '\u{fe0f}' => 1,
        _ => c.width().unwrap_or(0),
    }
}

/// Returns whether terminals agree about the width of a character.
pub fn is_width_certain(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{24f}' | '\u{3041}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
        && c != '\u{ad}'
}

/// Returns how many columns a text takes.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// Returns the closest ASCII text.
pub fn to_ascii(c: char) -> &'static str {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2500}' | '\u{2501}' => "-",
        '\u{2026}' => "...",
        '\u{2022}' | '\u{00b7}' | '\u{25cf}' | '\u{25aa}' => "*",
        '\u{00a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' => " ",
        '\u{2190}' => "<-",
        '\u{2192}' => "->",
        '\u{21d2}' => "=>",
        '\u{2264}' => "<=",
        '\u{2265}' => ">=",
        '\u{2260}' => "!=",
        '\u{00d7}' => "x",
        '\u{2502}' | '\u{2503}' => "|",
        '\u{2713}' | '\u{2714}' | '\u{2705}' => "+",
        '\u{2717}' | '\u{2718}' | '\u{274c}' => "x",
        'ä' => "ae",
        'ö' => "oe",
        'ü' => "ue",
        'Ä' => "Ae",
        'Ö' => "Oe",
        'Ü' => "Ue",
        'ß' => "ss",
        'à' | 'á' | 'â' | 'ã' | 'å' => "a",
        'è' | 'é' | 'ê' | 'ë' => "e",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'ò' | 'ó' | 'ô' | 'õ' => "o",
        'ù' | 'ú' | 'û' => "u",
        'ç' => "c",
        'ñ' => "n",
        'É' | 'È' => "E",
        c if char_width(c) == 0 => "",
        c if char_width(c) == 2 => "??",
        _ => "?",
    }
}

/// Cuts text to a width and marks the cut.
pub fn cut(text: &str, columns: usize, look: Look) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = look.pick("…", "...");
    let room = columns.saturating_sub(width(ellipsis));
    let mut used = 0;
    let kept = text.char_indices().find(|(_, c)| {
        used += char_width(*c);
        used > room
    });
    let kept = kept.map_or(text.len(), |(at, _)| at);
    let mut out = text.get(..kept).unwrap_or_default().to_owned();
    if columns >= width(ellipsis) {
        out.push_str(ellipsis);
    }
    out
}

/// Cuts a line to a width.
pub fn cut_line(line: &Line, columns: usize, look: Look) -> Line {
    if line.width() <= columns {
        return line.clone();
    }
    let mut out = Line::new();
    let mut room = columns;
    for Span { text, style } in &line.spans {
        let piece = if width(text) < room { text.clone() } else { cut(&format!("{text}  "), room, look) };
        room = room.saturating_sub(width(&piece));
        out.push(piece, *style);
        if room == 0 {
            break;
        }
    }
    out
}

/// A character with its style and whether a line may break before it.
struct Cell {
    c: char,
    style: Style,
    width: usize,
}

/// Wraps a line at words. `first` and `rest` are the prefixes; words longer than a line are broken.
pub fn wrap(line: &Line, columns: usize, first: &Line, rest: &Line) -> Vec<Line> {
    let prefix = first.width().max(rest.width());
    // A prefix that leaves no room is dropped.
    let keep = prefix + 4 <= columns || columns == 0;
    let room = if keep { columns.saturating_sub(prefix).max(1) } else { columns.max(1) };
    let cells: Vec<Cell> = line
        .spans
        .iter()
        .flat_map(|span| span.text.chars().map(|c| Cell { c, style: span.style, width: char_width(c) }))
        .collect();
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let (end, next) = break_at(&cells, start, room);
        let mut out = match (keep, lines.is_empty()) {
            (false, _) => Line::new(),
            (true, true) => first.clone(),
            (true, false) => rest.clone(),
        };
        for cell in cells.get(start..end).unwrap_or_default() {
            out.push_char(cell.c, cell.style);
        }
        lines.push(out);
        if next >= cells.len() {
            return lines;
        }
        start = next;
    }
}

/// Returns the end of the line that begins at `start`, and the start of the next.
fn break_at(cells: &[Cell], start: usize, room: usize) -> (usize, usize) {
    let mut used = 0;
    let mut blank = None;
    for (at, cell) in cells.iter().enumerate().skip(start) {
        if cell.c == ' ' {
            blank = Some(at);
        }
        used += cell.width;
        if used <= room {
            continue;
        }
        // Most scripts with wide characters break anywhere.
        let hard = if at == start { at + 1 } else { at };
        let end = blank.filter(|blank| *blank > start).unwrap_or(hard);
        let next = end + cells.get(end..).unwrap_or_default().iter().take_while(|cell| cell.c == ' ').count();
        return (end, next);
    }
    (cells.len(), cells.len())
}

/// Wraps code and command output. No character is lost; a row ends after a blank if one is near its
/// end, else anywhere.
pub fn wrap_hard(line: &Line, columns: usize, first: &Line, rest: &Line) -> Vec<Line> {
    let columns = columns.max(rest.width() + 2);
    let cells: Vec<(char, Style)> =
        line.spans.iter().flat_map(|span| span.text.chars().map(|c| (c, span.style))).collect();
    let mut lines = Vec::new();
    let mut left = cells.as_slice();
    loop {
        let mut row = if lines.is_empty() { first.clone() } else { rest.clone() };
        let room = columns.saturating_sub(row.width());
        let mut used = 0;
        let fits = left.iter().position(|(c, _)| {
            used += char_width(*c);
            used > room
        });
        // A row takes at least one character, so that this ends.
        let end = match fits {
            None => left.len(),
            Some(fits) => {
                let blank = left.get(..fits).and_then(|row| row.iter().rposition(|(c, _)| *c == ' '));
                // Not at the indent: a row with little more than blanks is worse than a broken
                // word.
                blank.map(|at| at + 1).filter(|at| *at > fits / 2).unwrap_or(fits).max(1)
            }
        };
        let (now, later) = left.split_at(end);
        now.iter().for_each(|(c, style)| row.push_char(*c, *style));
        lines.push(row);
        left = later;
        if left.is_empty() {
            return lines;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::plain;

    const FULL: Look = Look { colours: true, unicode: true };
    const ASCII: Look = Look { colours: true, unicode: false };

    #[test]
    fn without_unicode_everything_is_ascii() {
        assert_eq!(clean("“naïve” – 日本 ✓ é…", ASCII), "\"naive\" - ???? + e...");
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        let wrapped = |text: &str, columns| {
            plain(&wrap(&Line::from(text), columns, &Line::from("- "), &Line::from("  ")))
        };
        assert_eq!(wrapped("one two three", 9), "- one two\n  three\n");
        assert_eq!(wrapped("abcdefghij k", 7), "- abcde\n  fghij\n  k\n");
        assert_eq!(wrapped("", 7), "-\n");
        assert_eq!(wrapped("日本語日本語", 8), "- 日本語\n  日本語\n");
        // Too narrow for the prefix.
        assert_eq!(wrapped("abc def", 4), "abc\ndef\n");
    }

    #[test]
    fn styles_survive_wrapping() {
        let line = Line::from("a ").with("bold text", Style::BOLD);
        let lines = wrap(&line, 7, &Line::new(), &Line::new());
        assert_eq!(crate::render::style::marked(&lines), "a {bold|bold}\n{bold|text}\n");
    }

    #[test]
    fn cuts_show() {
        assert_eq!(cut("abcdef", 4, FULL), "abc…");
        assert_eq!(cut("abcdef", 4, ASCII), "a...");
        assert_eq!(cut("日本語", 4, FULL), "日…");
        assert_eq!(cut("abc", 3, FULL), "abc");
        let line = Line::from("ab").with("cdef", Style::BOLD);
        assert_eq!(cut_line(&line, 4, FULL).plain(), "abc…");
        assert_eq!(cut_line(&line, 6, FULL).plain(), "abcdef");
        assert!(cut_line(&line, 2, FULL).width() <= 2);
    }

    #[test]
    fn code_breaks_where_it_must() {
        let lines = wrap_hard(&Line::from("ab  cd"), 5, &Line::from("  "), &Line::from("> "));
        assert_eq!(plain(&lines), "  ab\n>  cd\n");
        let wrapped = |text: &str, columns| {
            plain(&wrap_hard(&Line::from(text), columns, &Line::new(), &Line::from("  ")))
        };
        assert_eq!(wrapped("let value = compute(input);", 20), "let value =\n  compute(input);\n");
        // The indent alone is no row, and a long word is broken.
        assert_eq!(wrapped("    abcdefghijkl", 10), "    abcdef\n  ghijkl\n");
        assert_eq!(wrapped("日本語日本語", 5), "日本\n  語\n  日\n  本\n  語\n");
    }
}
