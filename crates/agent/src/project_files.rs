//! The files of a project.

use std::path::{Path, PathBuf};

use attache_host::bounded::{FinalLink, read_text_bounded};

/// The largest ignore file.
const MAX_RULES: u64 = 1 << 20;

/// The regular files below a directory, without those that the project ignores and those of version
/// control. Links are not followed. Directories whose ignore files cannot be read safely are
/// skipped; if those of `root` cannot, nothing is ignored.
pub(crate) fn walk(root: &Path) -> impl Iterator<Item = ignore::DirEntry> + use<> {
    let is_history =
        |entry: &ignore::DirEntry| matches!(entry.file_name().to_str(), Some(".git" | ".hg" | ".jj"));
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
            !is_history(entry) && (!rules || !is_dir || has_plain_rules(entry.path()))
        })
        .build();
    walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
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
