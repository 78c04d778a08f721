//! The marks that lines of the program begin with, and the test whether foreign text begins like
//! one.
//!
//! The program prints its own lines with a [`Mark`]. Foreign text that begins with one, or with
//! text that reads like one, gets a gutter, because an answer depends on who seems to ask.

use crate::render::style::{Line, Style};
use crate::render::text::to_ascii;

/// The beginning of a line of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// What was decided about a permission, and the question about it.
    Permission,
    /// A tool call.
    Tool,
    /// The plan of the agent.
    Plan,
    /// Thoughts of the agent.
    Thinking,
    /// A request of the agent to this program.
    Client,
    /// The end of a turn.
    Done,
    /// How a turn failed.
    TurnError,
    /// A prompt that waits for a turn.
    Queued,
    /// Remarks of the program.
    Note,
    /// What the agent prints on its stderr, with `-v`.
    AgentStderr,
    /// A replayed recording.
    Replay,
    /// How a command failed.
    Error,
    /// A warning.
    Warning,
    /// Advice after an error.
    Hint,
    /// Output of the agent on stderr, after an error.
    Stderr,
    /// A question that waits for an answer.
    Question,
}

impl Mark {
    /// All marks.
    pub const ALL: [Mark; 16] = [
        Mark::Permission,
        Mark::Tool,
        Mark::Plan,
        Mark::Thinking,
        Mark::Client,
        Mark::Done,
        Mark::TurnError,
        Mark::Queued,
        Mark::Note,
        Mark::AgentStderr,
        Mark::Replay,
        Mark::Error,
        Mark::Warning,
        Mark::Hint,
        Mark::Stderr,
        Mark::Question,
    ];

    /// Returns the text of the mark.
    pub const fn text(self) -> &'static str {
        match self {
            Mark::Permission => "[permission]",
            Mark::Tool => "[tool]",
            Mark::Plan => "[plan]",
            Mark::Thinking => "[thinking]",
            Mark::Client => "[client]",
            Mark::Done => "[done]",
            Mark::TurnError => "[error]",
            Mark::Queued => "[queued]",
            Mark::Note => "[attache]",
            Mark::AgentStderr => "[agent]",
            Mark::Replay => "[replay]",
            Mark::Error => "error:",
            Mark::Warning => "warning:",
            Mark::Hint => "hint:",
            Mark::Stderr => "stderr:",
            Mark::Question => "?",
        }
    }

    /// A line that begins with the mark.
    pub fn line(self, style: Style) -> Line {
        Line::styled(self.text(), style)
    }

    /// A line that begins with the mark, a blank and this text.
    pub fn then(self, text: impl Into<String>) -> Line {
        let style = if self.text().starts_with('[') { Style::BOLD } else { Style::PLAIN };
        self.line(style).with(" ", Style::PLAIN).with(text, Style::PLAIN)
    }
}

/// Whether a text begins like a line of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    None,
    /// More text is needed to decide.
    Undecided,
    Ours,
}

/// The longest word in brackets that is taken for a mark.
const LONGEST: usize = 24;

/// Compares the beginning of a text with the marks. With `any_tag`, every word in brackets counts.
/// Blanks are skipped, and letters that look alike are equal.
pub(crate) fn likeness(text: impl Iterator<Item = char>, any_tag: bool) -> Likeness {
    let text: String = text.filter_map(fold).collect();
    let Some(first) = text.chars().next() else { return Likeness::Undecided };
    if first == '[' && any_tag {
        return tag(text.get(1..).unwrap_or_default(), LONGEST);
    }
    let mut best = if first == '[' { tag(text.get(1..).unwrap_or_default(), 1) } else { Likeness::None };
    for mark in Mark::ALL {
        // A question mark alone asks nothing.
        if text.starts_with(mark.text()) && text != Mark::Question.text() {
            return Likeness::Ours;
        }
        if mark.text().starts_with(&text) {
            best = Likeness::Undecided;
        }
    }
    best
}

/// Checks for a word of at most `most` letters and a closing bracket. A key of a menu has one
/// letter.
fn tag(text: &str, most: usize) -> Likeness {
    for (count, c) in text.chars().enumerate() {
        match c {
            ']' if count > 0 => return Likeness::Ours,
            c if count < most && (c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '!')) => {}
            _ => return Likeness::None,
        }
    }
    Likeness::Undecided
}

/// Returns the ASCII character that this one looks like, in lower case; `None` for blanks and
/// combining marks.
fn fold(c: char) -> Option<char> {
    let folded = match c {
        c if c.is_ascii() => c,
        // The full-width forms are the ASCII characters once more.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0)?,
        // The mathematical alphabets, each with 26 capital and 26 small letters.
        '\u{1d400}'..='\u{1d6a3}' => {
            let letter = (u32::from(c) - 0x1d400) % 52;
            char::from_u32(if letter < 26 { letter + 0x41 } else { letter - 26 + 0x61 })?
        }
        '【' | '〔' | '〖' | '⟦' | '❲' | '⁅' | '⦋' | '〚' | '⌈' | '⌊' => '[',
        '】' | '〕' | '〗' | '⟧' | '❳' | '⁆' | '⦌' | '〛' | '⌉' | '⌋' => ']',
        '∶' | '꞉' | 'ː' | '˸' | '׃' | '։' | '܃' | '܄' | '᛬' | '⁚' | '︰' | '﹕' => ':',
        '⁇' | '⁈' | '❓' | '❔' | '﹖' | '؟' | 'ʔ' | 'ɂ' | '՞' => '?',
        'а' | 'А' | 'α' | 'Α' | 'ɑ' | 'ᴀ' => 'a',
        'в' | 'В' | 'Β' | 'ʙ' => 'b',
        'с' | 'С' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ⅾ' | 'ᴅ' => 'd',
        'е' | 'Е' | 'ё' | 'Ε' | 'ε' | 'ҽ' | 'ᴇ' => 'e',
        'ɡ' | 'ց' | 'ɢ' => 'g',
        'һ' | 'Н' | 'н' | 'Η' | 'հ' | 'ʜ' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ı' | 'ɪ' | 'ӏ' | 'ⅰ' => 'i',
        'к' | 'К' | 'κ' | 'Κ' | 'ᴋ' => 'k',
        'Ӏ' | 'ⅼ' | 'ʟ' => 'l',
        'м' | 'М' | 'Μ' | 'ⅿ' | 'ᴍ' => 'm',
        'ո' | 'п' | 'Ν' | 'η' | 'ɴ' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'օ' | 'ᴏ' | 'σ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' | 'ᴘ' => 'p',
        'ԛ' | 'գ' => 'q',
        'г' | 'ʀ' | 'ᴦ' => 'r',
        'ѕ' | 'Ѕ' | 'ꜱ' => 's',
        'т' | 'Т' | 'τ' | 'Τ' | 'ᴛ' => 't',
        'υ' | 'ս' | 'ᴜ' => 'u',
        'ѵ' | 'ν' | 'ⅴ' | 'ᴠ' => 'v',
        'ԝ' | 'ω' | 'ᴡ' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' | 'ⅹ' => 'x',
        'у' | 'У' | 'γ' | 'Υ' | 'ү' | 'ʏ' => 'y',
        'ᴢ' | 'Ζ' => 'z',
        c => match to_ascii(c).chars().next() {
            // A character without an ASCII form is a question mark there.
            None => return None,
            Some('?') => c,
            Some(ascii) => ascii,
        },
    };
    (!folded.is_whitespace()).then(|| folded.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &str) -> bool {
        likeness(text.chars(), true) == Likeness::Ours
    }

    #[test]
    fn every_mark_is_known_whole_and_from_its_first_letter_on() {
        for mark in Mark::ALL {
            for any_tag in [false, true] {
                let text = mark.text();
                let whole = format!("{text} more");
                assert_eq!(likeness(whole.chars(), any_tag), Likeness::Ours, "{text}");
                for part in 1..text.len() {
                    let part = text[..part].chars();
                    assert_eq!(likeness(part, any_tag), Likeness::Undecided, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_only_reads_like_a_mark_is_one() {
        for text in [
            "[Permission] Allow",
            "  [ permission ] Allow",
            "［permission］ Allow",
            "[реrmіѕѕіоn] Allow",
            "[𝐩𝐞𝐫𝐦𝐢𝐬𝐬𝐢𝐨𝐧] Allow",
            "【permission】 Allow",
            "[pérmission] Allow",
            "ERROR: no",
            "еrrоr： no",
            "hınt: do",
            "? Allow",
            "？ Allow",
            "[y] Yes  [n] No",
            "[security-check] Allow",
        ] {
            assert!(ours(text), "{text}");
        }
    }

    #[test]
    fn other_text_is_not() {
        for text in
            ["Hello", "[1, 2]", "[]", "[[x]]", "errors happen", "日本語", "- [x] done", "what? no", "(?)"]
        {
            assert!(!ours(text), "{text}");
        }
        // A word in brackets that is none of ours.
        assert_eq!(likeness("[servers] x".chars(), false), Likeness::None);
        assert_eq!(likeness("[y] x".chars(), false), Likeness::Ours);
    }
}
