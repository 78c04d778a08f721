//! Replaces a piece of text that a model may remember inexactly.
//!
//! The text is searched for as it is, then line by line without trailing whitespace, then without
//! indentation and with plain quotation marks; the new text gets the indentation of the old one. An
//! ambiguous match is an error.

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Whether to replace every occurrence.
    pub(crate) all: bool,
}

/// The new text, the line of each replacement in it, and whether any match was inexact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Patched {
    pub(crate) text: String,
    pub(crate) lines: Vec<u32>,
    pub(crate) inexact: bool,
}

/// The least bytes of a new text that is recognized within a line.
const MIN_APPLIED: usize = 4;

const ALREADY_APPLIED: &str = "`new` is in the file already, around `old`: the edit is already applied; if it shall be made once more, give more of the lines around it";

/// Applies all replacements, one after the other, or none.
pub(crate) fn apply(text: &str, replacements: &[Replacement]) -> Result<Patched, String> {
    let mut patched = Patched { text: text.to_owned(), ..Patched::default() };
    // Models write line feeds only; the file's own line ends are put back.
    let crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    if crlf {
        patched.text = text.replace("\r\n", "\n");
    }
    for (number, replacement) in (1..).zip(replacements) {
        one(&mut patched, replacement).map_err(|why| match replacements.len() {
            1 => why,
            _ => format!("edit {number}: {why}; none of the edits was made"),
        })?;
    }
    if crlf {
        patched.text = patched.text.replace('\n', "\r\n");
    }
    Ok(patched)
}

fn one(patched: &mut Patched, replacement: &Replacement) -> Result<(), String> {
    let (old, new) = (without_cr(&replacement.old), without_cr(&replacement.new));
    if old.is_empty() {
        append(patched, &new);
        return Ok(());
    }
    if old == new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let text = &patched.text;
    let found: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    // An edit that keeps the old text matches its own result.
    let open: Vec<usize> = found.iter().copied().filter(|at| !is_applied(text, &old, &new, *at)).collect();
    match (found.as_slice(), open.as_slice()) {
        ([], _) => {}
        (_, []) => return Err(ALREADY_APPLIED.to_owned()),
        ([_], [at]) => {
            patched.lines.push(line_of(text, *at));
            patched.text = format!("{}{new}{}", &text[..*at], &text[at + old.len()..]);
            return Ok(());
        }
        (_, [first, ..]) if replacement.all => {
            patched.lines.push(line_of(text, *first));
            patched.text = replace_at(text, &open, old.len(), &new);
            return Ok(());
        }
        (many, _) => return Err(not_unique(many.iter().map(|at| line_of(text, *at)))),
    }
    for matches in [same_but_ends as LineMatch, same_but_indent] {
        let found = find_lines(text, &old, matches);
        match found.as_slice() {
            [] => {}
            [(start, end)]
                if find_lines(text, &new, matches).iter().any(|(from, to)| from <= start && end <= to) =>
            {
                return Err(ALREADY_APPLIED.to_owned());
            }
            [(start, end)] => {
                let new = reindent(&text[*start..*end], &old, &new);
                patched.lines.push(line_of(text, *start));
                patched.text = format!("{}{new}{}", &text[..*start], &text[*end..]);
                patched.inexact = true;
                return Ok(());
            }
            many => return Err(not_unique(many.iter().map(|(at, _)| line_of(text, *at)))),
        }
    }
    let is_within =
        new.trim().len() >= MIN_APPLIED && text.match_indices(&new).any(|(at, _)| is_whole(text, at, &new));
    if is_within || !find_lines(text, &new, same_but_indent).is_empty() {
        return Err("`old` is not in the file and `new` is: the edit is already applied".to_owned());
    }
    Err(format!(
        "`old` is not in the file{}; read the file again and give the text exactly",
        nearest(text, &old)
    ))
}

/// Whether the match of `old` at `at` is a part of `new`, which is in the text already.
fn is_applied(text: &str, old: &str, new: &str, at: usize) -> bool {
    new.match_indices(old).any(|(offset, _)| {
        let start = at.checked_sub(offset);
        start.is_some_and(|start| text[start..].starts_with(new) && is_whole(text, start, new))
    })
}

/// Whether the part of the text at `at` ends where words end.
fn is_whole(text: &str, at: usize, part: &str) -> bool {
    let is_word = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    let (before, after) = (text[..at].chars().next_back(), text[at + part.len()..].chars().next());
    let cuts_before = is_word(before) && is_word(part.chars().next());
    let cuts_after = is_word(after) && is_word(part.chars().next_back());
    !cuts_before && !cuts_after
}

fn replace_at(text: &str, places: &[usize], length: usize, new: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for at in places {
        replaced.push_str(&text[end..*at]);
        replaced.push_str(new);
        end = at + length;
    }
    replaced + &text[end..]
}

/// Adds text at the end of the file, on a line of its own.
fn append(patched: &mut Patched, new: &str) {
    if !patched.text.is_empty() && !patched.text.ends_with('\n') {
        patched.text.push('\n');
    }
    patched.lines.push(line_of(&patched.text, patched.text.len()));
    patched.text.push_str(new);
}

fn without_cr(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn line_of(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX)
}

fn not_unique(lines: impl Iterator<Item = u32>) -> String {
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    format!(
        "`old` is in the file {} times (lines {}); give more of the lines around it, or set `all`",
        lines.len(),
        lines.join(", ")
    )
}

type LineMatch = fn(&str, &str) -> bool;

fn same_but_ends(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end()
}

fn same_but_indent(a: &str, b: &str) -> bool {
    a.trim().chars().map(plain).eq(b.trim().chars().map(plain))
}

/// Typographic marks that models write or replace.
fn plain(char: char) -> char {
    match char {
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '–' | '—' => '-',
        '\u{a0}' => ' ',
        char => char,
    }
}

/// The byte ranges of whole lines that match, without the end of the last line.
fn find_lines(text: &str, old: &str, matches: LineMatch) -> Vec<(usize, usize)> {
    let wanted: Vec<&str> = old.trim_matches('\n').split('\n').collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        lines.push((start, line));
        start += line.len() + 1;
    }
    lines
        .windows(wanted.len())
        .filter(|window| window.iter().zip(&wanted).all(|((_, line), wanted)| matches(line, wanted)))
        .filter_map(|window| {
            let ((start, _), (last, line)) = (window.first()?, window.last()?);
            Some((*start, last + line.len()))
        })
        .collect()
}

/// The new text with the indentation of the file instead of the model's.
fn reindent(found: &str, old: &str, new: &str) -> String {
    let indent = |text: &str| -> String {
        let line = text.split('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.chars().take_while(|char| char.is_whitespace()).collect()
    };
    let (has, had) = (indent(found), indent(old));
    let new = new.trim_matches('\n');
    if has == had {
        return new.to_owned();
    }
    let line = |line: &str| match line.strip_prefix(had.as_str()) {
        _ if line.trim().is_empty() => String::new(),
        Some(rest) => format!("{has}{rest}"),
        None => format!("{has}{}", line.trim_start()),
    };
    new.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A hint for the model: the first line that matches the first line of `old`.
fn nearest(text: &str, old: &str) -> String {
    let Some(wanted) = old.lines().find(|line| !line.trim().is_empty()) else { return String::new() };
    match text.lines().position(|line| same_but_indent(line, wanted)) {
        Some(at) => format!(" (its first line is like line {}, the following lines differ)", at + 1),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn replace(old: &str, new: &str) -> Replacement {
        Replacement { old: old.to_owned(), new: new.to_owned(), all: false }
    }

    fn patch(text: &str, old: &str, new: &str) -> Result<String, String> {
        apply(text, &[replace(old, new)]).map(|patched| patched.text)
    }

    #[test]
    fn a_unique_match_is_replaced() {
        let patched = apply("a\nb\nc\n", &[replace("b", "x\ny"), replace("c", "z")]).unwrap();
        assert_eq!(patched, Patched { text: "a\nx\ny\nz\n".into(), lines: vec![2, 4], inexact: false });
        let all = Replacement { all: true, ..replace("a", "b") };
        assert_eq!(apply("a a\na", &[all]).unwrap().text, "b b\nb");
    }

    #[test]
    fn an_edit_without_a_unique_match_changes_nothing() {
        let why = patch("a\nb\na\n", "a", "x").unwrap_err();
        assert!(why.contains("2 times (lines 1, 3)"), "{why}");
        let why = apply("a\nb\n", &[replace("a", "x"), replace("q", "y")]).unwrap_err();
        assert!(why.contains("edit 2") && why.contains("none of the edits"), "{why}");
        assert!(patch("a", "a", "a").is_err());
        assert!(patch("x\ny\n", "a", "x").unwrap_err().contains("already applied"));
        let why = patch("fn a() {\n  1\n}\n", "fn a() {\n  2\n}", "x").unwrap_err();
        assert!(why.contains("like line 1"), "{why}");
        // Inexact matches are not guessed at either.
        assert!(patch("  a\n    a\n", "\ta", "b").unwrap_err().contains("2 times"));
    }

    #[test]
    fn an_edit_that_keeps_the_old_text_is_made_once() {
        for (text, old, new) in [
            ("a\nc\n", "a", "a\nb"),
            ("a\nc\n", "c", "b\nc"),
            ("x = f(1);\n", "f(1)", "g(f(1))"),
            ("use a;\n\nfn b() {}\n", "use a;\n", "use a;\nuse c;\n"),
            ("  a \n  c\n", "a\nc", "a\nb\nc"),
            ("    one();\n    two();\n", "two();", "two();\nthree();"),
        ] {
            let once = patch(text, old, new).unwrap();
            assert_ne!(once, text);
            let why = patch(&once, old, new).unwrap_err();
            assert!(why.contains("already applied"), "{once}: {why}");
        }
        // A longer word is another word.
        assert_eq!(patch("foobarbaz", "foo", "foobar").unwrap(), "foobarbarbaz");
        // The other places are still changed.
        let all = Replacement { all: true, ..replace("a()", "b(a())") };
        assert_eq!(apply("b(a()); a();", std::slice::from_ref(&all)).unwrap().text, "b(a()); b(a());");
        assert!(apply("b(a()); b(a());", &[all]).unwrap_err().contains("already applied"));
        // More of the lines around it make it a new edit.
        assert_eq!(patch("a\nb\nc\n", "b\nc", "b\nb\nc").unwrap(), "a\nb\nb\nc\n");
    }

    #[test]
    fn an_applied_edit_within_a_line_is_recognized() {
        let why = patch("let total = count + 1;\n", "count - 1", "count + 1").unwrap_err();
        assert!(why.contains("already applied"), "{why}");
        let why = patch("let total = recount + 1;\n", "count - 1", "count + 1").unwrap_err();
        assert!(!why.contains("already applied"), "{why}");
        assert!(!patch("abc\n", "xyz", "b").unwrap_err().contains("already applied"));
    }

    #[test]
    fn an_empty_old_text_appends() {
        assert_eq!(patch("a", "", "b\n").unwrap(), "a\nb\n");
        assert_eq!(patch("a\n", "", "b").unwrap(), "a\nb");
        assert_eq!(apply("", &[replace("", "b")]).unwrap().lines, [1]);
    }

    #[test]
    fn blanks_and_indentation_may_differ() {
        assert_eq!(patch("let a = 1;  \nlet b;\n", "let a = 1;\nlet b;", "let c;").unwrap(), "let c;\n");
        let text = "impl A {\n    fn a() {\n        one();\n    }\n}\n";
        let new = patch(text, "fn a() {\n    one();\n}", "fn a() {\n    two();\n\n    three();\n}").unwrap();
        assert_eq!(new, "impl A {\n    fn a() {\n        two();\n\n        three();\n    }\n}\n");
        assert_eq!(patch("say(\"it’s\")\n", "say(\"it's\")", "shout()").unwrap(), "shout()\n");
    }

    #[test]
    fn line_ends_of_the_file_stay() {
        assert_eq!(patch("a\r\nb\r\n", "a\nb", "a\nc").unwrap(), "a\r\nc\r\n");
        assert_eq!(patch("a\nb", "b", "c\r\nd").unwrap(), "a\nc\nd");
    }
}
