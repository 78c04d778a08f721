//! What belongs to a project.

use std::path::Path;

/// Every regular file below a directory that the project does not ignore, but for what version control keeps for itself.
/// Links are not followed: they may lead out.
pub(crate) fn files(root: &Path) -> impl Iterator<Item = ignore::DirEntry> + use<> {
    let is_history =
        |entry: &ignore::DirEntry| matches!(entry.file_name().to_str(), Some(".git" | ".hg" | ".jj"));
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .filter_entry(move |entry| !is_history(entry))
        .build();
    walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
}
