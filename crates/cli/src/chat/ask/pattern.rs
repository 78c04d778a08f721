//! The `pattern` of a text field, an ECMAScript regular expression from the agent's schema.
//!
//! Matching takes linear time, because the pattern comes from the agent. Syntax that Rust does not
//! have or reads differently is not checked: the agent checks again, and a good answer must not be
//! refused here.

// ELIC-12

use std::iter::Peekable;
use std::str::Chars;

use regex::RegexBuilder;

/// Bytes that a compiled pattern may take.
const MAX_SIZE: usize = 1 << 20;

/// Returns whether a text matches a pattern; `None` if the pattern cannot be checked here.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    let regex = RegexBuilder::new(&translate(pattern)?).size_limit(MAX_SIZE).nest_limit(50).build().ok()?;
    Some(regex.is_match(text))
}

/// Translates an ECMAScript pattern; `None` if it uses syntax that Rust lacks or reads differently.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(&mut chars, &mut out)?,
            // Rust nests classes and has set operations; ECMAScript takes these characters
            // literally.
            '[' if in_class => out.push_str("\\["),
            '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && chars.peek() == Some(&'-') => return None,
            '(' if !in_class && chars.peek() == Some(&'?') => {
                chars.next();
                if chars.next() != Some(':') {
                    return None;
                }
                out.push_str("(?:");
            }
            // ECMAScript takes `{,2}` literally.
            '{' if !in_class && chars.peek() == Some(&',') => return None,
            '[' => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // An empty class matches nothing there, and is an error here.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            c => {
                in_class &= c != ']';
                out.push(c);
            }
        }
    }
    Some(out)
}

/// Translates the rest of an escape. Classes are those of ECMAScript, where digits and letters are
/// ASCII.
fn escape(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    const SPACE: &str =
        "\\t-\\r \\u{a0}\\u{1680}\\u{2000}-\\u{200a}\\u{2028}\\u{2029}\\u{202f}\\u{205f}\\u{3000}\\u{feff}";
    match chars.next()? {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str(&format!("[{SPACE}]")),
        'S' => out.push_str(&format!("[^{SPACE}]")),
        c @ ('n' | 't' | 'r') => out.extend(['\\', c]),
        // Boundaries, back references and code points.
        c if c.is_ascii_alphanumeric() => return None,
        c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn usual_patterns_are_checked() {
        for (pattern, good, bad) in [
            ("^[a-z]+$", "abc", "Abc"),
            ("^[A-Z]{2}-\\d{3,5}$", "AB-1234", "AB-12"),
            ("^(main|release/\\d+(\\.\\d+)*)$", "release/1.2.3", "release/"),
            ("^(?:a|b)?c$", "c", "dc"),
            ("b", "abc", "ac"),
            ("^[^\\s@]+@[^\\s@]+$", "a@b", "a b@c"),
            ("^\\w[\\w.-]*$", "a.b-c", "-a"),
            ("^[0-9a-fA-F]{8}$", "deadBEEF", "deadbee"),
            ("^.{0,3}$", "日本語", "abcd"),
            ("^a+?b$", "aab", "aac"),
            ("^$", "", "x"),
            ("^[-a]+$", "a-a", "b"),
            ("^\\$\\d+$", "$5", "5"),
            ("^\\d+$", "12", "\u{661}\u{662}"),
            ("^\\W+$", "é!", "a"),
            ("^[[&&a]+$", "[&a", "b"),
            ("^[\\w-]+$", "a-b", "a b"),
            ("^a\\/b\\-c$", "a/b-c", "ab"),
        ] {
            assert_eq!(matches(pattern, good), Some(true), "{pattern} {good}");
            assert_eq!(matches(pattern, bad), Some(false), "{pattern} {bad}");
        }
    }

    #[test]
    fn other_syntax_is_not_checked() {
        for pattern in [
            "^(?=a)b",
            "(a)\\1",
            "\\bword",
            "[",
            "(",
            "a)",
            "*",
            "a{2",
            "a{3,1}",
            "\\u0041",
            "a{,2}",
            "[]a]",
            "[a--b]",
            "(a){1000}{1000}",
        ] {
            assert_eq!(matches(pattern, "anything"), None, "{pattern}");
        }
    }

    #[test]
    fn every_pattern_takes_linear_time() {
        assert_eq!(matches("^(a+)+$", &format!("{}b", "a".repeat(5_000))), Some(false));
        assert_eq!(matches("^(a*)*$", "aaa"), Some(true));
    }
}
