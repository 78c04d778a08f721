//! Paths that documents name.
//!
//! A document that sends its reader to a file that was moved is worse than none. A path counts when
//! it stands alone between backticks, has a `/`, and ends with `.rs`, `.md`, `.toml` or `/`.

use std::collections::BTreeSet;

/// Documents whose paths are checked.
const DOCUMENTS: [&str; 5] =
    ["README.md", "docs/ARCHITECTURE.md", "docs/STYLE.md", "docs/api.md", "docs/security.md"];

/// Reports paths in `text`, the document `name`, that are not among `files`.
pub(super) fn check(name: &str, text: &str, files: &BTreeSet<&str>) -> Vec<String> {
    if !DOCUMENTS.contains(&name) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (place, line) in text.lines().enumerate() {
        // Odd pieces are those between backticks.
        for path in line.split('`').skip(1).step_by(2).filter(|path| is_path(path)) {
            if !exists(path, files) {
                problems.push(format!("{name}:{}: `{path}` does not exist", place + 1));
            }
        }
    }
    problems
}

fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let ends = [".rs", ".md", ".toml", "/"];
    text.contains('/')
        && text.chars().all(plain)
        && !text.starts_with(['/', '.'])
        && ends.iter().any(|end| text.ends_with(end))
}

/// Paths are relative to the repository, to `crates/`, or to `docs/`.
fn exists(path: &str, files: &BTreeSet<&str>) -> bool {
    ["", "crates/", "docs/"].iter().any(|base| {
        let full = format!("{base}{path}");
        match full.strip_suffix('/') {
            Some(directory) => files
                .range(full.as_str()..)
                .next()
                .is_some_and(|file| file.starts_with(&format!("{directory}/"))),
            None => files.contains(full.as_str()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_reported() {
        let files = BTreeSet::from(["crates/rpc/src/frame.rs", "docs/STYLE.md"]);
        let text = "`rpc/src/frame.rs` and `rpc/src/` and `docs/STYLE.md`\n`rpc/src/plain.rs`, `session/new`, `src/*.rs`";
        assert_eq!(check("README.md", text, &files), ["README.md:2: `rpc/src/plain.rs` does not exist"]);
        assert_eq!(check("docs/other.md", text, &files), Vec::<String>::new());
    }
}
