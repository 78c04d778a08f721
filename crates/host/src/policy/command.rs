//! Command lines, read only as far as that is certain.
//!
//! A rule that approves must never be fooled by what a shell makes of a text. So there is no shell grammar here: a
//! *simple command* is a line of plain words and quoted words without anything that a shell would act upon, and every
//! other line is opaque. Opaque lines match no rule that approves. A rule that denies looks for its words anywhere in them.

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The words of a simple command; nothing if it is not one.
    words: Option<Vec<String>>,
    /// The whole of it, for people.
    text: String,
    /// Variables are set for it which may make it do anything.
    bent: bool,
}

/// Programs that run a program which their arguments name.
const RUNNERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "ash",
    "fish",
    "busybox",
    "env",
    "sudo",
    "doas",
    "su",
    "nohup",
    "nice",
    "ionice",
    "time",
    "timeout",
    "xargs",
    "find",
    "fd",
    "parallel",
    "watch",
    "setsid",
    "stdbuf",
    "exec",
    "eval",
    "command",
    "builtin",
    "source",
    ".",
    "script",
    "strace",
    "ltrace",
    "gdb",
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "npx",
    "npm",
    "pnpm",
    "yarn",
    "bunx",
    "uvx",
    "pipx",
    "make",
    "just",
    "entr",
    "chroot",
    "unshare",
    "nsenter",
    "systemd-run",
    "flock",
    "chronic",
    "tmux",
    "screen",
    "awk",
    "perl",
    "python",
    "python3",
    "ruby",
    "node",
    "php",
    "lua",
    "vim",
    "ed",
    "tclsh",
    "expect",
];

/// Variables that do not change what a program does to the system.
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

impl CommandLine {
    /// A text for a shell.
    pub fn shell(text: &str) -> Self {
        CommandLine { words: simple_words(text), text: text.to_owned(), bent: false }
    }

    /// A program and its arguments. When that is a shell with a text, it is the text that counts.
    pub fn program<S: AsRef<str>>(program: &str, args: &[S]) -> Self {
        let words: Vec<String> =
            std::iter::once(program).chain(args.iter().map(S::as_ref)).map(str::to_owned).collect();
        if let [shell, flag, text] = words.as_slice()
            && is_shell(shell)
            && matches!(flag.as_str(), "-c" | "-lc" | "-cl")
        {
            return CommandLine::shell(text);
        }
        let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let words = words.iter().all(|word| !word.contains('\0')).then_some(words);
        CommandLine { words, text, bent: false }
    }

    /// Something that is to be run and is understood no further.
    pub fn opaque(text: &str) -> Self {
        CommandLine { words: None, text: text.to_owned(), bent: false }
    }

    /// With variables set for it. Some of them make a program run others, so only a few are known to be harmless; with
    /// any other one it is another command.
    #[must_use]
    pub fn with_env<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let harmless = |name: &str| HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_");
        for name in names {
            if !harmless(name.as_ref()) {
                (self.words, self.bent) = (None, true);
                self.text = format!("{}=... {}", name.as_ref(), self.text);
            }
        }
        self
    }

    /// Somewhere else than in the session's directories, where it is another command.
    #[must_use]
    pub fn elsewhere(mut self, dir: &std::path::Path) -> Self {
        self.words = None;
        self.text = format!("cd {} && {}", quoted(&dir.to_string_lossy()), self.text);
        self
    }

    /// The words, if it is a simple command.
    pub fn words(&self) -> Option<&[String]> {
        self.words.as_deref()
    }

    /// The whole of it, for people.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the other one does the same.
    pub fn is_same(&self, other: &CommandLine) -> bool {
        match (self.words(), other.words()) {
            (Some(one), Some(two)) => one == two,
            _ => !self.bent && !other.bent && self.text.trim() == other.text.trim(),
        }
    }

    /// Whether its text says all that it does.
    pub(super) fn is_plain(&self) -> bool {
        !self.bent
    }

    /// Whether it is a simple command that begins with these words.
    pub fn begins_with(&self, prefix: &[String]) -> bool {
        !prefix.is_empty() && self.words().is_some_and(|words| words.starts_with(prefix))
    }

    /// Whether these words may be among what it runs: at its beginning, or anywhere if it is not simple or runs
    /// something else; with other words in between, which may be options. A program counts also by its path.
    ///
    /// This cannot find everything: a shell has a hundred ways to write `rm`. Who wants to be sure approves what is
    /// known and denies the rest.
    pub fn may_run(&self, prefix: &[String]) -> bool {
        let Some((program, rest)) = prefix.split_first() else { return false };
        let at = |words: &[String]| match words.split_first() {
            Some((first, args)) if base_name(first) == base_name(program) => {
                let mut args = args.iter();
                rest.iter().all(|wanted| args.any(|arg| arg == wanted))
            }
            _ => false,
        };
        match self.words() {
            Some(words) if !words.first().is_some_and(|first| is_runner(first)) => at(words),
            _ => [pieces(&self.text), pieces(&self.text.replace(['\'', '"', '\\'], ""))]
                .iter()
                .any(|pieces| (0..pieces.len()).any(|start| pieces.get(start..).is_some_and(at))),
        }
    }
}

/// The words of a prefix in a rule.
pub(super) fn prefix_words(text: &str) -> Option<Vec<String>> {
    simple_words(text).filter(|words| !words.is_empty())
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

/// Words without anything that a shell acts upon, or nothing.
fn simple_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c if c.is_control() => return None,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c if c.is_control() => return None,
                        c => word.push(c),
                    }
                }
            }
            // Some shells look up what follows a `=` at the beginning of a word.
            '=' if word.is_none() => return None,
            c if is_plain(c) => word.get_or_insert_default().push(c),
            // Everything else has, or may have, a meaning to some shell.
            _ => return None,
        }
    }
    words.extend(word);
    // `A=b program` sets a variable, and so it does for `A=b` in any place before the program.
    let first = words.first()?;
    (!first.contains('=') && !first.is_empty() && !is_reserved(first)).then_some(words)
}

/// Characters that stand for themselves everywhere in a word. A tilde, a glob or a brace would become other words.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c) || (!c.is_ascii() && c.is_alphanumeric())
}

/// Words that begin something larger than a simple command.
fn is_reserved(word: &str) -> bool {
    const RESERVED: &[&str] = &[
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
        "function", "select", "time", "coproc", "alias", "eval", "exec", "source", ".", "command", "builtin",
        "trap",
    ];
    RESERVED.contains(&word)
}

/// All that could be a word, whatever the grammar.
fn pieces(text: &str) -> Vec<String> {
    let is_between = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>(){}\\!#=,".contains(c);
    let whole = text.split(is_between).filter(|piece| !piece.is_empty());
    whole.map(str::to_owned).collect()
}

/// A word as one would type it.
fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
