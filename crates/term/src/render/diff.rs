//! Diffs of files: changes in context, coloured, with line numbers.

use std::time::{Duration, Instant};

use similar::{Algorithm, Change, ChangeTag, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::highlight::Highlighter;
use super::style::{Colour, Line, Style};
use super::text::{Look, reveal, wrap_hard};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// After this time the rest counts as rewritten: a diff with so many changes helps no reader.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The changes between two texts, as groups of lines with their context.
struct Diff<'a> {
    hunks: Vec<Vec<Change<&'a str>>>,
    added: usize,
    removed: usize,
}

impl<'a> Diff<'a> {
    fn new(old: &'a str, new: &'a str) -> Diff<'a> {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let deadline = Instant::now() + TIMEOUT;
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
        let changed = |op: &&DiffOp| !matches!(op, DiffOp::Equal { .. });
        let added = ops.iter().filter(changed).map(|op| op.new_range().len()).sum();
        let removed = ops.iter().filter(changed).map(|op| op.old_range().len()).sum();
        let hunks = group_diff_ops(ops, CONTEXT)
            .iter()
            .map(|ops| ops.iter().flat_map(|op| op.iter_changes(&old, &new)).collect())
            .collect();
        Diff { hunks, added, removed }
    }
}

/// Returns the number of a line: in the old file if it was removed, else in the new one.
fn number(row: &Change<&str>) -> usize {
    let index = if row.tag() == ChangeTag::Delete { row.old_index() } else { row.new_index() };
    index.unwrap_or_default() + 1
}

/// Renders the change of a file: a head with the counts, then the rows, at most `most` of them.
pub fn render(
    path: &str,
    old: Option<&str>,
    new: &str,
    columns: usize,
    most: Option<usize>,
    look: Look,
) -> Vec<Line> {
    let diff = Diff::new(old.unwrap_or_default(), new);
    let mut head = Line::styled(reveal(path, look), Style::BOLD);
    if old.is_none() {
        head.push(" (new)", Style::DIM);
    }
    head.push(format!("  +{}", diff.added), Style::of(Colour::Green));
    head.push(format!(" -{}", diff.removed), Style::of(Colour::Red));
    let mut lines = vec![head];
    let last = diff.hunks.iter().flatten().map(number).max().unwrap_or(0);
    let digits = last.to_string().len();
    let language = path.rsplit_once('.').map_or("", |(_, end)| end);
    let total = diff.hunks.iter().map(Vec::len).sum::<usize>();
    let shown = most.unwrap_or(total);
    let mut left = shown;
    for (at, hunk) in diff.hunks.iter().enumerate() {
        if at > 0 && left > 0 {
            lines.push(Line::styled(format!("{} {}", " ".repeat(digits), look.pick("⋮", ":")), Style::DIM));
        }
        for row in hunk.iter().take(left) {
            lines.extend(render_row(row, digits, language, columns, look));
        }
        left = left.saturating_sub(hunk.len());
    }
    if total > shown {
        let more = format!("{} {} more lines (/diff shows all)", look.pick("…", "..."), total - shown);
        lines.push(Line::styled(more, Style::DIM));
    }
    lines
}

fn render_row(row: &Change<&str>, digits: usize, language: &str, columns: usize, look: Look) -> Vec<Line> {
    let text = reveal(row.value(), look);
    let (mark, style) = match row.tag() {
        ChangeTag::Equal => (' ', Style::DIM),
        ChangeTag::Delete => ('-', Style::of(Colour::Red)),
        ChangeTag::Insert => ('+', Style::of(Colour::Green)),
    };
    let number = number(row);
    let first = Line::styled(format!("{number:>digits$} "), Style::DIM).with(format!("{mark} "), style);
    let rest = Line::from(" ".repeat(digits + 3));
    // Only unchanged lines have the colours of their language: elsewhere colour means the change.
    let line = match row.tag() {
        ChangeTag::Equal => Highlighter::new(language).line(&text),
        _ => Line::styled(text, style),
    };
    wrap_hard(&line, columns, &first, &rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::{marked, plain};

    const FULL: Look = Look { colours: true, unicode: true };

    #[test]
    fn the_diff_is_the_shortest() {
        let count = |old: &str, new: &str| {
            let change = Diff::new(old, new);
            (change.added, change.removed)
        };
        assert_eq!(count("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"), (2, 3));
        assert_eq!(count("", "a\nb\n"), (2, 0));
        assert_eq!(count("a\nb\n", ""), (0, 2));
        assert_eq!(count("same\n", "same\n"), (0, 0));
    }

    #[test]
    fn a_change_is_shown_with_context_and_numbers() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 5\n", "line five\n").replace("line 18\n", "");
        assert_eq!(
            plain(&render("src/a.txt", Some(&old), &new, 40, None, FULL)),
            "src/a.txt  +1 -2\n 2   line 2\n 3   line 3\n 4   line 4\n 5 - line 5\n 5 + line five\n 6   line 6\n 7   line 7\n 8   line 8\n   ⋮\n\
             15   line 15\n16   line 16\n17   line 17\n18 - line 18\n18   line 19\n19   line 20\n"
        );
    }

    #[test]
    fn colours_tell_and_long_changes_are_cut() {
        let lines = render("x", None, "a\x1b[2J\nb\nc\n", 40, Some(2), FULL);
        assert_eq!(
            marked(&lines),
            "{bold|x}{dim| (new)}{green|  +3}{red| -0}\n{dim|1 }{green|+ a^[[2J}\n{dim|2 }{green|+ b}\n{dim|… 1 more lines (/diff shows all)}\n"
        );
    }

    #[test]
    fn long_lines_wrap_under_their_text() {
        assert_eq!(
            plain(&render("x", None, "abcdefgh\n", 8, None, FULL)),
            "x (new)  +1 -0\n1 + abcd\n    efgh\n"
        );
    }
}
