//! Changes of files: found, put into context, coloured, with the numbers of the lines.

use super::highlight::Highlighter;
use super::style::{Colour, Line, Style};
use super::text::{Look, reveal, wrap_hard};

/// Lines that stay around a change.
const CONTEXT: usize = 3;
/// Above this many differences the middle is taken as rewritten: nobody reads such a diff, and finding it takes for ever.
const MOST: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Same,
    Removed,
    Added,
}

/// One line of a change with its numbers in the old and in the new file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row<'a> {
    edit: Edit,
    old: usize,
    new: usize,
    text: &'a str,
}

/// A change, as stretches of rows; between two stretches lie lines that stay.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change<'a> {
    hunks: Vec<Vec<Row<'a>>>,
    added: usize,
    removed: usize,
}

/// What lies between two texts.
fn compare<'a>(old: &'a str, new: &'a str) -> Change<'a> {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&a, &b);
    let mut rows = Vec::with_capacity(edits.len());
    let (mut x, mut y) = (0, 0);
    for edit in edits {
        let text = match edit {
            Edit::Added => b.get(y),
            Edit::Same | Edit::Removed => a.get(x),
        };
        x += usize::from(edit != Edit::Added);
        y += usize::from(edit != Edit::Removed);
        rows.push(Row { edit, old: x, new: y, text: text.copied().unwrap_or_default() });
    }
    let count = |edit: Edit| rows.iter().filter(|row| row.edit == edit).count();
    let (added, removed) = (count(Edit::Added), count(Edit::Removed));
    Change { hunks: hunks(rows), added, removed }
}

/// Keeps what changed and a little around it.
fn hunks(rows: Vec<Row<'_>>) -> Vec<Vec<Row<'_>>> {
    let mut keep = vec![false; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        if row.edit != Edit::Same {
            let to = (at + CONTEXT + 1).min(rows.len());
            if let Some(near) = keep.get_mut(at.saturating_sub(CONTEXT)..to) {
                near.fill(true);
            }
        }
    }
    let mut hunks: Vec<Vec<Row<'_>>> = Vec::new();
    let mut inside = false;
    for (row, keep) in rows.into_iter().zip(keep) {
        if keep {
            match hunks.last_mut().filter(|_| inside) {
                Some(hunk) => hunk.push(row),
                None => hunks.push(vec![row]),
            }
        }
        inside = keep;
    }
    hunks
}

/// The shortest way from one list of lines to the other (Myers, 1986), after what is the same at both ends.
fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(head..).unwrap_or_default(), b.get(head..).unwrap_or_default());
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(..a.len() - tail).unwrap_or_default(), b.get(..b.len() - tail).unwrap_or_default());
    let mut all = vec![Edit::Same; head];
    match shortest(a, b) {
        Some(middle) => all.extend(middle),
        None => {
            all.extend(std::iter::repeat_n(Edit::Removed, a.len()));
            all.extend(std::iter::repeat_n(Edit::Added, b.len()));
        }
    }
    all.extend(std::iter::repeat_n(Edit::Same, tail));
    all
}

/// `None` if the two differ too much.
fn shortest(a: &[&str], b: &[&str]) -> Option<Vec<Edit>> {
    let most = (a.len() + b.len()).min(MOST);
    // How far each diagonal reaches, after 0, 1, 2… differences. Diagonal k is at k + most + 1.
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    let far = |reach: &[usize], at: usize| reach.get(at).copied().unwrap_or(0);
    for d in 0..=most {
        // Only the diagonals that can have changed are kept, which makes the trace a triangle.
        trace.push(reach.get(most + 1 - d..=most + 1 + d).unwrap_or_default().to_vec());
        for step in 0..=d {
            let at = most + 1 - d + 2 * step;
            let down = step == 0 || (step != d && far(&reach, at - 1) < far(&reach, at + 1));
            let mut x = if down { far(&reach, at + 1) } else { far(&reach, at - 1) + 1 };
            let mut y = (x + most + 1).wrapping_sub(at);
            while x < a.len() && y < b.len() && a.get(x) == b.get(y) {
                x += 1;
                y += 1;
            }
            if let Some(slot) = reach.get_mut(at) {
                *slot = x;
            }
            if x >= a.len() && y >= b.len() {
                return Some(walk_back(a.len(), b.len(), most, &trace));
            }
        }
    }
    None
}

fn walk_back(mut x: usize, mut y: usize, most: usize, trace: &[Vec<usize>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (d, reach) in trace.iter().enumerate().rev() {
        // The row of `d` starts at diagonal -d.
        let base = most + 1 - d;
        let far = |at: usize| at.checked_sub(base).and_then(|at| reach.get(at)).copied().unwrap_or(0);
        let at = x + most + 1 - y;
        let down = d > 0 && (at == base || (at != most + 1 + d && far(at - 1) < far(at + 1)));
        let (from_x, from_y) = if d == 0 {
            (0, 0)
        } else {
            let from = if down { at + 1 } else { at - 1 };
            let from_x = far(from);
            (from_x, from_x + most + 1 - from)
        };
        let (begin_x, begin_y) = match (d, down) {
            (0, _) => (0, 0),
            (_, true) => (from_x, from_y + 1),
            (_, false) => (from_x + 1, from_y),
        };
        while x > begin_x && y > begin_y {
            edits.push(Edit::Same);
            x -= 1;
            y -= 1;
        }
        if d > 0 {
            edits.push(if down { Edit::Added } else { Edit::Removed });
        }
        (x, y) = (from_x, from_y);
    }
    edits.reverse();
    edits
}

/// A change of a file as lines of the screen: a head with the counts, then the rows. With `most`, no more than that many rows.
pub fn render(
    path: &str,
    old: Option<&str>,
    new: &str,
    columns: usize,
    most: Option<usize>,
    look: Look,
) -> Vec<Line> {
    let change = compare(old.unwrap_or_default(), new);
    let mut head = Line::styled(reveal(path, look), Style::BOLD);
    if old.is_none() {
        head.push(" (new)", Style::DIM);
    }
    head.push(format!("  +{}", change.added), Style::of(Colour::Green));
    head.push(format!(" -{}", change.removed), Style::of(Colour::Red));
    let mut lines = vec![head];
    let last = change.hunks.iter().flatten().map(|row| row.old.max(row.new)).max().unwrap_or(0);
    let digits = last.to_string().len();
    let language = path.rsplit_once('.').map_or("", |(_, end)| end);
    let total = change.hunks.iter().map(Vec::len).sum::<usize>();
    let shown = most.unwrap_or(total);
    let mut left = shown;
    for (at, hunk) in change.hunks.iter().enumerate() {
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

fn render_row(row: &Row<'_>, digits: usize, language: &str, columns: usize, look: Look) -> Vec<Line> {
    let text = reveal(row.text, look);
    let (number, mark, style) = match row.edit {
        Edit::Same => (row.new, ' ', Style::DIM),
        Edit::Removed => (row.old, '-', Style::of(Colour::Red)),
        Edit::Added => (row.new, '+', Style::of(Colour::Green)),
    };
    let first = Line::styled(format!("{number:>digits$} "), Style::DIM).with(format!("{mark} "), style);
    let rest = Line::from(" ".repeat(digits + 3));
    // Only what stays has the colours of its language: in what changes, colour means the change.
    let line = match row.edit {
        Edit::Same => Highlighter::new(language).line(&text),
        _ => Line::styled(text, style),
    };
    wrap_hard(&line, columns, &first, &rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::{marked, plain};

    const FULL: Look = Look { colours: true, unicode: true };

    fn apply(old: &str, new: &str) {
        let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let (mut x, mut y) = (0, 0);
        for edit in edits(&a, &b) {
            match edit {
                Edit::Same => {
                    assert_eq!(a[x], b[y], "{old:?} -> {new:?}");
                    x += 1;
                    y += 1;
                }
                Edit::Removed => x += 1,
                Edit::Added => y += 1,
            }
        }
        assert_eq!((x, y), (a.len(), b.len()), "{old:?} -> {new:?}");
    }

    #[test]
    fn every_way_leads_from_the_old_text_to_the_new_one() {
        // All pairs of texts of up to five lines over two kinds of line.
        let texts: Vec<String> = (0..6_u32)
            .flat_map(|length| (0..1_u32 << length).map(move |bits| (length, bits)))
            .map(|(length, bits)| {
                (0..length).map(|at| if bits >> at & 1 == 1 { "a\n" } else { "b\n" }).collect()
            })
            .collect();
        for old in &texts {
            for new in &texts {
                apply(old, new);
            }
        }
    }

    #[test]
    fn the_way_is_the_shortest() {
        let count = |old: &str, new: &str| {
            let change = compare(old, new);
            (change.added, change.removed)
        };
        assert_eq!(count("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"), (2, 3));
        assert_eq!(count("", "a\nb\n"), (2, 0));
        assert_eq!(count("a\nb\n", ""), (0, 2));
        assert_eq!(count("same\n", "same\n"), (0, 0));
    }

    #[test]
    fn what_differs_too_much_is_taken_as_rewritten() {
        let old: String = (0..3_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..3_000).map(|n| format!("new {n}\n")).collect();
        let change = compare(&old, &new);
        assert_eq!((change.added, change.removed), (3_000, 3_000));
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
