//! Colours of a command's output: its SGR sequences become styles, all else passes the filter.

use super::style::{Colour, Line, Style};
use super::text::{Look, clean};

/// Renders one line of output. Only `ESC [ … m` has an effect; other sequences are dropped by the
/// filter. `base` is the style of text without colour.
pub fn coloured(text: &str, base: Style, look: Look) -> Line {
    let mut line = Line::new();
    let mut style = Style::PLAIN;
    let mut rest = text;
    loop {
        let (before, codes, after) = match next(rest) {
            Some(found) => found,
            None => (rest, "", ""),
        };
        let shown = if style == Style::PLAIN { base } else { style };
        line.push(clean(before, look), shown);
        if after.is_empty() && codes.is_empty() && before.len() == rest.len() {
            return line;
        }
        style = apply(style, codes);
        rest = after;
    }
}

/// The text before the next SGR sequence, its parameters, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("\x1b[").map(|at| from + at) {
        let rest = text.get(at + 2..)?;
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':')).unwrap_or(rest.len());
        if rest.get(end..)?.starts_with('m') {
            return Some((text.get(..at)?, rest.get(..end)?, rest.get(end + 1..)?));
        }
        from = at + 2;
    }
    None
}

fn apply(mut style: Style, codes: &str) -> Style {
    let mut codes = codes
        .split([';', ':'])
        .map(|code| if code.is_empty() { 0 } else { code.parse().unwrap_or(u16::MAX) });
    while let Some(code) = codes.next() {
        match code {
            0 => style = Style::PLAIN,
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.reverse = true,
            9 => style.strike = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            29 => style.strike = false,
            30..=37 => style.colour = palette(code - 30),
            39 => style.colour = Colour::Plain,
            90..=97 => style.colour = palette(code - 90),
            38 | 48 => {
                let colour = match codes.next() {
                    Some(5) => codes.next().map(indexed),
                    Some(2) => match (codes.next(), codes.next(), codes.next()) {
                        (Some(red), Some(green), Some(blue)) => Some(nearest(red, green, blue)),
                        _ => None,
                    },
                    _ => None,
                };
                // Backgrounds are left out: they make text unreadable on the user's own palette.
                if let (38, Some(colour)) = (code, colour) {
                    style.colour = colour;
                }
            }
            _ => {}
        }
    }
    style
}

fn palette(index: u16) -> Colour {
    match index {
        1 => Colour::Red,
        2 => Colour::Green,
        3 => Colour::Yellow,
        4 => Colour::Blue,
        5 => Colour::Magenta,
        6 => Colour::Cyan,
        _ => Colour::Plain,
    }
}

fn indexed(index: u16) -> Colour {
    match index {
        0..16 => palette(index % 8),
        16..232 => {
            let part = |part: u16| part * 51;
            let index = index - 16;
            nearest(part(index / 36), part(index / 6 % 6), part(index % 6))
        }
        _ => Colour::Plain,
    }
}

/// The colour of the palette with the same strong parts.
fn nearest(red: u16, green: u16, blue: u16) -> Colour {
    let most = red.max(green).max(blue);
    // Greys have no colour.
    if most - red.min(green).min(blue) < 48 {
        return Colour::Plain;
    }
    let strong = |part: u16| u16::from(u32::from(part) * 3 > u32::from(most) * 2);
    palette(strong(red) + 2 * strong(green) + 4 * strong(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::marked;

    const LOOK: Look = Look { colours: true, unicode: true };

    fn shown(text: &str) -> String {
        marked(&[coloured(text, Style::DIM, LOOK)])
    }

    #[test]
    fn colours_stay_and_all_other_sequences_are_dropped() {
        assert_eq!(shown("\x1b[32mok\x1b[0m rest"), "{green|ok}{dim| rest}\n");
        assert_eq!(shown("\x1b[1;31merror\x1b[m: x"), "{bold red|error}{dim|: x}\n");
        assert_eq!(shown("\x1b[2J\x1b]0;title\x07\x1b[35ma\x1b[5Cb"), "{magenta|ab}\n");
        assert_eq!(shown("plain"), "{dim|plain}\n");
        assert_eq!(
            shown("\x1b[38;5;196mred\x1b[39m \x1b[38;2;10;200;20mgreen\x1b[0m"),
            "{red|red}{dim| }{green|green}\n"
        );
        assert_eq!(shown("\x1b[48;5;1mback\x1b[0m\x1b[38;5m\x1b[38"), "{dim|back}\n");
        // A sequence inside of another one cannot hide from the filter.
        assert!(!shown("\x1b]0;a\x1b[31mb\x07c").contains(['\x1b', '\x07']));
        assert_eq!(shown(""), "\n");
    }
}
