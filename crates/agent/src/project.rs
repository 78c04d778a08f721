//! What belongs to a project.

use std::path::{Path, PathBuf};

use attache_host::bounded::{FinalLink, read_text_bounded};

/// Rules for what to ignore that are larger than this are not read.
const LARGEST_RULES: u64 = 1 << 20;

/// Every regular file below a directory that the project does not ignore, but for what version control keeps for itself.
/// Links are not followed: they may lead out. Directories whose rules cannot be read safely are passed over; where these are
/// the rules of `root` itself, nothing is ignored.
pub(crate) fn files(root: &Path) -> impl Iterator<Item = ignore::DirEntry> + use<> {
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

/// Whether the files that say what to ignore in a directory are regular ones of a sane size. The walk opens them without
/// asking, and would wait for a FIFO for ever.
fn has_plain_rules(dir: &Path) -> bool {
    [".ignore", ".gitignore", ".git/info/exclude"].iter().all(|name| is_plain(&dir.join(name)))
        && (dir.join(".git").is_dir() || has_plain_git_file(dir))
}

fn is_plain(rules: &Path) -> bool {
    rules.metadata().map_or(true, |rules| rules.is_file() && rules.len() <= LARGEST_RULES)
}

/// In a submodule or another worktree `.git` is a file that names a directory, and that may name one more.
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
