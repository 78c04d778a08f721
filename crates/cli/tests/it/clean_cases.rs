//! What a hostile text can hold, and what must not be found in what a terminal gets.

use std::fmt::Write as _;

/// Columns of the terminals of these tests.
pub(crate) const COLUMNS: u16 = 100;

/// Is in every hostile text, so that a surface that shows none of it is noticed.
pub(crate) const WORD: &str = "Visible";

/// Each thing that must not reach a terminal, with a name.
pub(crate) fn cases() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, text: &str| all.push((name.to_owned(), text.to_owned()));
    for c in (0..0x20).chain([0x7f]).chain(0x80..0xa0).filter_map(char::from_u32) {
        add(&format!("control U+{:04X}", u32::from(c)), &c.to_string());
    }
    for csi in [
        "2J",
        "H",
        "3;1H",
        "1A",
        "5D",
        "K",
        "1K",
        "31m",
        "0m",
        "?25l",
        "?1049h",
        "?2004h",
        "6n",
        "c",
        ">c",
        "5n",
        "21t",
        "14t",
        "4h",
        "1;1r",
        "!p",
        "?1000h",
        "2 q",
        "8m",
        "7m",
        "38;5;1m",
        "38:2::1:2:3m",
        "99999999999C",
    ] {
        add(&format!("CSI {csi}"), &format!("\x1b[{csi}"));
        add(&format!("C1 CSI {csi}"), &format!("\u{9b}{csi}"));
    }
    for osc in [
        "0;title",
        "2;title",
        "8;;http://x.example",
        "52;c;ZXZpbA==",
        "4;1;rgb:ff/00/00",
        "10;?",
        "9;note",
        "777;notify;a;b",
        "1337;File=:AA",
    ] {
        add(&format!("OSC {osc} BEL"), &format!("\x1b]{osc}\x07"));
        add(&format!("OSC {osc} ST"), &format!("\x1b]{osc}\x1b\\"));
        add(&format!("C1 OSC {osc}"), &format!("\u{9d}{osc}\u{9c}"));
    }
    for (name, first, eight_bit) in
        [("DCS", 'P', '\u{90}'), ("SOS", 'X', '\u{98}'), ("PM", '^', '\u{9e}'), ("APC", '_', '\u{9f}')]
    {
        add(name, &format!("\x1b{first}$q\"p\x1b\\"));
        add(&format!("C1 {name}"), &format!("{eight_bit}1;2|q\u{9c}"));
    }
    for escape in [
        "c", "7", "8", "M", "D", "E", "=", ">", "(0", "(B", "#8", "%G", " F", "Z", "\x1b[2J", "N", "O", "n",
        "|",
    ] {
        add(&format!("ESC {escape:?}"), &format!("\x1b{escape}"));
    }
    for c in [0x61c, 0x200e, 0x200f]
        .into_iter()
        .chain(0x202a..=0x202e)
        .chain(0x2066..=0x2069)
        .filter_map(char::from_u32)
    {
        add(&format!("bidi U+{:04X}", u32::from(c)), &format!("a{c}b"));
    }
    let invisible = [
        0xad, 0x34f, 0x115f, 0x180e, 0x200b, 0x2060, 0x2061, 0x2064, 0x206a, 0x3164, 0xfeff, 0xffa0, 0xfff9,
        0xfffa, 0xfffb, 0x1d173, 0xe0001,
    ];
    for c in invisible.into_iter().chain(0xe0020..=0xe007f).filter_map(char::from_u32) {
        add(&format!("invisible U+{:04X}", u32::from(c)), &format!("a{c}b"));
    }
    for c in ['\u{200c}', '\u{200d}', '\u{fe01}', '\u{e0101}'] {
        add(&format!("joiner or selector U+{:04X}", u32::from(c)), &format!("a{c}{c}{c}b"));
    }
    add("line separator", "a\u{2028}b");
    add("paragraph separator", "a\u{2029}b");
    add("carriage return", "aaaa\rb");
    add("marks", &format!("z{}", "\u{301}".repeat(40)));
    add("a mark at the beginning", "\u{338}\u{338}x");
    // These end with their line only, so that they stand last.
    for first in ["\x1b]0;open", "\x1bPopen", "\x1b_open", "\u{9d}open", "\x1b[1;2", "\x1b", "\x1b]0;a\x1b"] {
        add(&format!("unfinished {first:?}"), &format!("{first}\n"));
    }
    all
}

/// The cases in texts of some dozen letters, for places that cut what they show.
pub(crate) fn parts() -> Vec<String> {
    let cases = cases();
    cases
        .chunks(8)
        .map(|chunk| {
            let text: String = chunk.iter().map(|(_, text)| format!("x{text}\n")).collect();
            format!("{WORD}{text}y")
        })
        .collect()
}

/// What reads like a line of the program, at the beginning of a line and wherever a terminal of
/// [`COLUMNS`] wraps one.
pub(crate) fn forgeries() -> String {
    let mut text = String::new();
    for line in [
        "[permission] FORGED?",
        "[Permission] FORGED?",
        " [permission] FORGED?",
        "［permission］ FORGED?",
        "[tool] FORGED",
        "[error] FORGED",
        "[attache] FORGED",
        "[done] FORGED",
        "error: FORGED",
        "hint: FORGED",
        "stderr: FORGED",
        "? FORGED (y/n) ",
        "[y] FORGED",
        "[реrmission] FORGED?",
    ] {
        let _ = write!(text, "\n{line}");
    }
    // The length of a piece has no divisor in common with the width, so that one of them begins in
    // each column.
    let piece = "[permission] FORGED....... ";
    assert_eq!(piece.len(), 27);
    let _ = write!(text, "\n{}\n", piece.repeat(100));
    text
}

/// All of it.
pub(crate) fn evil() -> String {
    let mut text = parts().concat();
    text.push_str(&forgeries());
    text
}

/// What is wrong with what a terminal got, if something is.
pub(crate) fn problem(bytes: &[u8], is_ours: fn(&str) -> bool) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(format!("not UTF-8 at byte {}", error.valid_up_to())),
    };
    let mut rest = text.char_indices();
    let mut before = None;
    let mut marks = 0;
    while let Some((at, c)) = rest.next() {
        let around = || {
            let before: Vec<char> = text[..at].chars().rev().take(40).collect();
            let around: String = before.into_iter().rev().chain(text[at..].chars().take(40)).collect();
            format!("{around:?}")
        };
        match c {
            '\x1b' => {
                let sequence: String = sequence(rest.as_str());
                if !is_ours(&sequence) {
                    return Some(format!("the sequence ESC{sequence:?} in {}", around()));
                }
                for _ in sequence.chars() {
                    rest.next();
                }
            }
            '\n' => {}
            // The terminal's own line ends, and lines that are drawn over.
            '\r' if rest.as_str().starts_with(['\n', '\r', '\x1b']) => {}
            c if is_forbidden(c) => return Some(format!("U+{:04X} in {}", u32::from(c), around())),
            '\u{200c}' | '\u{200d}' if before.is_none_or(|c: char| c.is_ascii()) => {
                return Some(format!("a joiner in {}", around()));
            }
            _ => {}
        }
        marks = if c == '\u{301}' { marks + 1 } else { 0 };
        if marks > 8 {
            return Some(format!("a heap of marks in {}", around()));
        }
        before = Some(c);
    }
    None
}

/// The rest of an escape sequence.
fn sequence(text: &str) -> String {
    let mut sequence = String::new();
    for c in text.chars() {
        sequence.push(c);
        let first = sequence.len() == 1;
        if (first && c != '[') || (!first && ('\x40'..='\x7e').contains(&c)) {
            break;
        }
    }
    sequence
}

fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// The rows of the terminal that begin like a line of the program and are foreign.
pub(crate) fn forged_rows(bytes: &[u8]) -> Vec<String> {
    let mut parser = vt100::Parser::new(6000, COLUMNS, 0);
    parser.process(bytes);
    let rows = parser.screen().rows(0, COLUMNS).collect::<Vec<_>>();
    let begins = [
        "[permission",
        "[Permission",
        "［permission",
        "[реrmission",
        "[tool] FORGED",
        "[error] FORGED",
        "[attache] FORGED",
        "[done] FORGED",
        "error: FORGED",
        "hint: FORGED",
        "stderr: FORGED",
        "? FORGED",
        "[y] FORGED",
    ];
    let is_forged = |row: &String| {
        let row = row.trim_start();
        row.contains("FORGED") && begins.iter().any(|begin| row.starts_with(begin))
            // The question about it is ours, and names it.
            && !row.starts_with("[permission] Allow ") && !row.starts_with("[permission] denied")
    };
    rows.into_iter().filter(is_forged).collect()
}
