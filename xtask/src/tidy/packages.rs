//! A published package must not use files outside of its directory.

use std::path::{Component, Path};

use crate::repo;

/// Checks the sources and manifests of crates that are published.
pub(super) fn check(files: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for path in files {
        let Some((krate, inside)) = split(path) else { continue };
        let read = |path: &str| std::fs::read_to_string(repo::root().join(path)).unwrap_or_default();
        if !(inside == "Cargo.toml" || inside.starts_with("src/") && inside.ends_with(".rs"))
            || read(&format!("crates/{krate}/Cargo.toml")).contains("publish = false")
        {
            continue;
        }
        let folder = if inside == "Cargo.toml" {
            ""
        } else {
            Path::new(inside).parent().and_then(Path::to_str).unwrap_or("")
        };
        for (number, line) in read(path).lines().enumerate() {
            let outside = named_files(line).any(|file| leaves(folder, file));
            if outside {
                problems.push(format!("{path}:{}: a file outside of the package", number + 1));
            }
        }
    }
    problems
}

/// Splits `crates/NAME/REST`.
fn split(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once('/')
}

/// The files that a line of Rust includes, or that a target in a manifest is built from.
fn named_files(line: &str) -> impl Iterator<Item = &str> {
    let starts = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    let target = line.strip_prefix("path = \"");
    let included = starts.into_iter().filter_map(move |start| Some(line.split_once(start)?.1));
    included.chain(target).filter_map(|rest| Some(rest.split_once('"')?.0))
}

/// Whether a relative path leads out of the package when it is followed from one of its folders.
fn leaves(folder: &str, file: &str) -> bool {
    let mut depth = Path::new(folder).components().count();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{leaves, named_files};

    #[test]
    fn files_of_other_packages_are_found() {
        let line = "const A: &str = include_str!(\"../../../docs/a.md\");";
        assert_eq!(named_files(line).collect::<Vec<_>>(), ["../../../docs/a.md"]);
        assert!(leaves("src/a", "../../../docs/a.md"));
        assert!(!leaves("src/a", "../../data/a.json"));
        assert_eq!(named_files("path = \"../mutants/a.rs\"").collect::<Vec<_>>(), ["../mutants/a.rs"]);
        assert!(leaves("", "../mutants/a.rs") && !leaves("", "src/main.rs"));
    }
}
