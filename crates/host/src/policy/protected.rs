//! Protected paths: files that make programs run, or that instruct agents.
//!
//! No mode writes them without a question, and sandboxed commands see them read-only.

use std::path::{Component, Path, PathBuf};

/// Directories: everything below them is protected.
const DIRECTORIES: &[&str] = &[
    ".agents",
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

/// Parts of `.git` that run programs; the rest must stay writable for `git commit`.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "info", "commondir"];

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

/// The protected paths that an entry of a directory stands for: of `.git` only the parts that run
/// programs, so that a sandboxed `git commit` works, of `.config` the settings of some programs,
/// else the entry itself. Empty if it is not protected. They need not exist.
pub(crate) fn parts(path: &Path, is_dir: bool) -> Vec<PathBuf> {
    let lower = |name: &std::ffi::OsStr| name.to_string_lossy().to_ascii_lowercase();
    let name = path.file_name().map(lower).unwrap_or_default();
    match name.as_str() {
        ".git" if is_dir => git_parts(path),
        ".config" => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let settings =
                entries.filter(|entry| CONFIGURATION.contains(&lower(&entry.file_name()).as_str()));
            settings.map(|entry| entry.path()).collect()
        }
        name if is_protected(Path::new(name)) => vec![path.to_owned()],
        _ => Vec::new(),
    }
}

/// The parts of a repository that run programs. They need not exist.
pub(crate) fn git_parts(dir: &Path) -> Vec<PathBuf> {
    GIT.iter().map(|part| dir.join(part)).collect()
}

/// Existing protected paths directly below each of `roots`, for a sandbox to keep read-only.
pub fn existing(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in roots {
        let Ok(entries) = std::fs::read_dir(root) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_itself = |part: &PathBuf| *part == path;
            found.extend(
                parts(&path, path.is_dir()).into_iter().filter(|part| is_itself(part) || part.exists()),
            );
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
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
}
