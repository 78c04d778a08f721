//! The width of comments, which rustfmt leaves alone.

/// The longest line of a comment, in characters.
const WIDTH: usize = 100;

/// Finds lines of comments that are too long and could be shorter. Tables, code blocks and long
/// addresses cannot be wrapped.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut in_code = false;
    for (place, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            in_code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        in_code ^= comment.starts_with("```");
        if in_code || comment.starts_with('|') || line.chars().count() <= WIDTH {
            continue;
        }
        let indent = line.chars().count() - comment.chars().count();
        let fits: String = comment.chars().take(WIDTH.saturating_sub(indent)).collect();
        if fits.contains(' ') {
            problems.push(format!("{path}:{}: a comment of over {WIDTH} columns; wrap it", place + 1));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_long_comments_that_can_be_wrapped_are_found() {
        let words = "word ".repeat(30);
        let address = format!("https://{}", "a".repeat(120));
        let text = format!(
            "/// {words}\n/// {address}\n// | {words} |\n//! ```\n//! {words}\n//! ```\n    // {words}\n\
             let code = \"{words}\"; // short\n// short\n"
        );
        let problems = check("x.rs", &text);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("x.rs:1:") && problems[1].starts_with("x.rs:7:"), "{problems:?}");
    }
}
