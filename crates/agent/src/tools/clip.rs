//! Texts that are too long for a conversation.

/// The beginning of a text, at most `most` bytes, cut between characters; and whether something is missing.
pub(crate) fn clip(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

/// A long text without its middle: what failed is told at the end, what was run at the beginning.
pub(crate) fn head_and_tail(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, _) = clip(text, most / 3);
    let mut start = text.len() - (most - head.len());
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let left_out = start - head.len();
    format!("{head}\n[… {left_out} bytes left out …]\n{}", &text[start..])
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
}
