//! Command lines, understood only as far as that is certain.
//!
//! A rule that approves must never be misled by what a shell makes of a text. A line that is not a
//! plain list of simple commands is *unclear*: it matches no rule that approves, and while a policy
//! denies any command, it is never approved without a question.

use std::fmt;

use crate::shell::{Line, Redirection};

/// A command: a program with arguments, or a text for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The words of each simple command; `None` if the line is unclear.
    simple: Option<Vec<Vec<String>>>,
    /// The command as one would type it.
    text: String,
}

/// Programs that run another program, which their arguments name.
const RUNNERS: &[&str] = &[
    ".",
    "ash",
    "awk",
    "bash",
    "builtin",
    "bunx",
    "busybox",
    "chroot",
    "chronic",
    "command",
    "dash",
    "doas",
    "docker",
    "ed",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "fd",
    "find",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "ionice",
    "just",
    "ksh",
    "kubectl",
    "ld.so",
    "ltrace",
    "lua",
    "make",
    "mawk",
    "nice",
    "node",
    "nohup",
    "npm",
    "npx",
    "nsenter",
    "parallel",
    "perl",
    "php",
    "pipx",
    "pnpm",
    "podman",
    "python",
    "python3",
    "ruby",
    "screen",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tclsh",
    "time",
    "timeout",
    "tmux",
    "unshare",
    "uvx",
    "vim",
    "watch",
    "xargs",
    "yarn",
    "zsh",
];

/// Variables that do not change what a program does.
const HARMLESS_VARIABLES: &[&str] = &[
    "CI",
    "CLAUDECODE",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GEMINI_CLI",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "TERM",
    "TZ",
];

/// Whether a variable cannot change which code a program runs.
pub fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_")
}

impl CommandLine {
    /// A text for a shell.
    pub fn shell(text: &str) -> Self {
        CommandLine { simple: simple_commands(text), text: text.to_owned() }
    }

    /// A program and its arguments. A shell with `-c` counts as the text that it is given.
    pub fn program<S: AsRef<str>>(program: &str, args: &[S]) -> Self {
        let words: Vec<String> =
            std::iter::once(program).chain(args.iter().map(S::as_ref)).map(str::to_owned).collect();
        if let [shell, flag, text] = words.as_slice()
            && is_shell(shell)
            && matches!(flag.as_str(), "-c" | "-lc" | "-cl")
        {
            return CommandLine::shell(text);
        }
        let text = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let simple = words.iter().all(|word| !word.contains('\0')).then(|| vec![words]);
        CommandLine { simple, text }
    }

    /// A command that is not understood, such as one in an unexpected form.
    pub fn unclear(text: &str) -> Self {
        CommandLine { simple: None, text: text.to_owned() }
    }

    /// The words of each simple command; `None` if the line is unclear.
    pub fn simple(&self) -> Option<&[Vec<String>]> {
        self.simple.as_deref()
    }

    /// The command as one would type it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the other one runs the same.
    pub fn is_same(&self, other: &CommandLine) -> bool {
        match (self.simple(), other.simple()) {
            (Some([one]), Some([two])) => one == two,
            _ => self.text.trim() == other.text.trim(),
        }
    }

    /// Whether it is plain words that name every program which it starts itself.
    pub fn is_clear(&self) -> bool {
        let named = |words: &Vec<String>| words.first().is_some_and(|program| !is_runner(program));
        self.simple().is_some_and(|commands| commands.iter().all(named))
    }

    /// Whether each of its simple commands begins with one of these prefixes.
    pub fn begins_with_any(&self, prefixes: &[Vec<String>]) -> bool {
        let fits = |words: &Vec<String>| {
            prefixes.iter().any(|prefix| !prefix.is_empty() && words.starts_with(prefix))
        };
        self.simple().is_some_and(|commands| commands.iter().all(fits))
    }

    /// Whether it may run this: a simple command begins with the program and has the other words
    /// among its arguments, or, where a line is not clear, the words are anywhere in it. A program
    /// also counts by its path.
    pub fn may_run(&self, prefix: &[String]) -> bool {
        let Some((program, rest)) = prefix.split_first() else { return false };
        let matches_at = |words: &[String]| match words.split_first() {
            Some((first, args)) if base_name(first) == base_name(program) => {
                let mut args = args.iter();
                rest.iter().all(|wanted| args.any(|arg| arg == wanted))
            }
            _ => false,
        };
        let anywhere = |words: &[String]| (0..words.len()).any(|at| words.get(at..).is_some_and(matches_at));
        match self.simple() {
            Some(commands) => commands.iter().any(|words| match words.first() {
                Some(first) if is_runner(first) => anywhere(words) || anywhere(&pieces(&words.join(" "))),
                _ => matches_at(words),
            }),
            None => {
                let joined = self.text.replace("\\\n", "");
                [joined.replace(['\'', '"', '\\'], ""), joined].iter().any(|text| anywhere(&pieces(text)))
            }
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The words of a prefix in a rule.
pub(super) fn prefix_words(text: &str) -> Option<Vec<String>> {
    match simple_commands(text)?.as_slice() {
        [words] => Some(words.clone()),
        _ => None,
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_runner(program: &str) -> bool {
    RUNNERS.contains(&base_name(program))
}

/// Only shells in the usual places: another file of that name may be anything.
fn is_shell(program: &str) -> bool {
    let dir = program.strip_suffix(base_name(program)).unwrap_or_default();
    matches!(dir, "" | "/bin/" | "/usr/bin/" | "/usr/local/bin/" | "/opt/homebrew/bin/")
        && matches!(base_name(program), "sh" | "bash" | "zsh" | "dash" | "ksh")
}

/// The simple commands of a line without expansions, assignments and redirections to files; `None`
/// if there is more.
fn simple_commands(text: &str) -> Option<Vec<Vec<String>>> {
    let line = Line::parse(text).ok()?;
    let words = |command: crate::shell::Command| {
        let is_plain = command.assignments.is_empty()
            && command.redirections.iter().all(Redirection::is_harmless)
            && command.words.iter().all(|word| !word.expands && !word.text.contains(char::is_control));
        let words: Vec<String> = command.words.into_iter().map(|word| word.text).collect();
        let first = words.first()?;
        (is_plain && !first.is_empty() && !is_special(first)).then_some(words)
    };
    line.commands.into_iter().map(words).collect()
}

/// Words that begin more than a simple command.
fn is_special(word: &str) -> bool {
    matches!(word, "alias" | "eval" | "exec" | "source" | "." | "command" | "builtin" | "trap")
}

/// Returns all candidates for words, in any grammar.
fn pieces(text: &str) -> Vec<String> {
    let is_between = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>(){}\\!#=,".contains(c);
    text.split(is_between).filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

/// Quotes a word for a shell where necessary.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c) || (!c.is_ascii() && c.is_alphanumeric())
    };
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
