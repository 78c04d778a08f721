//! Front matter of Markdown files: lines of `key: value` between two lines of `---`.

/// The lines of the front matter, and the rest of the text.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let rest = text.strip_prefix("---\n");
    rest.and_then(|rest| rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))))
        .unwrap_or(("", text))
}

/// A value of the front matter, in one line. A value that is continued on indented lines is joined.
pub(crate) fn value(head: &str, key: &str) -> Option<String> {
    let mut lines = head.lines();
    let (_, first) = lines.find_map(|line| line.split_once(':').filter(|(name, _)| *name == key))?;
    let first = match first.trim() {
        // Marks of YAML for text on the lines below.
        ">" | ">-" | ">+" | "|" | "|-" | "|+" => "",
        first => first,
    };
    let more = lines.take_while(|line| line.starts_with([' ', '\t']) || line.is_empty());
    let words: Vec<&str> = std::iter::once(first).chain(more).flat_map(str::split_whitespace).collect();
    let value = words.join(" ");
    let value = value.trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        let (head, body) =
            split("---\nname: a\ndescription: >-\n  two\n  lines\nhint: \"x: y\"\n---\nbody\n---\n");
        assert_eq!(body, "body\n---\n");
        assert_eq!(value(head, "name").as_deref(), Some("a"));
        assert_eq!(value(head, "description").as_deref(), Some("two lines"));
        assert_eq!(value(head, "hint").as_deref(), Some("x: y"));
        assert_eq!(value(head, "two"), None);
        assert_eq!(split("no head"), ("", "no head"));
        assert_eq!(split("---\nname: a\n---"), ("name: a", ""));
    }
}
