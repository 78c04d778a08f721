//! Patches in git's format. Written by hand: one hunk needs no diff library, which every user of this crate would build.

/// Lines around a change.
const CONTEXT: usize = 3;

/// The patch of a file with new content. `None` if the texts are equal.
pub(super) fn modified(path: &str, old: &str, new: &str) -> Option<String> {
    let hunk = hunk(old, new)?;
    Some(format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n{hunk}"))
}

/// The patch of a new file.
pub(super) fn added(path: &str, new: &str) -> String {
    let head = format!("diff --git {path} {path}\nnew file mode 100644\n");
    with_hunk(head, "/dev/null", path, "", new)
}

/// The patch of a deleted file.
pub(super) fn deleted(path: &str, old: &str) -> String {
    let head = format!("diff --git {path} {path}\ndeleted file mode 100644\n");
    with_hunk(head, path, "/dev/null", old, "")
}

/// The patch of a file that has another path.
pub(super) fn renamed(from: &str, to: &str, old: &str, new: &str) -> String {
    let similarity = if old == new { "similarity index 100%\n" } else { "" };
    let head = format!("diff --git {from} {to}\n{similarity}rename from {from}\nrename to {to}\n");
    with_hunk(head, from, to, old, new)
}

/// Git names the two sides only if there is a hunk.
fn with_hunk(mut head: String, from: &str, to: &str, old: &str, new: &str) -> String {
    if let Some(hunk) = hunk(old, new) {
        head += &format!("--- {from}\n+++ {to}\n{hunk}");
    }
    head
}

/// One hunk from the first to the last line that differs. `None` if the texts are equal.
fn hunk(old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    let shorter = before.len().min(after.len());
    let same_start = (0..shorter).take_while(|&i| before[i] == after[i]).count();
    let same_end = (0..shorter - same_start)
        .take_while(|&i| before[before.len() - 1 - i] == after[after.len() - 1 - i])
        .count();
    let start = same_start.saturating_sub(CONTEXT);
    let trailing = same_end.min(CONTEXT);
    let old_lines = &before[same_start..before.len() - same_end];
    let new_lines = &after[same_start..after.len() - same_end];
    let around = (same_start - start) + trailing;
    let mut hunk = format!(
        "@@ -{} +{} @@\n",
        range(start, around + old_lines.len()),
        range(start, around + new_lines.len())
    );
    let tail = &before[before.len() - same_end..before.len() - same_end + trailing];
    let context = before[start..same_start].iter().map(|line| (' ', line));
    let removed = old_lines.iter().map(|line| ('-', line));
    let added = new_lines.iter().map(|line| ('+', line));
    for (sign, line) in context.chain(removed).chain(added).chain(tail.iter().map(|line| (' ', line))) {
        hunk.push(sign);
        hunk.push_str(line);
        if !line.ends_with('\n') {
            hunk.push_str("\n\\ No newline at end of file\n");
        }
    }
    Some(hunk)
}

/// The lines of a hunk: the first one counted from 1, or the one before if there are none.
fn range(start: usize, lines: usize) -> String {
    match lines {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{lines}", start + 1),
    }
}

/// The parts of a patch, one for each file.
pub(super) fn sections(patch: &str) -> Vec<&str> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive('\n') {
        // Lines of a hunk begin with a sign.
        if line.starts_with("diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &patch[start..end]).collect()
}

/// Whether a part of a patch is about this path.
pub(super) fn names(section: &str, path: &str) -> bool {
    let head = section.lines().next().unwrap_or_default();
    head.strip_suffix(path).is_some_and(|rest| rest.ends_with(' '))
}

/// The text of a new or deleted file: all lines with this sign. `None` if the patch does not hold the text.
pub(super) fn side(section: &str, sign: char) -> Option<String> {
    let mut hunks = section.split_inclusive('\n').skip_while(|line| !line.starts_with("@@ ")).peekable();
    if hunks.peek().is_none() {
        let binary =
            section.lines().any(|line| line.starts_with("Binary ") || line.starts_with("GIT binary "));
        return (!binary).then(String::new);
    }
    let mut text = String::new();
    for line in hunks.skip(1) {
        if line.starts_with('\\') {
            text.pop(); // the end of the line before
        } else {
            text.push_str(line.strip_prefix(sign)?);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_three_lines_of_context() {
        let old: String = (1..=9).map(|line| format!("{line}\n")).collect();
        let new = old.replace("5\n", "five\n");
        let patch = modified("/f", &old, &new);
        let expected =
            "diff --git /f /f\n--- /f\n+++ /f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(patch.as_deref(), Some(expected));
        assert_eq!(modified("/f", &old, &old), None);
    }

    #[test]
    fn ends_of_files_and_new_files() {
        let patch = modified("/f", "a", "a\nb\n");
        let expected =
            "diff --git /f /f\n--- /f\n+++ /f\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n";
        assert_eq!(patch.as_deref(), Some(expected));
        let expected = "diff --git /f /f\nnew file mode 100644\n--- /dev/null\n+++ /f\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(added("/f", "a\n"), expected);
        assert_eq!(added("/f", ""), "diff --git /f /f\nnew file mode 100644\n");
        let expected =
            "diff --git /f /f\ndeleted file mode 100644\n--- /f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        assert_eq!(deleted("/f", "a\n"), expected);
    }

    #[test]
    fn a_rename_names_both_paths() {
        let head = "diff --git /f /g\n";
        let same = renamed("/f", "/g", "a\n", "a\n");
        assert_eq!(same, format!("{head}similarity index 100%\nrename from /f\nrename to /g\n"));
        let changed = renamed("/f", "/g", "a\n", "b\n");
        let expected = format!("{head}rename from /f\nrename to /g\n--- /f\n+++ /g\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_text_that_is_not_in_the_patch_is_unknown() {
        assert_eq!(side("diff --git /f /f\nBinary files /dev/null and /f differ\n", '+'), None);
        assert_eq!(side(&modified("/f", "a\n", "b\n").unwrap_or_default(), '+'), None);
        assert_eq!(side(&added("/f", "a"), '+').as_deref(), Some("a"));
    }
}
