//! Changes of files in version 2, as the texts that version 1 has: one diff per hunk of the patch.

use attache_wire::v1::{Diff, ToolCallContent};
use attache_wire::v2;

/// The changes of a diff. Without a patch, and where a patch has no text, a line says what happened.
// V2-33, V2-34
pub(super) fn contents(diff: v2::Diff) -> Vec<ToolCallContent> {
    let patch = diff.patch.filter(|patch| patch.format == v2::DiffPatchFormat::GitPatch);
    let mut hunks = patch.map(|patch| hunks(&patch.text)).unwrap_or_default();
    let mut contents = Vec::new();
    for change in diff.changes {
        let (path, note) = match &change.operation {
            v2::DiffOperation::Add(change) => (&change.path, format!("add {}", change.path)),
            v2::DiffOperation::Delete(change) => (&change.path, format!("delete {}", change.path)),
            v2::DiffOperation::Modify(change) => (&change.path, format!("change {}", change.path)),
            v2::DiffOperation::Move(change) => {
                (&change.path, format!("move {} to {}", change.old_path, change.path))
            }
            v2::DiffOperation::Copy(change) => {
                (&change.path, format!("copy {} to {}", change.old_path, change.path))
            }
            _ => continue,
        };
        let moved = matches!(change.operation, v2::DiffOperation::Move(_) | v2::DiffOperation::Copy(_));
        let (of_path, others): (Vec<_>, Vec<_>) = hunks.into_iter().partition(|hunk| hunk.path == *path);
        hunks = others;
        if of_path.is_empty() || moved {
            contents.push(note.into());
        }
        let is_new = matches!(change.operation, v2::DiffOperation::Add(_));
        contents.extend(of_path.into_iter().map(|hunk| {
            let old = (!is_new).then_some(hunk.old);
            ToolCallContent::Diff(Diff::new(hunk.path, hunk.new).old_text(old))
        }));
    }
    // V2-33: a patch that names other files than `changes` is shown all the same.
    contents.extend(
        hunks
            .into_iter()
            .map(|hunk| ToolCallContent::Diff(Diff::new(hunk.path, hunk.new).old_text(hunk.old))),
    );
    contents
}

#[derive(Debug, PartialEq)]
struct Hunk {
    path: String,
    old: String,
    new: String,
}

/// The hunks of a patch in the form of git. Lines that are not understood are skipped.
fn hunks(patch: &str) -> Vec<Hunk> {
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
    #![allow(clippy::unwrap_used)]

    use super::*;

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

    #[test]
    fn changes_without_a_patch_are_named() {
        // shows V2-34
        let changes = vec![v2::DiffChange::modify("/w/a"), v2::DiffChange::rename("/w/b", "/w/c")];
        let expected: [ToolCallContent; 2] = ["change /w/a".into(), "move /w/b to /w/c".into()];
        assert_eq!(contents(v2::Diff::new(changes)), expected);
    }
}
