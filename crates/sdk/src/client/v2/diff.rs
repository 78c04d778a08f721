//! Changes of files in version 2, as the texts that version 1 has: one diff per hunk of the patch.

use attache_wire::v1::{Diff, ToolCallContent};
use attache_wire::v2;

use crate::edit::patch::hunks;

/// The changes of a diff. Without a patch, and where a patch has no text, a line says what
/// happened.
// V2-33, V2-34
pub(super) fn contents(diff: v2::Diff) -> Vec<ToolCallContent> {
    let patch = diff.patch.filter(|patch| patch.format == v2::DiffPatchFormat::GitPatch);
    let mut hunks = patch.map(|patch| hunks(&patch.text)).unwrap_or_default();
    let (meta, mut contents) = (diff.meta, Vec::new());
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
        let meta = change.meta.or_else(|| meta.clone());
        contents.extend(of_path.into_iter().map(|hunk| {
            let old = (!is_new).then_some(hunk.old);
            ToolCallContent::Diff(Diff::new(hunk.path, hunk.new).old_text(old).meta(meta.clone()))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn changes_without_a_patch_are_named() {
        // shows V2-34
        let changes = vec![v2::DiffChange::modify("/w/a"), v2::DiffChange::rename("/w/b", "/w/c")];
        let expected: [ToolCallContent; 2] = ["change /w/a".into(), "move /w/b to /w/c".into()];
        assert_eq!(contents(v2::Diff::new(changes)), expected);
    }
}
