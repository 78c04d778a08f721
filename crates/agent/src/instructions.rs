//! What a project and its user tell every agent: AGENTS.md, and CLAUDE.md and GEMINI.md where that is what there is.

use std::path::{Path, PathBuf};

use attache::ContentBlock;
use attache::wire::v1::SystemPrompt;

use crate::tools::clip;

/// The names, the first that is there counts; another one counts too if it says something else.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// The most of one file.
const MOST: usize = 64 << 10;

/// The instructions for a session in this directory: the user's own, then the project's, from the repository's root down.
pub(crate) fn gather(cwd: &Path, config_dir: Option<&Path>) -> String {
    let mut text = String::new();
    let mut seen: Vec<String> = Vec::new();
    let mut add = |path: &Path, inside: &Path| {
        let Some(content) = read(path, inside).filter(|content| !seen.contains(content)) else { return };
        text.push_str(&format!("\n## Instructions from {}\n\n{}\n", path.display(), content.trim_end()));
        seen.push(content);
    };
    if let Some(config_dir) = config_dir {
        add(&config_dir.join(NAMES[0]), config_dir);
    }
    let root = repository(cwd);
    for dir in between(&root, cwd) {
        NAMES.iter().for_each(|name| add(&dir.join(name), &root));
    }
    text
}

/// What the client adds to the system prompt.
pub(crate) fn of_client(prompt: Option<&SystemPrompt>) -> String {
    let Some(prompt) = prompt else { return String::new() };
    let text: Vec<&str> = prompt.content.iter().filter_map(ContentBlock::as_text).collect();
    format!("\n## Instructions from the client\n\n{}\n", text.join("\n"))
}

/// The file's text, unless it is a link that leads out of the project.
fn read(path: &Path, inside: &Path) -> Option<String> {
    let (real, inside) = (path.canonicalize().ok()?, inside.canonicalize().ok()?);
    if !real.starts_with(inside) || !real.is_file() {
        return None;
    }
    let content = std::fs::read_to_string(real).ok()?;
    let (content, _) = clip(&content, MOST);
    (!content.trim().is_empty()).then(|| content.to_owned())
}

/// The root of the repository that a directory is in; without one, the directory itself.
fn repository(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(cwd).to_owned()
}

/// The directories from `root` down to `cwd`.
fn between(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        cwd.ancestors().take_while(|dir| dir.starts_with(root)).map(Path::to_owned).collect();
    dirs.reverse();
    dirs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn from_the_repository_down_each_text_once() {
        let base = std::env::temp_dir().join(format!("attache-instructions-{}", std::process::id()));
        let (repo, cwd, config) = (base.join("repo"), base.join("repo/a/b"), base.join("config"));
        for dir in [&cwd, &config, &repo.join(".git")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::fs::write(base.join("AGENTS.md"), "not ours").unwrap();
        std::fs::write(config.join("AGENTS.md"), "mine").unwrap();
        std::fs::write(repo.join("AGENTS.md"), "all").unwrap();
        std::fs::write(repo.join("CLAUDE.md"), "all").unwrap();
        std::fs::write(cwd.join("GEMINI.md"), "here").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(base.join("AGENTS.md"), cwd.join("CLAUDE.md")).unwrap();
        let text = gather(&cwd, Some(&config));
        let at = |word: &str| text.find(word);
        assert!(at("\nmine\n") < at("\nall\n") && at("\nall\n") < at("\nhere\n"), "{text}");
        assert_eq!(text.matches("\nall\n").count(), 1);
        assert!(!text.contains("not ours"), "{text}");
        std::fs::remove_dir_all(&base).unwrap();
    }
}
