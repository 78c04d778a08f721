//! Text from strangers: made harmless, measured, wrapped.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use super::style::{Line, Span, Style};

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colours: bool,
    /// Whether the locale's characters are Unicode; if not, everything is ASCII.
    pub(crate) unicode: bool,
}

impl Look {
    /// One of two: for terminals that show everything, and for those that show ASCII.
    pub(crate) const fn pick<T: Copy>(self, unicode: T, ascii: T) -> T {
        if self.unicode { unicode } else { ascii }
    }
}

/// How many columns a character takes. Sequences count as the sum of their parts: that is never too little, and too much only
/// wraps early.
pub(crate) fn char_width(c: char) -> usize {
    match c {
        // Turns the character before it into a picture, which is one column wider in many terminals.
        '\u{fe0f}' => 1,
        _ => c.width().unwrap_or(0),
    }
}

pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// Whether a character must not reach the terminal as it is: controls, and what reorders text so that it reads as something else.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text for the screen: escape sequences and controls are taken out, line breaks stay, a tab becomes four columns at most.
pub(crate) fn clean(text: &str, look: Look) -> Cow<'_, str> {
    let harmless = |c: char| c == '\n' || (!is_unsafe(c) && (look.unicode || c.is_ascii()));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                out.push('\n');
                column = 0;
            }
            '\t' => {
                let stop = 4 - column % 4;
                out.extend(std::iter::repeat_n(' ', stop));
                column += stop;
            }
            '\x1b' => skip_escape(&mut rest),
            // The eight-bit forms of the same.
            '\u{9b}' => skip_csi(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut rest),
            c if is_unsafe(c) => {}
            c if look.unicode || c.is_ascii() => {
                out.push(c);
                column += char_width(c);
            }
            c => {
                let ascii = to_ascii(c);
                out.push_str(ascii);
                column += ascii.len();
            }
        }
    }
    Cow::Owned(out)
}

/// Text that somebody decides about: nothing is taken out, what would be invisible is shown as `^[` or `<U+202E>`.
pub(crate) fn reveal(text: &str, look: Look) -> Cow<'_, str> {
    let harmless =
        |c: char| c == '\n' || (!is_unsafe(c) && char_width(c) > 0 && (look.unicode || c.is_ascii()));
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if harmless(c) => out.push(c),
            '\t' => out.push_str("    "),
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 + 64)]),
            '\x7f' => out.push_str("^?"),
            // Accents are part of what they stand on; joiners and the like have no business in commands and addresses.
            c if look.unicode && (c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')) => out.push(c),
            c => out.push_str(&format!("<U+{:04X}>", c as u32)),
        }
    }
    Cow::Owned(out)
}

/// After ESC: skips the sequence that it begins.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            *rest = ahead;
            skip_csi(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = ahead;
            skip_string(rest);
        }
        // Designations of character sets have intermediate bytes before their last one.
        Some('\x20'..='\x2f') => {
            *rest = ahead;
            for c in rest.by_ref() {
                if !matches!(c, '\x20'..='\x2f') {
                    break;
                }
            }
        }
        Some('\x30'..='\x7e') => *rest = ahead,
        _ => {}
    }
}

fn skip_csi(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    while let Some(c) = ahead.next() {
        match c {
            '\x20'..='\x3f' => *rest = ahead.clone(),
            '\x40'..='\x7e' => {
                *rest = ahead;
                return;
            }
            // Not a sequence after all; what follows is text again.
            _ => return,
        }
    }
}

/// Skips to the end of an OSC, DCS or the like. One that does not end with its line hides no more than that line.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    while let Some(c) = ahead.next() {
        match c {
            '\n' => return,
            '\x07' | '\u{9c}' => {
                *rest = ahead;
                return;
            }
            '\x1b' => {
                let mut after = ahead.clone();
                if after.next() == Some('\\') {
                    *rest = after;
                } else {
                    *rest = ahead;
                }
                return;
            }
            _ => *rest = ahead.clone(),
        }
    }
}

fn to_ascii(c: char) -> &'static str {
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

/// Cuts text to a width; a cut shows.
pub(crate) fn cut(text: &str, columns: usize, look: Look) -> String {
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
pub(crate) fn cut_line(line: &Line, columns: usize, look: Look) -> Line {
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

/// Wraps a line at words. `first` stands before the first line, `rest` before the others; words longer than a line are broken.
pub(crate) fn wrap(line: &Line, columns: usize, first: &Line, rest: &Line) -> Vec<Line> {
    let prefix = first.width().max(rest.width());
    // A prefix that leaves no room is worth less than the text.
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

/// Where a line that begins at `start` ends, and where the next one begins.
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
        // Wide characters are mostly of scripts that break anywhere.
        let hard = if at == start { at + 1 } else { at };
        let end = blank.filter(|blank| *blank > start).unwrap_or(hard);
        let next = end + cells.get(end..).unwrap_or_default().iter().take_while(|cell| cell.c == ' ').count();
        return (end, next);
    }
    (cells.len(), cells.len())
}

/// Wraps at characters, for code and output where blanks matter.
pub(crate) fn wrap_hard(line: &Line, columns: usize, first: &Line, rest: &Line) -> Vec<Line> {
    let mut lines = vec![first.clone()];
    let mut used = first.width();
    let columns = columns.max(rest.width() + 2);
    for span in &line.spans {
        for c in span.text.chars() {
            let wide = char_width(c);
            if used + wide > columns {
                lines.push(rest.clone());
                used = rest.width();
            }
            used += wide;
            if let Some(last) = lines.last_mut() {
                last.push_char(c, span.style);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::style::plain;
    use super::*;

    const FULL: Look = Look { colours: true, unicode: true };
    const ASCII: Look = Look { colours: true, unicode: false };

    #[test]
    fn escape_sequences_and_controls_do_not_reach_the_terminal() {
        for (dirty, cleaned) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq...\x1b\\after", "after"),
            ("\x1b(Bx\x1b=y\x1bcz", "xyz"),
            ("a\u{9b}31mb\u{9d}0;t\u{9c}c", "abc"),
            ("bell\x07 back\x08space \x00nul del\x7f", "bell backspace nul del"),
            ("over\u{202e}ride", "override"),
            ("\x1b[", ""),
            ("\x1b", ""),
            ("\x1b[12\u{e9}t", "\u{e9}t"),
            ("\x1b]never ends\nnext", "\nnext"),
            ("a\tb\n\tc", "a   b\n    c"),
            ("cr\r\nlf", "cr\nlf"),
        ] {
            assert_eq!(clean(dirty, FULL), cleaned, "{dirty:?}");
            let again = clean(&clean(dirty, FULL), FULL).into_owned();
            assert_eq!(again, cleaned, "clean twice: {dirty:?}");
        }
    }

    #[test]
    fn what_is_decided_about_is_shown_with_all_its_tricks() {
        assert_eq!(reveal("rm\x1b[2K\u{202e}x\u{200b}\x7f", FULL), "rm^[[2K<U+202E>x<U+200B>^?");
        assert_eq!(reveal("plain\ntext", FULL), "plain\ntext");
        assert_eq!(reveal("e\u{301}\x07", FULL), "e\u{301}^G");
        assert_eq!(reveal("p\u{430}ypal", ASCII), "p<U+0430>ypal");
    }

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
        assert_eq!(super::super::style::marked(&lines), "a {bold|bold}\n{bold|text}\n");
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
    }
}
