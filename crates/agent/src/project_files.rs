//! Listings of a project's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) use attache_host::project_files::walk;

use crate::text::{clip_marked, one_line};

/// The most files that a short listing counts.
const MAX_LISTED: usize = 2000;

/// The files of a project in at most about `limit` bytes: all paths if they fit, else the entries
/// of the directory itself, with the number of files below each.
pub(crate) fn short_listing(root: &Path, limit: usize) -> String {
    let relative = |path: PathBuf| path.strip_prefix(root).map(one_line).ok();
    let mut paths: Vec<String> = walk(root).take(MAX_LISTED).filter_map(relative).collect();
    paths.sort();
    let all = paths.join("\n");
    if all.len() <= limit {
        return all;
    }
    let mut entries: BTreeMap<String, usize> = BTreeMap::new();
    for path in &paths {
        let entry = path.split_once('/').map_or_else(|| path.clone(), |(dir, _)| format!("{dir}/"));
        *entries.entry(entry).or_default() += 1;
    }
    let line = |(entry, count): (&String, &usize)| match entry.ends_with('/') {
        true => format!("{entry} ({count} files)"),
        false => entry.clone(),
    };
    clip_marked(&entries.iter().map(line).collect::<Vec<_>>().join("\n"), limit, " …")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_listing_is_short() {
        let root = std::env::temp_dir().join(format!("attache-listing-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        for name in ["a.txt", "src/b.rs", "src/deep/c.rs", "new\nline"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        assert_eq!(short_listing(&root, 100), "a.txt\nnew\u{fffd}line\nsrc/b.rs\nsrc/deep/c.rs");
        assert_eq!(short_listing(&root, 36), "a.txt\nnew\u{fffd}line\nsrc/ (2 files)");
        assert_eq!(short_listing(&root, 8), "a.txt\nne …");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
