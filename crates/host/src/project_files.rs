//! The files of a project: without those that it ignores, and without version control.

use std::path::{Path, PathBuf};

use crate::bounded::{FinalLink, read_text_bounded};

/// The largest ignore file.
const MAX_RULES: u64 = 1 << 20;

/// The type of an entry of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
}

/// A file, link or directory of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectEntry {
    /// Its path, which begins with the root of the walk.
    pub path: PathBuf,
    /// Its type when it was listed.
    pub kind: EntryKind,
}

/// The regular files below a directory; see [`entries`].
pub fn walk(root: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    entries(root).filter(|entry| entry.kind == EntryKind::File).map(|entry| entry.path)
}

/// The files, links and directories below a directory, without those that the project ignores and
/// those of version control.
///
/// Links are not followed, and devices, sockets and FIFOs are left out. Directories whose ignore
/// files cannot be read safely are skipped; if those of `root` cannot, nothing is ignored.
pub fn entries(root: &Path) -> impl Iterator<Item = ProjectEntry> + use<> {
    let rules = has_plain_rules(root);
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .ignore(rules)
        .git_ignore(rules)
        .git_exclude(rules)
        .parents(rules && root.ancestors().skip(1).all(has_plain_rules))
        .filter_entry(move |entry| {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_version_control(entry.path()) && (!rules || !is_dir || has_plain_rules(entry.path()))
        })
        .build();
    walk.filter_map(Result::ok).filter_map(|entry| {
        let kind = match entry.file_type()? {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_symlink() => EntryKind::Link,
            kind if kind.is_dir() => EntryKind::Directory,
            _ => return None,
        };
        Some(ProjectEntry { path: entry.into_path(), kind })
    })
}

/// Whether the last component of a path is the directory of a version control system, or stands for
/// one.
pub fn is_version_control(path: &Path) -> bool {
    matches!(path.file_name().and_then(|name| name.to_str()), Some(".git" | ".hg" | ".jj"))
}

/// Whether the ignore files of a directory are regular and small: the walk opens them unchecked,
/// and a FIFO would block it.
fn has_plain_rules(dir: &Path) -> bool {
    [".ignore", ".gitignore", ".git/info/exclude"].iter().all(|name| is_plain(&dir.join(name)))
        && (dir.join(".git").is_dir() || has_plain_git_file(dir))
}

fn is_plain(rules: &Path) -> bool {
    rules.metadata().map_or(true, |rules| rules.is_file() && rules.len() <= MAX_RULES)
}

/// In a submodule or another worktree `.git` is a file that names a directory, and that may name
/// one more.
fn has_plain_git_file(dir: &Path) -> bool {
    let named = |file: &Path| read_text_bounded(file, 4096, FinalLink::Follow).ok();
    let file = dir.join(".git");
    if file.symlink_metadata().is_err() {
        return true;
    }
    let Some(text) = named(&file) else { return false };
    let Some(git) = text.lines().next().and_then(|line| line.strip_prefix("gitdir: ")) else { return true };
    // The walk takes a relative one from our own directory.
    [dir.join(git), PathBuf::from(git)].iter().all(|git| {
        let common = git.join("commondir");
        common.symlink_metadata().is_err()
            || named(&common).is_some_and(|text| {
                let common = git.join(text.lines().next().unwrap_or_default());
                is_plain(&common.join("info/exclude"))
            })
    })
}
