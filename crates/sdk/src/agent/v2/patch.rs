//! Patches in git's format. Written by hand: one hunk needs no diff library, which every user of this crate would build.

/// Lines around a change.
const CONTEXT: usize = 3;

/// Computes a patch with one hunk from the first to the last line that differs. `None` if the texts are equal.
// V2-33: absolute paths, without the prefixes `a/` and `b/`.
pub(super) fn git_patch(path: &str, old: Option<&str>, new: &str) -> Option<String> {
    if old == Some(new) {
        return None;
    }
    let before: Vec<&str> = old.unwrap_or_default().split_inclusive('\n').collect();
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

    let mut patch = format!("diff --git {path} {path}\n");
    match old {
        Some(_) => patch += &format!("--- {path}\n+++ {path}\n"),
        None => patch += &format!("new file mode 100644\n--- /dev/null\n+++ {path}\n"),
    }
    if old_lines.is_empty() && new_lines.is_empty() {
        return Some(patch); // an empty new file
    }
    patch += &format!(
        "@@ -{} +{} @@\n",
        range(start, around + old_lines.len()),
        range(start, around + new_lines.len())
    );
    let tail = &before[before.len() - same_end..before.len() - same_end + trailing];
    let context = before[start..same_start].iter().map(|line| (' ', line));
    let removed = old_lines.iter().map(|line| ('-', line));
    let added = new_lines.iter().map(|line| ('+', line));
    for (sign, line) in context.chain(removed).chain(added).chain(tail.iter().map(|line| (' ', line))) {
        patch.push(sign);
        patch.push_str(line);
        if !line.ends_with('\n') {
            patch.push_str("\n\\ No newline at end of file\n");
        }
    }
    Some(patch)
}

/// The lines of a hunk: the first one counted from 1, or the one before if there are none.
fn range(start: usize, lines: usize) -> String {
    match lines {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{lines}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_three_lines_of_context() {
        let old: String = (1..=9).map(|line| format!("{line}\n")).collect();
        let new = old.replace("5\n", "five\n");
        let patch = git_patch("/f", Some(&old), &new);
        let expected =
            "diff --git /f /f\n--- /f\n+++ /f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(patch.as_deref(), Some(expected));
        assert_eq!(git_patch("/f", Some(&old), &old), None);
    }

    #[test]
    fn ends_of_files_and_new_files() {
        let patch = git_patch("/f", Some("a"), "a\nb\n");
        let expected =
            "diff --git /f /f\n--- /f\n+++ /f\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n";
        assert_eq!(patch.as_deref(), Some(expected));
        let patch = git_patch("/f", None, "a\n");
        let expected = "diff --git /f /f\nnew file mode 100644\n--- /dev/null\n+++ /f\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(patch.as_deref(), Some(expected));
        assert_eq!(
            git_patch("/f", Some("a\n"), "").as_deref().and_then(|patch| patch.lines().nth(3)),
            Some("@@ -1 +0,0 @@")
        );
    }
}
