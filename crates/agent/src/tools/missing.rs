//! The error for a path that does not exist, with the path that the model may have meant.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ToolContext, ToolError};
use crate::workspace::WorkspacePath;
use crate::{blocking, project_files};

/// The most files that are compared.
const MAX_FILES: usize = 50_000;

/// The error for a path without a file or directory.
pub(super) async fn error(cx: &ToolContext, path: &WorkspacePath) -> ToolError {
    let name = cx.short(path);
    let (root, wanted) = (cx.session.workspace.cwd().to_owned(), name.clone());
    let find = move |stop: &AtomicBool| nearest(&root, &wanted, stop);
    match blocking::run_until_dropped(find).await {
        Ok(Some(near)) => format!("no such file: {name}; did you mean {near}?").into(),
        _ if cx.offers_all_tools() => {
            format!("no such file: {name}; find files with `glob` or `list`").into()
        }
        _ => format!("no such file: {name}; find files with `list`").into(),
    }
}

/// The file of the project that may be meant: one with the same name elsewhere, or one with a
/// similar name.
fn nearest(root: &Path, wanted: &str, stop: &AtomicBool) -> Option<String> {
    let name_of = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name_of(wanted);
    let files = project_files::walk(root).take_while(|_| !stop.load(Ordering::Relaxed)).take(MAX_FILES);
    let paths = files.filter_map(|path| path.strip_prefix(root).ok().map(|path| path.display().to_string()));
    let rated = paths.filter_map(|path| {
        let distance = strsim::osa_distance(&name_of(&path), &name);
        (distance <= name.len().div_ceil(5)).then(|| (distance, strsim::osa_distance(&path, wanted), path))
    });
    rated.min().map(|(.., path)| path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_with_the_same_or_a_similar_name_is_found() {
        let root = std::env::temp_dir().join(format!("attache-nearest-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src/bin")).unwrap();
        for file in ["src/main.rs", "src/bin/main.rs", "config.toml"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let nearest = |path: &str| nearest(&root, path, &AtomicBool::new(false));
        assert_eq!(nearest("main.rs").as_deref(), Some("src/main.rs"));
        assert_eq!(nearest("src/bin/mian.rs").as_deref(), Some("src/bin/main.rs"));
        assert_eq!(nearest("confg.toml").as_deref(), Some("config.toml"));
        assert_eq!(nearest("lib.rs"), None);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
