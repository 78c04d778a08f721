//! Changes of files.

pub(crate) mod patch;

use std::path::Path;

use attache_wire::{v1, v2};

/// A change of one file. Agents report it with both texts, and each version of the protocol is
/// written from them; clients read it, with the texts that the agent reported.
///
/// ```
/// use attache::{Edit, EditOperation};
///
/// let edit = Edit::modify("/project/main.rs", "fn main() {}\n", "fn main() { run() }\n");
/// assert_eq!(edit.operation(), EditOperation::Modify);
/// assert_eq!(edit.old(), Some("fn main() {}\n"));
/// assert!(edit.to_patch().unwrap().contains("\n+fn main() { run() }\n"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    operation: EditOperation,
    path: String,
    old_path: Option<String>,
    old: Option<String>,
    new: Option<String>,
    patch: Option<String>,
    file_type: Option<v2::DiffFileType>,
    meta: Option<attache_wire::Meta>,
}

/// The kind of a change.
///
/// Example: [`Edit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EditOperation {
    /// The file is new.
    Add,
    /// The file is gone.
    Delete,
    /// The content is different.
    Modify,
    /// The file has another path; its content may be different too.
    Rename,
    /// The file is a copy; its content may be different too.
    Copy,
    /// An operation that this version does not know.
    Other,
}

impl Edit {
    /// A file with new content. Paths of edits are absolute.
    pub fn modify(path: impl AsRef<Path>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Edit::with_texts(EditOperation::Modify, path.as_ref(), Some(old.into()), Some(new.into()))
    }

    /// A new file.
    pub fn add(path: impl AsRef<Path>, new: impl Into<String>) -> Self {
        Edit::with_texts(EditOperation::Add, path.as_ref(), None, Some(new.into()))
    }

    /// A deleted file.
    pub fn delete(path: impl AsRef<Path>, old: impl Into<String>) -> Self {
        Edit::with_texts(EditOperation::Delete, path.as_ref(), Some(old.into()), None)
    }

    /// A file that is written: new if there is no old text.
    pub fn write(path: impl AsRef<Path>, old: Option<String>, new: impl Into<String>) -> Self {
        match old {
            Some(old) => Edit::modify(path, old, new),
            None => Edit::add(path, new),
        }
    }

    /// A file that has another path and perhaps another content.
    pub fn rename(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        old: impl Into<String>,
        new: impl Into<String>,
    ) -> Self {
        let edit = Edit::with_texts(EditOperation::Rename, to.as_ref(), Some(old.into()), Some(new.into()));
        Edit { old_path: Some(text(from.as_ref())), ..edit }
    }

    fn with_texts(operation: EditOperation, path: &Path, old: Option<String>, new: Option<String>) -> Self {
        let path = text(path);
        Edit { operation, path, old_path: None, old, new, patch: None, file_type: None, meta: None }
    }

    /// The operation.
    pub fn operation(&self) -> EditOperation {
        self.operation
    }

    /// The path of the file; after a rename the new one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path before a rename, or of the original of a copy.
    pub fn old_path(&self) -> Option<&str> {
        self.old_path.as_deref()
    }

    /// The whole text before, if it is known and there was one.
    pub fn old(&self) -> Option<&str> {
        self.old.as_deref()
    }

    /// The whole text after, if it is known and there is one.
    #[expect(clippy::new_ret_no_self, reason = "the counterpart of `old`")]
    pub fn new(&self) -> Option<&str> {
        self.new.as_deref()
    }

    /// The patch in git's format that the agent has sent.
    pub fn patch(&self) -> Option<&str> {
        self.patch.as_deref()
    }

    /// The patch in git's format: the one that the agent has sent, or one that is computed from
    /// both texts. `None` without either, and if the texts are equal.
    // V2-33: absolute paths, without the prefixes `a/` and `b/`.
    pub fn to_patch(&self) -> Option<String> {
        if self.patch.is_some() {
            return self.patch.clone();
        }
        match (self.operation, self.old(), self.new()) {
            (EditOperation::Add, None, Some(new)) => Some(patch::added(&self.path, new)),
            (EditOperation::Delete, Some(old), None) => Some(patch::deleted(&self.path, old)),
            (EditOperation::Modify, Some(old), Some(new)) => patch::modified(&self.path, old, new),
            (EditOperation::Rename, Some(old), Some(new)) => {
                Some(patch::renamed(self.old_path()?, &self.path, old, new))
            }
            _ => None,
        }
    }

    /// Reads a diff of version 1.
    pub(crate) fn from_v1(diff: &v1::Diff) -> Self {
        let edit = Edit::write(&diff.path, diff.old_text.clone(), diff.new_text.clone());
        Edit { meta: diff.meta.clone(), ..edit }
    }

    /// The diffs of version 1, which has no other operation than to write: a deleted file is empty,
    /// and a rename is two diffs. `None` if a text is unknown.
    pub(crate) fn to_v1(&self) -> Option<Vec<v1::Diff>> {
        let diff = |path: &str, old: Option<&str>, new: &str| {
            v1::Diff::new(path, new).old_text(old.map(str::to_owned)).meta(self.meta.clone())
        };
        match (self.operation, self.old(), self.new()) {
            (EditOperation::Add, None, Some(new)) => Some(vec![diff(&self.path, None, new)]),
            (EditOperation::Delete, Some(old), None) => Some(vec![diff(&self.path, Some(old), "")]),
            (EditOperation::Modify, Some(old), Some(new)) => Some(vec![diff(&self.path, Some(old), new)]),
            (EditOperation::Rename, Some(old), Some(new)) => {
                Some(vec![diff(self.old_path()?, Some(old), ""), diff(&self.path, None, new)])
            }
            _ => None,
        }
    }

    /// Reads a diff of version 2: one edit for each change, with its part of the patch. A patch
    /// holds the whole text of new and deleted files only.
    // V2-34: a diff may have no patch.
    #[allow(dead_code, reason = "read by clients")]
    pub(crate) fn from_v2(diff: &v2::Diff) -> Vec<Edit> {
        let patch = diff.patch.as_ref().filter(|patch| patch.format == v2::DiffPatchFormat::GitPatch);
        let sections = patch.map(|patch| patch::sections(&patch.text)).unwrap_or_default();
        let one_each = sections.len() == diff.changes.len();
        let read = |(at, change): (usize, &v2::DiffChange)| {
            let (operation, old_path, path) = operation(&change.operation);
            let named = sections.iter().find(|section| patch::names(section, &path));
            let section = named.or_else(|| sections.get(at).filter(|_| one_each)).copied();
            let (mut old, mut new) = (None, None);
            match operation {
                EditOperation::Add => new = section.and_then(|section| patch::whole(section, operation)),
                EditOperation::Delete => old = section.and_then(|section| patch::whole(section, operation)),
                _ => {}
            }
            let (file_type, meta) =
                (change.file_type.clone(), change.meta.as_ref().or(diff.meta.as_ref()).cloned());
            Edit { operation, path, old_path, old, new, patch: section.map(str::to_owned), file_type, meta }
        };
        diff.changes.iter().enumerate().map(read).collect()
    }

    /// The diff of version 2.
    pub(crate) fn to_v2(&self) -> v2::Diff {
        let (path, old_path) = (self.path.clone(), self.old_path.clone().unwrap_or_default());
        let change = match self.operation {
            EditOperation::Add => v2::DiffChange::add(path),
            EditOperation::Delete => v2::DiffChange::delete(path),
            EditOperation::Modify | EditOperation::Other => v2::DiffChange::modify(path),
            EditOperation::Rename => v2::DiffChange::rename(old_path, path),
            EditOperation::Copy => v2::DiffChange::copy(old_path, path),
        };
        let known = self.old.is_some() || self.new.is_some();
        let file_type = self.file_type.clone().or(known.then_some(v2::DiffFileType::Text));
        let patch = self.to_patch().map(|text| v2::DiffPatch::new(v2::DiffPatchFormat::GitPatch, text));
        v2::Diff::new([change.file_type(file_type)]).patch(patch).meta(self.meta.clone())
    }

    /// The paths that the edit names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        [Some(self.path()), self.old_path()].into_iter().flatten()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The operation, the path before and the path after.
fn operation(operation: &v2::DiffOperation) -> (EditOperation, Option<String>, String) {
    match operation {
        v2::DiffOperation::Add(change) => (EditOperation::Add, None, change.path.clone()),
        v2::DiffOperation::Delete(change) => (EditOperation::Delete, None, change.path.clone()),
        v2::DiffOperation::Modify(change) => (EditOperation::Modify, None, change.path.clone()),
        v2::DiffOperation::Move(change) => {
            (EditOperation::Rename, Some(change.old_path.clone()), change.path.clone())
        }
        v2::DiffOperation::Copy(change) => {
            (EditOperation::Copy, Some(change.old_path.clone()), change.path.clone())
        }
        v2::DiffOperation::Other(unknown) => {
            (EditOperation::Other, unknown.get("oldPath"), unknown.get("path").unwrap_or_default())
        }
        _ => (EditOperation::Other, None, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_texts_only() {
        let read = |edit: &Edit| -> Vec<(String, Option<String>, String)> {
            let diffs = edit.to_v1().unwrap_or_default().into_iter();
            diffs.map(|diff| (diff.path, diff.old_text, diff.new_text)).collect()
        };
        let diff = |path: &str, old: Option<&str>, new: &str| {
            (path.to_owned(), old.map(str::to_owned), new.to_owned())
        };
        assert_eq!(read(&Edit::modify("/f", "a", "b")), [diff("/f", Some("a"), "b")]);
        assert_eq!(read(&Edit::add("/f", "b")), [diff("/f", None, "b")]);
        assert_eq!(read(&Edit::delete("/f", "a")), [diff("/f", Some("a"), "")]);
        let renamed = Edit::rename("/f", "/g", "a", "b");
        assert_eq!(read(&renamed), [diff("/f", Some("a"), ""), diff("/g", None, "b")]);
        let again = Edit::from_v1(&v1::Diff::new("/f", "b").old_text("a".to_owned()));
        assert_eq!(again, Edit::modify("/f", "a", "b"));
        assert_eq!(Edit::from_v1(&v1::Diff::new("/f", "b")), Edit::add("/f", "b"));
    }

    #[test]
    fn version_2_has_operations_and_a_patch() {
        // shows V2-33
        for edit in [
            Edit::modify("/f", "a\n", "b\n"),
            Edit::add("/f", "a\nb"),
            Edit::add("/f", ""),
            Edit::delete("/f", "a\nb\n"),
            Edit::rename("/f", "/g", "a\n", "a\n"),
        ] {
            let [read] = &Edit::from_v2(&edit.to_v2())[..] else { panic!("{edit:?}") };
            assert_eq!((read.operation(), read.path()), (edit.operation(), edit.path()));
            assert_eq!((read.old_path(), read.patch()), (edit.old_path(), edit.to_patch().as_deref()));
            // Only these have one side, which the patch holds.
            if matches!(edit.operation(), EditOperation::Add | EditOperation::Delete) {
                assert_eq!((read.old(), read.new()), (edit.old(), edit.new()));
            }
        }
    }

    #[test]
    fn each_change_has_its_part_of_the_patch() {
        // shows V2-34
        let (one, two) = (Edit::modify("/one", "a\n", "b\n"), Edit::add("/two", "x\n"));
        let text = two.to_patch().unwrap_or_default() + &one.to_patch().unwrap_or_default();
        let patch = v2::DiffPatch::new(v2::DiffPatchFormat::GitPatch, text);
        let changes =
            [v2::DiffChange::modify("/one"), v2::DiffChange::add("/two"), v2::DiffChange::delete("/three")];
        let read = Edit::from_v2(&v2::Diff::new(changes).patch(patch));
        assert_eq!(read[0].patch(), one.to_patch().as_deref());
        assert_eq!((read[1].patch(), read[1].new()), (two.to_patch().as_deref(), Some("x\n")));
        assert_eq!((read[2].patch(), read[2].old()), (None, None));
    }
}
