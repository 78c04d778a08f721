//! Protected paths: files that make programs run, or that instruct agents.
//!
//! No mode writes them without a question. Sandboxed commands see those that exist read-only, and the user is asked about those that
//! they create.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Component, Path, PathBuf};

/// Directories: everything below them is protected.
const DIRECTORIES: &[&str] = &[
    ".attache",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".fleet",
    ".gemini",
    ".git",
    ".gnupg",
    ".husky",
    ".idea",
    ".opencode",
    ".qwen",
    ".ssh",
    ".vscode",
    ".zed",
];

/// Files, wherever they are.
const FILES: &[&str] = &[
    ".attache.toml",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cursorrules",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".mcp.json",
    ".profile",
    ".windsurfrules",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "gemini.md",
    "qwen.md",
];

/// Directories below `.config`.
const CONFIGURATION: &[&str] = &["attache", "autostart", "environment.d", "fish", "git", "systemd"];

/// Parts of a git directory that run programs or lead to them; the rest must stay writable for `git commit`.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "info", "commondir"];

/// Directories of installed packages and build output. What is in them runs as part of the project anyway, so that protecting single
/// files there would keep nothing from running.
const GENERATED: &[&str] = &["node_modules", "target", "venv", ".venv", ".tox", "__pycache__"];

/// The most directories that are searched, the nearest to the root first.
const MOST_DIRECTORIES: usize = 50_000;
/// The most paths that a sandbox keeps read-only.
const MOST_PATHS: usize = 512;

/// Whether a path is protected. Letter case does not count, because some file systems ignore it.
pub fn is_protected(path: &Path) -> bool {
    let names = lower_names(path);
    names.iter().any(|name| DIRECTORIES.contains(&name.as_str()))
        || names.last().is_some_and(|name| FILES.contains(&name.as_str()))
        || names.windows(2).any(|pair| pair[0] == ".config" && CONFIGURATION.contains(&pair[1].as_str()))
}

fn lower_names(path: &Path) -> Vec<String> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_string_lossy().to_ascii_lowercase()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Existing protected paths below each of `roots`, for a sandbox to keep read-only. Of git directories only the parts that run
/// programs are listed, so that a sandboxed `git commit` works.
pub fn existing(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = scan(roots);
    found.parts.truncate(MOST_PATHS);
    found.parts.sort();
    found.parts.dedup();
    found.parts
}

/// Protected files and directories below each of `roots`, to find those that a command creates.
pub fn present(roots: &[PathBuf]) -> BTreeSet<PathBuf> {
    let found = scan(roots);
    found.parts.into_iter().chain(found.git).collect()
}

/// Protected paths that are in `after` and not in `before`, without those inside of another one.
pub fn created(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let new: BTreeSet<&PathBuf> = after.difference(before).collect();
    let is_outermost = |path: &PathBuf| path.ancestors().skip(1).all(|dir| !new.contains(&dir.to_owned()));
    new.iter().filter(|path| is_outermost(path)).map(|path| (*path).clone()).collect()
}

/// Removes a protected file or directory. A link is removed as a link.
///
/// # Errors
/// If the system refuses.
pub fn remove(path: &Path) -> std::io::Result<()> {
    match path.symlink_metadata()?.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    }
}

/// Protected paths below some directories, the nearest first.
#[derive(Default)]
struct Scan {
    /// Git directories.
    git: Vec<PathBuf>,
    /// All other protected paths, and the protected parts of git directories.
    parts: Vec<PathBuf>,
}

/// Searches directories without following links.
fn scan(roots: &[PathBuf]) -> Scan {
    let mut found = Scan::default();
    let mut queue: VecDeque<PathBuf> = roots.iter().cloned().collect();
    let mut left = MOST_DIRECTORIES;
    while let Some(dir) = queue.pop_front().filter(|_| left > 0) {
        left -= 1;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name == ".git" && is_dir {
                found.add_git(path, &mut left);
            } else if name == ".config" && is_dir {
                found.parts.extend(parts(&path, CONFIGURATION));
            } else if is_protected(Path::new(&name)) {
                found.parts.push(path);
            } else if is_dir && !GENERATED.contains(&name.as_str()) {
                queue.push_back(path);
            }
        }
    }
    found
}

impl Scan {
    /// Adds a git directory, and those of its submodules and worktrees, which lie in it.
    fn add_git(&mut self, dir: PathBuf, left: &mut usize) {
        self.parts.extend(parts(&dir, GIT));
        let mut queue: Vec<PathBuf> = ["modules", "worktrees"].map(|name| dir.join(name)).into();
        self.git.push(dir);
        while let Some(dir) = queue.pop().filter(|_| *left > 0) {
            *left -= 1;
            // The name of a submodule may consist of several directories.
            let has_head = dir.join("HEAD").symlink_metadata().is_ok();
            let inner = if has_head { dir.join("modules") } else { dir.clone() };
            if has_head || parts(&dir, GIT).next().is_some() {
                self.parts.extend(parts(&dir, GIT));
            }
            let entries = std::fs::read_dir(inner).into_iter().flatten().flatten();
            let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            queue.extend(dirs.map(|entry| entry.path()).filter(|path| !path.ends_with("hooks")));
        }
    }
}

/// Those of `names` that exist in a directory.
fn parts<'a>(dir: &'a Path, names: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
    names.iter().map(|name| dir.join(name)).filter(|path| path.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_that_run_or_instruct_are_protected() {
        for path in [
            "/p/.git/hooks/pre-commit",
            "/p/sub/.git/config",
            "/p/.GIT/config",
            "/p/.attache.toml",
            "/p/.attache/commands/x.md",
            "/p/AGENTS.md",
            "/p/docs/CLAUDE.md",
            "/p/.vscode/tasks.json",
            "/home/me/.ssh/authorized_keys",
            "/home/me/.bashrc",
            "/home/me/.config/systemd/user/x.service",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in
            ["/p/src/main.rs", "/p/gitx/config", "/p/agents.md.txt", "/p/.config/other/x", "/p/.github/x.yml"]
        {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn protected_paths_are_found_at_every_depth() {
        let base = std::env::temp_dir().canonicalize().unwrap();
        let root = base.join(format!("attache-protected-{}", std::process::id()));
        let write = |name: &str| {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        };
        for name in [
            ".git/config",
            ".git/HEAD",
            ".git/objects/x",
            "a/b/AGENTS.md",
            "node_modules/x/AGENTS.md",
            "src/x",
        ] {
            write(name);
        }
        let roots = [root.clone()];
        let short = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
        };
        assert_eq!(short(existing(&roots)), [".git/config", "a/b/AGENTS.md"]);
        let before = present(&roots);
        for name in [
            ".git/commondir",
            ".git/objects/y",
            ".git/modules/a/b/HEAD",
            ".git/modules/a/b/hooks/post-checkout",
            ".git/modules/c/hooks/post-checkout",
            "sub/.git/config",
            "src/.vscode/tasks.json",
            "src/main.rs",
        ] {
            write(name);
        }
        let expected =
            [".git/commondir", ".git/modules/a/b/hooks", ".git/modules/c/hooks", "src/.vscode", "sub/.git"];
        assert_eq!(short(created(&before, &present(&roots))), expected);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
