//! Skills: folders with a `SKILL.md`, which the model reads when a task fits its description.
//!
//! The first request holds names and descriptions only. Those of a project count if it is trusted.

use std::path::{Path, PathBuf};

use attache_host::bounded::{FinalLink, read_bounded};
use attache_host::trust::{FileKind, ProjectFiles, skill_files};

use crate::front_matter;
use crate::text::clip_marked;

/// The most skills that are listed.
const MAX_SKILLS: usize = 40;
/// The most bytes of a description.
const MAX_ABOUT: usize = 250;
/// The most bytes of a skill's text.
const MAX_TEXT: usize = 64 << 10;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    about: String,
    /// Its `SKILL.md`.
    pub(crate) path: PathBuf,
    /// Whether it is the project's, not the user's.
    pub(crate) is_of_project: bool,
}

/// The skills of a session: those of the project if it is trusted, then those of the user. The
/// first of a name counts.
pub(crate) fn gather(project: &ProjectFiles, config_dir: Option<&Path>, trusted: bool) -> Vec<Skill> {
    let of_project = project.files().iter().filter(|file| trusted && file.kind == FileKind::Skill);
    let of_project = of_project.map(|file| (file.path.clone(), true));
    let dir = config_dir.map(|config| config.join("skills"));
    let of_user = dir.map(|dir| skill_files(&dir, &dir.canonicalize().unwrap_or_else(|_| dir.clone())));
    let of_user = of_user.unwrap_or_default().into_iter().map(|path| (path, false));
    let mut skills: Vec<Skill> = Vec::new();
    for (path, is_of_project) in of_project.chain(of_user) {
        let Some(skill) = read(&path).and_then(|text| parse(path, is_of_project, &text)) else { continue };
        if skills.len() < MAX_SKILLS && skills.iter().all(|known| known.name != skill.name) {
            skills.push(skill);
        }
    }
    skills
}

/// The part of the system prompt about skills.
pub(crate) fn listing(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut text = "\n## Skills\n\nThe user's instructions for certain tasks. If one fits the task, read it with `skill` first and \
                    follow it.\n"
        .to_owned();
    for skill in skills {
        text.push_str(&format!("- {}: {}\n", skill.name, skill.about));
    }
    text
}

/// The text of a `SKILL.md`; `None` if it cannot be read.
pub(crate) fn read(path: &Path) -> Option<String> {
    let text = read_bounded(path, MAX_TEXT, FinalLink::Follow).ok()?.into_text_lossy();
    Some(text.replace("\r\n", "\n"))
}

fn parse(path: PathBuf, is_of_project: bool, text: &str) -> Option<Skill> {
    let (head, body) = front_matter::split(text);
    let folder = path.parent()?.file_name()?.to_str()?.to_owned();
    let name = front_matter::value(head, "name").unwrap_or(folder);
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | ':');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return None;
    }
    let first = || body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let about = front_matter::value(head, "description").or_else(|| first().map(str::to_owned))?;
    let about: String = about.chars().filter(|char| !char.is_control()).collect();
    Some(Skill { name, about: clip_marked(&about, MAX_ABOUT, " …"), path, is_of_project })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_are_one_line() {
        let parse = |text: &str| parse(PathBuf::from("/s/pdf/SKILL.md"), true, text);
        let about = |text: &str| parse(text).map(|skill| (skill.name, skill.about));
        let pair = |name: &str, about: &str| Some((name.to_owned(), about.to_owned()));
        assert_eq!(
            about("---\nname: x\ndescription: >\n  Fills\n  forms\n---\nbody"),
            pair("x", "Fills forms")
        );
        assert_eq!(about("# Reads PDFs\nmore"), pair("pdf", "Reads PDFs"));
        assert_eq!(about("---\nname: ../x\n---\nbody"), None);
        assert_eq!(about(""), None);
        let long = parse(&format!("---\ndescription: {}\n---\n", "word ".repeat(1000)));
        assert!(long.is_some_and(|skill| skill.about.len() < 260));
    }
}
