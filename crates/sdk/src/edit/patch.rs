//! Patches in git's format. Written by hand: one hunk needs no diff library, which every user of
//! this crate would build.

use super::EditOperation;

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

/// The text of a new file, or of a deleted one. `None` if the patch does not hold the text.
pub(super) fn whole(section: &str, operation: EditOperation) -> Option<String> {
    let hunks = hunks(section);
    let is_binary =
        || section.lines().any(|line| line.starts_with("Binary ") || line.starts_with("GIT binary "));
    if hunks.is_empty() && is_binary() {
        return None;
    }
    let mut text = String::new();
    for hunk in hunks {
        let (this, other) = match operation {
            EditOperation::Delete => (hunk.old, hunk.new),
            _ => (hunk.new, hunk.old),
        };
        if !other.is_empty() {
            return None;
        }
        text.push_str(&this);
    }
    Some(text)
}

/// A changed part of a file: its lines before and after, with their context.
#[derive(Debug, PartialEq)]
pub(crate) struct Hunk {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// The hunks of a patch in the form of git. Lines that are not understood are skipped.
pub(crate) fn hunks(patch: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut old_path, mut path) = (String::new(), String::new());
    // The lines that the current hunk still has, by its header.
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    for line in patch.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        if old_left > 0 || new_left > 0 {
            let Some(hunk) = hunks.last_mut() else { break };
            match line.chars().next() {
                Some('-') => {
                    old_left = old_left.saturating_sub(1);
                    hunk.old.push_str(&line[1..]);
                }
                Some('+') => {
                    new_left = new_left.saturating_sub(1);
                    hunk.new.push_str(&line[1..]);
                }
                Some('\\') => unterminated(hunk, patch, line),
                first => {
                    old_left = old_left.saturating_sub(1);
                    new_left = new_left.saturating_sub(1);
                    // Some programs write an empty context line without its blank.
                    let context = if first == Some(' ') { &line[1..] } else { line };
                    hunk.old.push_str(context);
                    hunk.new.push_str(context);
                }
            }
        } else if text.starts_with('\\') {
            if let Some(hunk) = hunks.last_mut() {
                unterminated(hunk, patch, line);
            }
        } else if let Some(name) = text.strip_prefix("--- ") {
            old_path = file_name(name);
        } else if let Some(name) = text.strip_prefix("+++ ") {
            path = file_name(name);
            if path == "/dev/null" {
                path.clone_from(&old_path);
            }
        } else if let Some((old, new)) = hunk_header(text) {
            (old_left, new_left) = (old, new);
            hunks.push(Hunk { path: path.clone(), old: String::new(), new: String::new() });
        }
    }
    hunks
}

/// The line before `\ No newline at end of file` has no end.
fn unterminated(hunk: &mut Hunk, patch: &str, marker: &str) {
    let at = marker.as_ptr() as usize - patch.as_ptr() as usize;
    let before = patch[..at].lines().next_back().unwrap_or_default();
    let (in_old, in_new) = match before.as_bytes().first() {
        Some(b'-') => (true, false),
        Some(b'+') => (false, true),
        _ => (true, true),
    };
    for text in [in_old.then_some(&mut hunk.old), in_new.then_some(&mut hunk.new)].into_iter().flatten() {
        if text.ends_with('\n') {
            text.pop();
        }
    }
}

/// The name in a line of a patch, which may be quoted and may be followed by a time.
fn file_name(name: &str) -> String {
    let name = name.split('\t').next().unwrap_or(name).trim_end_matches('\r');
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => unquoted(quoted),
        None => name.to_owned(),
    }
}

/// A name in the quoting of git: backslashes before quotes, letters and octal bytes.
fn unquoted(quoted: &str) -> String {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(first @ b'0'..=b'3') => {
                let mut digits = [first, 0, 0];
                digits[1] = rest.next().unwrap_or(b'0');
                digits[2] = rest.next().unwrap_or(b'0');
                let value = digits
                    .iter()
                    .fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0')));
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The numbers of old and new lines in `@@ -1,2 +3,4 @@`.
fn hunk_header(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let lines = |range: &str| match range.split_once(',') {
        Some((_, lines)) => lines.parse().ok(),
        None => Some(1),
    };
    Some((lines(old)?, lines(new)?))
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
        let added_text = |section: &str| whole(section, EditOperation::Add);
        assert_eq!(added_text("diff --git /f /f\nBinary files /dev/null and /f differ\n"), None);
        assert_eq!(added_text(&modified("/f", "a\n", "b\n").unwrap_or_default()), None);
        assert_eq!(added_text(&added("/f", "a")).as_deref(), Some("a"));
    }

    #[test]
    fn hunks_become_texts() {
        // shows V2-33
        let patch = "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,2 @@\n-- x\n+y\n+++ z\n\
            --- /dev/null\n+++ \"/w/b\\303\\251\"\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n\
            --- /w/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";
        let hunk = |path: &str, old: &str, new: &str| Hunk {
            path: path.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        };
        assert_eq!(
            hunks(patch),
            [
                hunk("/w/a", "one\ntwo\n", "one\n2\n"),
                hunk("/w/a", "- x\n", "y\n++ z\n"),
                hunk("/w/bé", "", "new"),
                hunk("/w/c", "old\n", ""),
            ]
        );
        assert_eq!(hunks("@@ -1,9999999999999999999999 +1 @@\n-x"), []);
    }
}
