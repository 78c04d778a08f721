//! Whether a command line only reads, and only inside the session's directories.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::known::{FIND, GIT, KNOWN, Operands, ReadOnlyCommand};
use super::parse::{Command, Line, Operator, Unclear, Word};

/// The reason why a command line is not known to be read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReadOnly {
    /// The line is more than plain commands.
    Unclear(Unclear),
    /// A program that is not in the table.
    Program(String),
    /// An argument that may do more than read.
    Argument(String),
    /// A redirection or assignment.
    Writes(String),
    /// A path that may lie outside the session's directories.
    Outside(String),
}

impl fmt::Display for NotReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReadOnly::Unclear(what) => write!(f, "the line contains {what}"),
            NotReadOnly::Program(name) => write!(f, "`{name}` may change something"),
            NotReadOnly::Argument(text) => write!(f, "`{text}` may do more than read"),
            NotReadOnly::Writes(text) => write!(f, "`{text}` changes something"),
            NotReadOnly::Outside(path) => write!(f, "`{path}` is outside the session's directories"),
        }
    }
}

/// Whether every command of the line only reads, and only below `roots`.
pub fn is_read_only(line: &str, cwd: &Path, roots: &[PathBuf]) -> bool {
    check_read_only(line, cwd, roots).is_ok()
}

/// Like [`is_read_only`], with the reason.
///
/// # Errors
/// The first reason why the line is not read-only.
pub fn check_read_only(line: &str, cwd: &Path, roots: &[PathBuf]) -> Result<(), NotReadOnly> {
    let line = Line::parse(line).map_err(NotReadOnly::Unclear)?;
    let mut checker = Checker { cwd: cwd.to_owned(), roots };
    for (at, command) in line.commands.iter().enumerate() {
        if is_cd(command) && !(at == 0 && changes_all(&line)) {
            return Err(NotReadOnly::Program("cd".into()));
        }
        checker.check(command)?;
    }
    Ok(())
}

fn is_cd(command: &Command) -> bool {
    command.words.first().is_some_and(|word| word.text == "cd")
}

/// Whether every later command runs in the directory of a leading `cd`, or not at all. After `;`,
/// `||` or inside of a pipeline a command may run although the `cd` failed or happened in another
/// process.
fn changes_all(line: &Line) -> bool {
    let mut rest = line.commands.iter().skip(1);
    rest.next().is_none_or(|second| second.operator == Operator::And)
        && rest.all(|command| matches!(command.operator, Operator::And | Operator::Pipe))
}

struct Checker<'a> {
    cwd: PathBuf,
    roots: &'a [PathBuf],
}

impl Checker<'_> {
    fn check(&mut self, command: &Command) -> Result<(), NotReadOnly> {
        // `LD_PRELOAD=… ls` is not `ls`.
        if let Some(assignment) = command.assignments.first() {
            return Err(NotReadOnly::Writes(assignment.clone()));
        }
        for redirection in &command.redirections {
            if redirection.reads && !redirection.target.expands && redirection.target.text != "-" {
                self.check_inside(&redirection.target.text)?;
            } else if !redirection.is_harmless() {
                return Err(NotReadOnly::Writes(format!(">{}", redirection.target.text)));
            }
        }
        let Some((program, arguments)) = command.words.split_first() else { return Ok(()) };
        if program.expands {
            return Err(NotReadOnly::Program(program.text.clone()));
        }
        match program.text.as_str() {
            "find" => self.check_find(arguments),
            "git" => self.check_git(arguments),
            "cd" if arguments.len() != 1 => Err(NotReadOnly::Program("cd".into())),
            "cd" => self.change_directory(&arguments[0]),
            name => match KNOWN.iter().find(|known| known.name == name) {
                Some(known) => self.check_arguments(known, arguments),
                None => Err(NotReadOnly::Program(name.to_owned())),
            },
        }
    }

    fn change_directory(&mut self, to: &Word) -> Result<(), NotReadOnly> {
        if to.expands || to.text.starts_with('-') {
            return Err(NotReadOnly::Argument(to.text.clone()));
        }
        self.check_inside(&to.text)?;
        self.cwd = self.cwd.join(&to.text);
        Ok(())
    }

    fn check_git(&self, arguments: &[Word]) -> Result<(), NotReadOnly> {
        let mut rest = arguments;
        while let Some((_, more)) = rest.split_first().filter(|(first, _)| first.text == "--no-pager") {
            rest = more;
        }
        let Some((verb, rest)) = rest.split_first() else { return Err(NotReadOnly::Program("git".into())) };
        // `%G` in a format runs the program that checks signatures.
        if let Some(word) = rest.iter().find(|word| word.text.contains("%G")) {
            return Err(NotReadOnly::Argument(word.text.clone()));
        }
        match GIT.iter().find(|known| known.name == verb.text) {
            Some(known) => self.check_arguments(known, rest),
            None => Err(NotReadOnly::Program(format!("git {}", verb.text))),
        }
    }

    fn check_find(&self, arguments: &[Word]) -> Result<(), NotReadOnly> {
        let mut words = arguments.iter();
        let mut in_expression = false;
        // A pattern that the shell expands could become any word, `-delete` too.
        if let Some(word) = arguments.iter().find(|word| word.expands) {
            return Err(NotReadOnly::Argument(word.text.clone()));
        }
        while let Some(word) = words.next() {
            if let Some((_, values)) = FIND.iter().find(|(name, _)| *name == word.text) {
                in_expression = true;
                for _ in 0..*values {
                    words.next();
                }
            } else if in_expression || word.text.starts_with('-') {
                return Err(NotReadOnly::Argument(word.text.clone()));
            } else {
                self.check_inside(&word.text)?;
            }
        }
        Ok(())
    }

    /// Checks the words after a known program: flags of its table, then operands.
    fn check_arguments(&self, known: &ReadOnlyCommand, arguments: &[Word]) -> Result<(), NotReadOnly> {
        let mut operands: Vec<&Word> = Vec::new();
        let mut has_pattern = false;
        let mut words = arguments.iter();
        let mut flags_over = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if flags_over || !text.starts_with('-') || text == "-" {
                operands.push(word);
            } else if text == "--" {
                flags_over = true;
            } else if word.expands {
                return Err(NotReadOnly::Argument(text.to_owned()));
            } else if matches!(known.name, "head" | "tail" | "log")
                && text[1..].bytes().all(|b| b.is_ascii_digit())
            {
                // `-20`, the old way to say how many.
            } else {
                has_pattern |= self.check_flag(known, text, &mut words)?;
            }
        }
        self.check_operands(known, &operands, has_pattern)
    }

    /// Checks one word of flags. Returns whether it sets the pattern of a search.
    fn check_flag<'w>(
        &self,
        known: &ReadOnlyCommand,
        text: &str,
        words: &mut impl Iterator<Item = &'w Word>,
    ) -> Result<bool, NotReadOnly> {
        let refused = || NotReadOnly::Argument(text.to_owned());
        if text.starts_with("--") {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            if !known.long.contains(&name) {
                return Err(refused());
            }
            return Ok(matches!(name, "--regexp" | "--files"));
        }
        let mut flags = text.char_indices().skip(1).peekable();
        while let Some((at, flag)) = flags.next() {
            if known.valued.contains(flag) {
                let is_last = flags.peek().is_none();
                // Some programs take the value from the next word also in the middle of a group of
                // flags.
                if !is_last && (known.values_are_words || at != 1) {
                    return Err(refused());
                }
                if is_last && words.next().is_none_or(|value| value.expands) {
                    return Err(refused());
                }
                return Ok(flag == 'e');
            }
            if !known.short.contains(flag) {
                return Err(refused());
            }
        }
        Ok(false)
    }

    fn check_operands(
        &self,
        known: &ReadOnlyCommand,
        operands: &[&Word],
        has_pattern: bool,
    ) -> Result<(), NotReadOnly> {
        // After the shell has expanded a pattern, a name that begins with a dash is a flag, and a
        // link may lead anywhere.
        if let Some(word) = operands.iter().find(|word| word.expands) {
            return Err(NotReadOnly::Argument(word.text.clone()));
        }
        let paths = match known.operands {
            Operands::None if operands.is_empty() => return Ok(()),
            Operands::None => return Err(NotReadOnly::Argument(operands[0].text.clone())),
            Operands::Text => return Ok(()),
            Operands::Format => {
                return match operands.iter().find(|word| !word.text.starts_with('+')) {
                    Some(word) => Err(NotReadOnly::Argument(word.text.clone())),
                    None => Ok(()),
                };
            }
            Operands::OnePath if operands.len() > 1 => {
                return Err(NotReadOnly::Writes(operands[1].text.clone()));
            }
            Operands::OnePath | Operands::Paths | Operands::Files => operands,
            Operands::PatternThenPaths if has_pattern => operands,
            Operands::PatternThenPaths => operands.get(1..).unwrap_or_default(),
        };
        for word in paths {
            self.check_inside(&word.text)?;
            // Inside of a directory it would follow links.
            if known.operands == Operands::Files && self.cwd.join(&word.text).is_dir() {
                return Err(NotReadOnly::Argument(word.text.clone()));
            }
        }
        Ok(())
    }

    /// Checks that the path leads to something below a root, also through links.
    fn check_inside(&self, text: &str) -> Result<(), NotReadOnly> {
        if text == "-" || text == "/dev/null" {
            return Ok(());
        }
        let outside = || NotReadOnly::Outside(text.to_owned());
        if text.starts_with('~') {
            return Err(outside());
        }
        let target = resolve(&self.cwd.join(text)).ok_or_else(outside)?;
        let below = |root: &PathBuf| target.starts_with(root.canonicalize().as_deref().unwrap_or(root));
        if self.roots.iter().any(below) { Ok(()) } else { Err(outside()) }
    }
}

/// The path without links and `..`: the part that exists as the file system sees it, the rest as
/// text.
fn resolve(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A dangling link could be made to lead anywhere later.
    if path.is_symlink() {
        return None;
    }
    match path.components().next_back()? {
        Component::Normal(name) => Some(resolve(path.parent()?)?.join(name)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "read_only_tests.rs"]
mod tests;
