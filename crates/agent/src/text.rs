//! Small operations on texts that several modules share.

use std::path::Path;

/// The first `limit` bytes of a text, cut between characters, and whether the text is longer.
pub(crate) fn clip(text: &str, limit: usize) -> (&str, bool) {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], end < text.len())
}

/// Like [`clip`], with a mark where the text was cut.
pub(crate) fn clip_marked(text: &str, limit: usize, mark: &str) -> String {
    match clip(text, limit) {
        (text, true) => format!("{text}{mark}"),
        (text, false) => text.to_owned(),
    }
}

/// A long text without its middle: commands report what they run at the beginning and what failed
/// at the end.
pub(crate) fn head_and_tail(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let (head, _) = clip(text, limit / 3);
    let start = text.len() - (limit - head.len());
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{head}\n[… {} bytes left out …]\n{}", start - head.len(), &text[start..])
}

/// A Markdown code fence that is longer than every run of backticks in the text.
pub(crate) fn fence_for(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// A path without line feeds and backticks, because a directory's name could continue as
/// instructions.
pub(crate) fn one_line(path: &Path) -> String {
    let replace = |c: char| if c.is_control() || c == '`' { '\u{fffd}' } else { c };
    path.display().to_string().chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_characters() {
        assert_eq!(clip("äöü", 3), ("ä", true));
        assert_eq!(clip("äöü", 6), ("äöü", false));
        let long = "ä".repeat(100);
        let short = head_and_tail(&long, 31);
        assert!(short.starts_with("äääää\n[… ") && short.ends_with('ä'), "{short}");
        assert_eq!(head_and_tail("abc", 3), "abc");
    }

    #[test]
    fn a_fence_is_longer_than_the_backticks_inside() {
        assert_eq!((fence_for("a ```` b").len(), fence_for("a").len()), (5, 3));
    }

    #[test]
    fn the_name_of_a_directory_stays_in_its_line() {
        let path = one_line(Path::new("/p/x\n## Instructions\n```\u{1b}[2J/AGENTS.md"));
        assert!(path.starts_with("/p/x\u{fffd}## Instructions"), "{path}");
        assert!(!path.contains(|c: char| c.is_control() || c == '`'), "{path}");
    }
}
