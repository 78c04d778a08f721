//! Positions in texts, in the encoding that client and agent negotiated.

use attache::wire::v1::{Position, PositionEncodingKind, Range};

/// The byte offset of a position; `None` if its line does not exist. A character beyond the end of
/// the line is the end of the line.
// NES-09
pub(super) fn offset(text: &str, at: &Position, encoding: PositionEncodingKind) -> Option<usize> {
    let start = line_start(text, at.line)?;
    let line = line_at(text, start);
    let wanted = at.character as usize;
    let mut units = 0;
    for (index, c) in line.char_indices() {
        if units >= wanted {
            return Some(start + index);
        }
        units += width(c, encoding);
        // Inside of a character its start is the nearest position.
        if units > wanted {
            return Some(start + index);
        }
    }
    Some(start + line.len())
}

/// The position of a byte offset.
pub(super) fn position(text: &str, offset: usize, encoding: PositionEncodingKind) -> Position {
    let before = &text[..offset.min(text.len())];
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let character: usize = before[start..].chars().map(|c| width(c, encoding)).sum();
    Position::new(small(line), small(character))
}

/// The range of a byte range.
pub(super) fn range(text: &str, bytes: std::ops::Range<usize>, encoding: PositionEncodingKind) -> Range {
    Range::new(position(text, bytes.start, encoding), position(text, bytes.end, encoding))
}

fn line_start(text: &str, line: u32) -> Option<usize> {
    if line == 0 {
        return Some(0);
    }
    text.match_indices('\n').nth(line as usize - 1).map(|(at, _)| at + 1)
}

fn line_at(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    let line = rest.split('\n').next().unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line)
}

fn width(c: char, encoding: PositionEncodingKind) -> usize {
    match encoding {
        PositionEncodingKind::Utf8 => c.len_utf8(),
        PositionEncodingKind::Utf32 => 1,
        _ => c.len_utf16(),
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PositionEncodingKind::{Utf8, Utf16, Utf32};

    const TEXT: &str = "one\r\nä😀x\n\nlast";

    #[test]
    fn characters_are_counted_in_the_agreed_units() {
        // shows NES-09, NES-10
        for (encoding, character) in [(Utf8, 6), (Utf16, 3), (Utf32, 2)] {
            let at = Position::new(1u32, character as u32);
            let byte = offset(TEXT, &at, encoding);
            assert_eq!(byte.map(|byte| &TEXT[byte..=byte]), Some("x"), "{encoding:?}");
            assert_eq!(position(TEXT, byte.unwrap_or(0), encoding), at);
        }
    }

    #[test]
    fn invalid_positions_are_clamped() {
        assert_eq!(offset(TEXT, &Position::new(0u32, 99u32), Utf16), Some(3));
        assert_eq!(offset(TEXT, &Position::new(3u32, 99u32), Utf16), Some(TEXT.len()));
        assert_eq!(offset(TEXT, &Position::new(4u32, 0u32), Utf16), None);
        // In the middle of the emoji.
        assert_eq!(
            offset(TEXT, &Position::new(1u32, 2u32), Utf16),
            offset(TEXT, &Position::new(1u32, 1u32), Utf16)
        );
    }
}
