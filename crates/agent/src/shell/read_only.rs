//! Whether a command line only looks, and only inside the session's roots.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::known::{FIND, GIT, KNOWN, Known, Operands};
use super::parse::{Command, Line, Unclear, Word};

/// Why somebody must be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeedsAsking {
    /// The line is more than plain commands.
    Unclear(Unclear),
    /// This program is not known to only look.
    Program(String),
    /// This argument may do more than look.
    Argument(String),
    /// It writes to a file, or changes the environment of what runs.
    Writes(String),
    /// It may look at something outside the session's roots.
    Outside(String),
}

impl fmt::Display for NeedsAsking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NeedsAsking::Unclear(what) => write!(f, "the line holds {what}"),
            NeedsAsking::Program(name) => write!(f, "`{name}` may change something"),
            NeedsAsking::Argument(text) => write!(f, "`{text}` may do more than look"),
            NeedsAsking::Writes(text) => write!(f, "`{text}` changes something"),
            NeedsAsking::Outside(path) => write!(f, "`{path}` is outside of the session's directories"),
        }
    }
}

/// Whether the line may be run without asking.
pub fn harmless(line: &str, cwd: &Path, roots: &[PathBuf]) -> bool {
    only_reads(line, cwd, roots).is_ok()
}

/// Whether every command of the line only reads, and only below `roots`.
///
/// # Errors
/// The first reason why somebody must be asked.
pub fn only_reads(line: &str, cwd: &Path, roots: &[PathBuf]) -> Result<(), NeedsAsking> {
    let line = Line::parse(line).map_err(NeedsAsking::Unclear)?;
    let mut place = Place { cwd: cwd.to_owned(), roots };
    for command in &line.commands {
        place.judge(command)?;
    }
    Ok(())
}

struct Place<'a> {
    cwd: PathBuf,
    roots: &'a [PathBuf],
}

impl Place<'_> {
    fn judge(&mut self, command: &Command) -> Result<(), NeedsAsking> {
        // `LD_PRELOAD=… ls` is not `ls`.
        if let Some(assignment) = command.assignments.first() {
            return Err(NeedsAsking::Writes(assignment.clone()));
        }
        for redirection in &command.redirections {
            if redirection.reads && !redirection.target.expands {
                self.inside(&redirection.target.text)?;
            } else if !redirection.is_harmless() {
                return Err(NeedsAsking::Writes(format!(">{}", redirection.target.text)));
            }
        }
        let Some((program, arguments)) = command.words.split_first() else { return Ok(()) };
        if program.expands {
            return Err(NeedsAsking::Program(program.text.clone()));
        }
        match program.text.as_str() {
            "find" => self.find(arguments),
            "git" => self.git(arguments),
            // Later words of the line are relative to where this goes; following it would need the file system's truth at that time.
            "cd" if arguments.len() != 1 => Err(NeedsAsking::Program("cd".into())),
            "cd" => self.change_directory(&arguments[0]),
            name => match KNOWN.iter().find(|known| known.name == name) {
                Some(known) => self.flags(known, arguments),
                None => Err(NeedsAsking::Program(name.to_owned())),
            },
        }
    }

    fn change_directory(&mut self, to: &Word) -> Result<(), NeedsAsking> {
        if to.expands || to.text.starts_with('-') {
            return Err(NeedsAsking::Argument(to.text.clone()));
        }
        self.inside(&to.text)?;
        self.cwd = self.cwd.join(&to.text);
        Ok(())
    }

    fn git(&self, arguments: &[Word]) -> Result<(), NeedsAsking> {
        let mut rest = arguments;
        while let Some((_, more)) = rest.split_first().filter(|(first, _)| first.text == "--no-pager") {
            rest = more;
        }
        let Some((verb, rest)) = rest.split_first() else { return Err(NeedsAsking::Program("git".into())) };
        match GIT.iter().find(|known| known.name == verb.text) {
            Some(known) => self.flags(known, rest),
            None => Err(NeedsAsking::Program(format!("git {}", verb.text))),
        }
    }

    fn find(&self, arguments: &[Word]) -> Result<(), NeedsAsking> {
        let mut words = arguments.iter();
        let mut expression = false;
        while let Some(word) = words.next() {
            // A pattern that the shell expands could become any word, `-delete` too.
            if word.expands {
                return Err(NeedsAsking::Argument(word.text.clone()));
            }
            if let Some((_, values)) = FIND.iter().find(|(name, _)| *name == word.text) {
                expression = true;
                for _ in 0..*values {
                    words.next();
                }
            } else if expression || word.text.starts_with('-') {
                return Err(NeedsAsking::Argument(word.text.clone()));
            } else {
                self.inside(&word.text)?;
            }
        }
        Ok(())
    }

    /// The words after a known program: flags of its table, then operands.
    fn flags(&self, known: &Known, arguments: &[Word]) -> Result<(), NeedsAsking> {
        let mut operands: Vec<&Word> = Vec::new();
        let mut pattern_given = false;
        let mut words = arguments.iter();
        let mut flags_over = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if flags_over || !text.starts_with('-') || text == "-" {
                operands.push(word);
            } else if text == "--" {
                flags_over = true;
            } else if word.expands {
                return Err(NeedsAsking::Argument(text.to_owned()));
            } else if matches!(known.name, "head" | "tail" | "log")
                && text[1..].bytes().all(|b| b.is_ascii_digit())
            {
                // `-20`, the old way to say how many.
            } else {
                pattern_given |= matches!(text, "-e" | "--regexp" | "--files")
                    || text.starts_with("--regexp=")
                    || (text.starts_with("-e") && !text.starts_with("--"));
                self.flag(known, text, &mut words)?;
            }
        }
        self.operands(known, &operands, pattern_given)
    }

    fn flag<'w>(
        &self,
        known: &Known,
        text: &str,
        words: &mut impl Iterator<Item = &'w Word>,
    ) -> Result<(), NeedsAsking> {
        let question = || NeedsAsking::Argument(text.to_owned());
        if text.starts_with("--") {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            return if known.long.contains(&name) { Ok(()) } else { Err(question()) };
        }
        for (at, flag) in text.char_indices().skip(1) {
            if known.valued.contains(flag) {
                // The value is the rest of this word, or the next one.
                if at + flag.len_utf8() == text.len() && words.next().is_none_or(|value| value.expands) {
                    return Err(question());
                }
                return Ok(());
            }
            if !known.short.contains(flag) {
                return Err(question());
            }
        }
        Ok(())
    }

    fn operands(&self, known: &Known, operands: &[&Word], pattern_given: bool) -> Result<(), NeedsAsking> {
        // Once the shell has expanded a pattern, a name that begins with a dash is a flag, and a link may lead anywhere.
        if let Some(word) = operands.iter().find(|word| word.expands) {
            return Err(NeedsAsking::Argument(word.text.clone()));
        }
        let paths = match known.operands {
            Operands::None if operands.is_empty() => return Ok(()),
            Operands::None => return Err(NeedsAsking::Argument(operands[0].text.clone())),
            Operands::Text => return Ok(()),
            Operands::Format => {
                return match operands.iter().find(|word| !word.text.starts_with('+')) {
                    Some(word) => Err(NeedsAsking::Argument(word.text.clone())),
                    None => Ok(()),
                };
            }
            Operands::OnePath if operands.len() > 1 => {
                return Err(NeedsAsking::Writes(operands[1].text.clone()));
            }
            Operands::OnePath | Operands::Paths => operands,
            Operands::PatternThenPaths if pattern_given => operands,
            Operands::PatternThenPaths => operands.get(1..).unwrap_or_default(),
        };
        paths.iter().try_for_each(|word| self.inside(&word.text))
    }

    /// Whether the path leads to something below a root, also through links.
    fn inside(&self, text: &str) -> Result<(), NeedsAsking> {
        if text == "-" || text == "/dev/null" {
            return Ok(());
        }
        let outside = || NeedsAsking::Outside(text.to_owned());
        if text.starts_with('~') {
            return Err(outside());
        }
        let target = settle(&self.cwd.join(text)).ok_or_else(outside)?;
        let below = |root: &PathBuf| target.starts_with(root.canonicalize().as_deref().unwrap_or(root));
        if self.roots.iter().any(below) { Ok(()) } else { Err(outside()) }
    }
}

/// The path without links and `..`: the part that exists as the file system sees it, the rest as text.
fn settle(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A name that cannot be followed is settled by its parent; a link to nowhere could be made to lead anywhere later.
    if path.is_symlink() {
        return None;
    }
    match path.components().next_back()? {
        Component::Normal(name) => Some(settle(path.parent()?)?.join(name)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "read_only_tests.rs"]
mod tests;
