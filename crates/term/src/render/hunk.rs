//! Hunks: the runs of lines in which two texts differ, and taking one of them back.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// After this time the rest counts as rewritten.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A run of lines that differ, as ranges of lines counted from 0. One of them may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines in the old text.
    pub old: Range<usize>,
    /// The lines in the new text.
    pub new: Range<usize>,
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn differences(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Instant::now().checked_add(TIMEOUT))
}

/// The hunks between two texts, in order.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in differences(&lines(old), &lines(new)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        match hunks.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => hunks.push(Hunk { old, new }),
        }
    }
    hunks
}

/// Returns `now`, a later version of `new`, with the old lines of a hunk in place of its new ones.
/// Returns `None` if these lines, or the place between its neighbours, are not there any more.
pub fn revert(old: &str, new: &str, hunk: &Hunk, now: &str) -> Option<String> {
    let (old, new, now) = (lines(old), lines(new), lines(now));
    let at = place(&new, &now, &hunk.new)?;
    let mut text = String::new();
    text.extend(now.get(..at)?.iter().copied());
    text.extend(old.get(hunk.old.clone())?.iter().copied());
    text.extend(now.get(at + hunk.new.len()..)?.iter().copied());
    Some(text)
}

/// Finds where the lines `range` of a text are in a later version of it.
fn place(new: &[&str], now: &[&str], range: &Range<usize>) -> Option<usize> {
    if new == now {
        return Some(range.start);
    }
    for op in differences(new, now) {
        let DiffOp::Equal { old_index, new_index, len } = op else { continue };
        let kept = old_index..old_index + len;
        // An empty range is between two lines, both of which have to be there still.
        let (first, last) = match range.is_empty() {
            true => (range.start.saturating_sub(1), (range.start + 1).min(new.len())),
            false => (range.start, range.end),
        };
        let at = new_index + range.start.saturating_sub(old_index);
        let at_edge =
            (range.start > 0 || at == 0) && (range.end < new.len() || at + range.len() == now.len());
        if kept.start <= first && last <= kept.end && (!range.is_empty() || at_edge) {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const OLD: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";
    const NEW: &str = "zero\none\ntwo\n3\nfour\nsix\n";

    #[test]
    fn each_run_of_lines_is_a_hunk() {
        let found: Vec<_> = hunks(OLD, NEW).into_iter().map(|hunk| (hunk.old, hunk.new)).collect();
        assert_eq!(found, [(0..0, 0..1), (2..3, 3..4), (4..5, 5..5)]);
        assert!(hunks(OLD, OLD).is_empty());
        assert_eq!(hunks("", "a").len(), 1);
    }

    #[test]
    fn every_hunk_can_be_reverted_alone_and_all_of_them_together() {
        let all = hunks(OLD, NEW);
        let alone: Vec<String> = all.iter().map(|hunk| revert(OLD, NEW, hunk, NEW).unwrap()).collect();
        assert_eq!(
            alone,
            [
                "one\ntwo\n3\nfour\nsix\n",
                "zero\none\ntwo\nthree\nfour\nsix\n",
                "zero\none\ntwo\n3\nfour\nfive\nsix\n"
            ]
        );
        let mut now = NEW.to_owned();
        while let Some(hunk) = hunks(OLD, &now).first() {
            now = revert(OLD, &now, hunk, &now).unwrap();
        }
        assert_eq!(now, OLD);
    }

    #[test]
    fn changes_made_since_are_kept_or_refuse_it() {
        let all = hunks(OLD, NEW);
        let elsewhere = "zero\none\nmine\ntwo\n3\nfour\nsix\nseven\n";
        assert_eq!(
            revert(OLD, NEW, &all[1], elsewhere).unwrap(),
            "zero\none\nmine\ntwo\nthree\nfour\nsix\nseven\n"
        );
        let here = "zero\none\ntwo\n3!\nfour\nsix\n";
        assert_eq!(revert(OLD, NEW, &all[1], here), None);
        // The line before the removed one is not there any more.
        assert_eq!(revert(OLD, NEW, &all[2], "zero\none\ntwo\n3\n4\nsix\n"), None);
        assert_eq!(revert("a\n", "a\nb\n", &hunks("a\n", "a\nb\n")[0], "x\na\nb\n").unwrap(), "x\na\n");
        // A text without an end of line at its end.
        assert_eq!(revert("a\nb", "a\nc", &hunks("a\nb", "a\nc")[0], "a\nc").unwrap(), "a\nb");
    }
}
