//! Commands from Markdown files: `.attache/commands/NAME.md`, with `$ARGUMENTS` for the text after
//! the name.
//!
//! A file may have front matter with `description` and `argument-hint`.

use std::path::{Path, PathBuf};

use attache_host::bounded::{FinalLink, read_text_bounded};

use crate::front_matter;

/// The most commands that are announced.
const MAX_COMMANDS: usize = 100;
/// The largest file.
const MAX_BYTES: usize = 256 << 10;

/// A command from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CustomCommand {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) hint: Option<String>,
    body: String,
}

impl CustomCommand {
    /// The prompt with the user's arguments, at the end unless the file has a place for them.
    pub(super) fn fill(&self, input: &str) -> String {
        if self.body.contains("$ARGUMENTS") {
            return self.body.replace("$ARGUMENTS", input);
        }
        match input {
            "" => self.body.clone(),
            input => format!("{}\n\n{input}", self.body),
        }
    }
}

/// All commands, by name. The first file of a name wins.
pub(super) fn all(files: &[PathBuf]) -> Vec<CustomCommand> {
    let mut found: Vec<CustomCommand> = Vec::new();
    for file in files {
        if let Some(name) = name(file)
            && found.len() < MAX_COMMANDS
            && !found.iter().any(|command| command.name == name)
        {
            found.extend(read(file, &name));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The command of this name, read again because its file may have changed.
pub(super) fn find(files: &[PathBuf], wanted: &str) -> Option<CustomCommand> {
    files.iter().find(|file| name(file).as_deref() == Some(wanted)).and_then(|file| read(file, wanted))
}

fn name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    (path.extension()? == "md" && is_name(name)).then(|| name.to_owned())
}

/// Names are single words, not paths.
fn is_name(name: &str) -> bool {
    let fits = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(fits)
}

fn read(path: &Path, name: &str) -> Option<CustomCommand> {
    let text = read_text_bounded(path, MAX_BYTES, FinalLink::Follow).ok()?;
    Some(parse(name, &text))
}

fn parse(name: &str, text: &str) -> CustomCommand {
    let text = text.replace("\r\n", "\n");
    let (head, body) = front_matter::split(&text);
    let value = |key: &str| front_matter::value(head, key);
    let body = body.trim().to_owned();
    let first =
        body.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim_start_matches('#').trim());
    let about = value("description").or_else(|| first.map(|line| crate::text::clip(line, 100).0.to_owned()));
    let hint = value("argument-hint").or_else(|| body.contains("$ARGUMENTS").then(|| "arguments".to_owned()));
    let about = about.unwrap_or_else(|| format!("The command {name}"));
    CustomCommand { name: name.to_owned(), about, hint, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_bodies_and_arguments() {
        let text =
            "---\ndescription: \"Fix an issue\"\nargument-hint: number\n---\n\nFix issue $ARGUMENTS.\n";
        let command = parse("fix", text);
        assert_eq!((command.about.as_str(), command.hint.as_deref()), ("Fix an issue", Some("number")));
        assert_eq!(command.fill("7"), "Fix issue 7.");
        let plain = parse("tidy", "# Tidy up\nSort the imports.");
        assert_eq!((plain.about.as_str(), plain.hint.as_deref()), ("Tidy up", None));
        assert_eq!(plain.fill(""), "# Tidy up\nSort the imports.");
        assert!(plain.fill("only src").ends_with("\n\nonly src"));
    }

    #[test]
    fn names_are_no_paths() {
        assert!(is_name("fix-it_2.x"));
        for bad in ["", "../x", "a/b", ".x", "a b"] {
            assert!(
                !is_name(bad) && find(&[PathBuf::from(format!("/tmp/{bad}.md"))], bad).is_none(),
                "{bad}"
            );
        }
    }
}
