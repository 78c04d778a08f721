//! Parses a command line by the tables.

use std::iter::Peekable;

use super::LONGEST_TIME;
use super::flags::{Field, Flag, Flags, Hint};
use super::near::nearest;
use super::table::{Command, TOP, global_flags};
use crate::error::{Failure, Result};

/// A command line without its flags.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// The agent that was named before the command.
    pub(crate) agent: Option<String>,
    /// The program itself, then its command, then the subcommand. Never empty.
    pub(crate) commands: Vec<&'static Command>,
    /// The positional arguments.
    pub(crate) words: Vec<String>,
    /// The record of the conversation to resume.
    pub(crate) record: Option<String>,
}

/// The meaning of a command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    Run(CommandLine, Box<Flags>),
    Help(Vec<&'static Command>),
    Version,
}

impl CommandLine {
    /// The innermost command.
    pub(crate) fn command(&self) -> &'static Command {
        self.commands.last().copied().unwrap_or(&TOP)
    }

    /// The names of the commands, without the program: `["sessions", "new"]`.
    pub(crate) fn path(&self) -> Vec<&'static str> {
        self.commands.iter().skip(1).map(|command| command.name).collect()
    }

    /// The positional argument at an index.
    pub(crate) fn word(&self, at: usize) -> Option<&str> {
        self.words.get(at).map(String::as_str)
    }
}

/// Parses `args`, without the program's name. `agents` are the names of known agents.
pub(crate) fn parse(args: impl IntoIterator<Item = String>, agents: &[String]) -> Result<Parsed> {
    let line = CommandLine { agent: None, commands: vec![&TOP], words: Vec::new(), record: None };
    let args = args.into_iter().peekable();
    Parser { args, line, own: Vec::new(), flags: Box::default(), agents, verbatim: false }.run()
}

/// Words that other programs have as commands, with what does the same here.
const OTHERS: &[(&str, &str)] = &[
    ("continue", "attache --continue"),
    ("init", "attache config init"),
    ("list", "attache sessions"),
    ("login", "attache auth login"),
    ("logout", "attache auth logout"),
    ("ls", "attache sessions"),
    ("mcp", "attache chat, then /mcp"),
    ("model", "attache chat, then /model"),
    ("models", "attache chat, then /model"),
    ("new", "attache chat"),
    ("resume", "attache --resume"),
    ("run", "attache exec"),
    ("session", "attache sessions"),
    ("settings", "attache config"),
    ("setup", "attache config init"),
    ("start", "attache chat"),
    ("upgrade", "attache registry update"),
    ("update", "attache registry update"),
    ("version", "attache --version"),
    ("whoami", "attache auth status"),
];

struct Parser<'a, I: Iterator<Item = String>> {
    args: Peekable<I>,
    line: CommandLine,
    /// Flags of commands with their values. They are set at the end, because a flag that precedes
    /// its command may belong to another field than the flag of the same name of an outer command.
    own: Vec<(&'static Flag, String)>,
    flags: Box<Flags>,
    agents: &'a [String],
    /// Whether the words came after `--`.
    verbatim: bool,
}

impl<I: Iterator<Item = String>> Parser<'_, I> {
    fn run(mut self) -> Result<Parsed> {
        while let Some(arg) = self.args.next() {
            if arg == "--" {
                self.verbatim = true;
                self.line.words.extend(self.args.by_ref());
            } else if let Some(long) = arg.strip_prefix("--") {
                self.long(long)?;
            } else if let Some(shorts) = arg.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
                self.shorts(shorts)?;
            } else {
                self.word(arg);
            }
            if self.flags.version && self.line.commands.len() == 1 {
                return Ok(Parsed::Version);
            }
        }
        self.finish()
    }

    fn long(&mut self, long: &str) -> Result<()> {
        let (name, inline) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let Some((flag, own)) = self.find(|flag| flag.name == name) else {
            return Err(self.unknown(name));
        };
        self.give(flag, own, inline)
    }

    fn shorts(&mut self, letters: &str) -> Result<()> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let Some((flag, own)) = self.find(|flag| flag.short == Some(letter)) else {
                return Err(self.usage(format!("unknown option -{letter}")));
            };
            if flag.value.is_some() {
                let inline = rest.as_str();
                let inline = (!inline.is_empty()).then(|| inline.trim_start_matches('=').to_owned());
                return self.give(flag, own, inline);
            }
            self.give(flag, own, None)?;
        }
        Ok(())
    }

    /// Looks among the flags of the commands, the innermost first, then among those that every
    /// command takes.
    fn find(&self, matches: impl Fn(&Flag) -> bool) -> Option<(&'static Flag, bool)> {
        let own = self.line.commands.iter().rev().flat_map(|command| command.own_flags());
        let mut all = own.map(|flag| (flag, true)).chain(global_flags().map(|flag| (flag, false)));
        all.find(|(flag, _)| matches(flag))
    }

    /// Takes the value of a flag from the command line.
    fn give(&mut self, flag: &'static Flag, own: bool, inline: Option<String>) -> Result<()> {
        let value = match (flag.value, inline) {
            (Some(_), Some(value)) => value,
            (Some(placeholder), None) => match self.args.next() {
                Some(value) => value,
                None => return Err(self.usage(format!("--{} needs a value: {placeholder}", flag.name))),
            },
            (None, None) => String::new(),
            (None, Some(_)) => return Err(self.usage(format!("--{} takes no value", flag.name))),
        };
        if own {
            self.own.push((flag, value));
            return Ok(());
        }
        self.set(flag, value)
    }

    /// Sets the field of a flag.
    fn set(&mut self, flag: &'static Flag, value: String) -> Result<()> {
        if let Hint::OneOf(choices) = flag.hint
            && !choices.contains(&value.as_str())
        {
            let choices = choices.join(", ");
            return Err(self.usage(format!("--{} is one of {choices}, not `{value}`", flag.name)));
        }
        match flag.field {
            Field::Switch(field) => *field(&mut self.flags) = true,
            Field::Text(field) => *field(&mut self.flags) = Some(value),
            Field::List(field) => field(&mut self.flags).push(value),
            Field::Names(field) => {
                let names = field(&mut self.flags);
                if !names.contains(&flag.name) {
                    names.push(flag.name);
                }
            }
            Field::Count(field) => {
                let most = if let Hint::UpTo(most) = flag.hint { most } else { usize::MAX };
                let count = value.parse().ok().filter(|count| (1..=most).contains(count));
                *field(&mut self.flags) = Some(count.ok_or_else(|| {
                    let range = match most {
                        usize::MAX => "above 0".to_owned(),
                        most => format!("from 1 to {most}"),
                    };
                    self.usage(format!("--{} is a whole number {range}, not `{value}`", flag.name))
                })?);
            }
            Field::Seconds(field) => {
                *field(&mut self.flags) = Some(seconds(flag.name, &value)?);
            }
        }
        Ok(())
    }

    fn word(&mut self, word: String) {
        let line = &mut self.line;
        if line.words.is_empty() {
            let command = line.command().find(&word);
            if let Some(command) = command.filter(|command| line.agent.is_none() || command.agent) {
                line.commands.push(command);
                return;
            }
            if line.commands.len() == 1 && line.agent.is_none() && self.names_agent(&word) {
                self.line.agent = Some(word);
                return;
            }
        }
        self.line.words.push(word);
    }

    /// Whether a word names an agent: it is known, or it looks like a command, as a path does and a
    /// word before a command that takes an agent. Any other word begins a prompt.
    fn names_agent(&mut self, word: &str) -> bool {
        if self.agents.iter().any(|agent| agent == word) {
            return true;
        }
        let has_blank = word.contains(char::is_whitespace);
        let next = self.args.peek().and_then(|next| TOP.find(next));
        let precedes_command = next.is_some_and(|command| command.agent);
        // With --agent a second agent is an error that is reported later; a path may begin a prompt
        // then.
        !has_blank && (precedes_command || (word.contains('/') && self.flags.agent.is_none()))
    }

    fn finish(mut self) -> Result<Parsed> {
        if self.flags.help {
            return Ok(Parsed::Help(self.line.commands));
        }
        if self.line.command().name == "help" {
            return self.help_for();
        }
        let command = self.line.command();
        // A command that takes words has them beside its commands.
        let takes_words = !command.positionals.is_empty();
        if self.line.commands.len() > 1 && !command.commands.is_empty() && !takes_words {
            if let Some(word) = self.line.words.first() {
                let near = nearest(word, command.commands.iter().map(|command| command.name));
                let failure = self.usage(format!("`{}` has no command `{word}`", self.name()));
                return Err(suggest(failure, near));
            }
            if let Some(command) = command.default.and_then(|name| command.find(name)) {
                self.line.commands.push(command);
            }
        }
        self.check_words()?;
        self.check_bare_word()?;
        for (given, value) in std::mem::take(&mut self.own) {
            let mut own = self.line.command().own_flags();
            let Some(flag) = own.find(|flag| flag.name == given.name) else {
                return Err(self.usage(format!("`{}` takes no --{}", self.name(), given.name)));
            };
            self.set(flag, value)?;
        }
        if self.line.agent.is_some() && self.flags.agent.is_some() {
            return Err(self.usage("name an agent or give --agent, not both".to_owned()));
        }
        Ok(Parsed::Run(self.line, self.flags))
    }

    fn check_words(&self) -> Result<()> {
        let (expected, words) = (self.line.command().positionals, &self.line.words);
        let required = expected.iter().filter(|positional| positional.required).count();
        if let Some(missing) = expected.get(words.len()).filter(|_| words.len() < required) {
            return Err(self.usage(format!("`{}` needs a {}", self.name(), missing.name)));
        }
        // Where an agent's name may come first, its command begins after `--`.
        let takes_command = self.verbatim || !self.line.command().agent;
        let many = expected
            .iter()
            .any(|positional| positional.many && (takes_command || positional.hint != Hint::Agent));
        if let Some(word) = words.get(expected.len()).filter(|_| !many) {
            return Err(self.usage(format!("`{}` takes no `{word}`", self.name())));
        }
        for (positional, value) in expected.iter().zip(words) {
            if let Hint::OneOf(choices) = positional.hint
                && !choices.contains(&value.as_str())
            {
                return Err(self.usage(format!("{} is one of {}", positional.name, choices.join(", "))));
            }
        }
        Ok(())
    }

    /// A single word that is nearly a command or an agent, or a command of other programs, is not a
    /// prompt.
    fn check_bare_word(&self) -> Result<()> {
        let ([word], 1, false) = (self.line.words.as_slice(), self.line.commands.len(), self.verbatim) else {
            return Ok(());
        };
        let resumed = self.own.iter().any(|(flag, _)| flag.name == "resume");
        if resumed || word.is_empty() || !word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        {
            return Ok(());
        }
        let other = OTHERS.iter().find(|(name, _)| name == word).map(|(_, here)| (*here).to_owned());
        let names =
            TOP.commands.iter().map(|command| command.name).chain(self.agents.iter().map(String::as_str));
        let near = || {
            let near = nearest(word, names)?;
            // Words of a prompt are near to something more often than options are.
            let distance = strsim::osa_distance(word, near);
            (distance <= word.len().div_ceil(6)).then(|| format!("attache {near}"))
        };
        let Some(meant) = other.or_else(near) else { return Ok(()) };
        let failure = Failure::usage(format_args!("there is no command or agent `{word}`"));
        Err(suggest(failure, Some(&meant)).hint(format!("to send it as a prompt: attache -- {word}")))
    }

    fn help_for(&self) -> Result<Parsed> {
        let mut commands = vec![&TOP];
        for word in &self.line.words {
            let outer = commands.last().copied().unwrap_or(&TOP);
            let Some(inner) = outer.find(word) else {
                let near = nearest(word, outer.commands.iter().map(|command| command.name));
                return Err(suggest(Failure::usage(format_args!("there is no command `{word}`")), near));
            };
            commands.push(inner);
        }
        Ok(Parsed::Help(commands))
    }

    fn name(&self) -> String {
        self.line.commands.iter().map(|command| command.name).collect::<Vec<_>>().join(" ")
    }

    fn unknown(&self, name: &str) -> Failure {
        let own = self.line.commands.iter().flat_map(|command| command.own_flags());
        let near = nearest(name, own.chain(global_flags()).map(|flag| flag.name));
        let near = near.map(|near| format!("--{near}"));
        suggest(self.usage(format!("unknown option --{name}")), near.as_deref())
    }

    fn usage(&self, message: String) -> Failure {
        Failure::usage(message).hint(format!("see `{} --help`", self.name()))
    }
}

/// Returns the failure for a command that needs a subcommand.
pub(crate) fn incomplete(path: &[&str]) -> Failure {
    let found = path.iter().try_fold(&TOP, |outer, word| outer.find(word));
    let name = path.join(" ");
    let choices: Vec<&str> =
        found.map_or(&[][..], |command| command.commands).iter().map(|inner| inner.name).collect();
    match choices.is_empty() {
        true => Failure::usage(format_args!("there is no command `{name}` here")),
        false => Failure::usage(format_args!("`{name}` needs one of: {}", choices.join(", ")))
            .hint(format!("see `attache {name} --help`")),
    }
}

fn suggest(mut failure: Failure, near: Option<&str>) -> Failure {
    if let Some(near) = near {
        failure.hints.insert(0, format!("did you mean `{near}`?"));
    }
    failure
}

/// Reads the value of a flag that is a time in seconds.
fn seconds(flag: &str, text: &str) -> Result<std::time::Duration> {
    let seconds = text.trim().parse().ok().filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_TIME);
    let time = seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
    // A number above zero can still be less than a nanosecond.
    time.filter(|time| !time.is_zero()).ok_or_else(|| {
        Failure::usage(format_args!(
            "--{flag} is a number of seconds above 0, up to {LONGEST_TIME}, not `{text}`"
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn call(line: &str) -> (CommandLine, Box<Flags>) {
        match read(line) {
            Ok(Parsed::Run(line, flags)) => (line, flags),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn read(line: &str) -> Result<Parsed> {
        let words = line.split('|').map(str::to_owned);
        let agents = ["codex", "gemini", "claude"].map(str::to_owned);
        parse(words.filter(|word| !word.is_empty()), &agents)
    }

    #[test]
    fn an_agent_then_a_verb_then_its_verb() {
        let (line, flags) = call("--format|json|codex|sessions|new|-s|api");
        assert_eq!(line.agent.as_deref(), Some("codex"));
        assert_eq!(line.path(), ["sessions", "new"]);
        assert_eq!(flags.sessions.name.as_deref(), Some("api"));
        assert_eq!(flags.format.as_deref(), Some("json"));
    }

    #[test]
    fn words_without_a_verb_are_a_prompt() {
        let (line, flags) = call("fix|the|tests|--timeout=3");
        assert_eq!((line.path(), line.words.len()), (vec![], 3));
        assert_eq!(flags.timeout.as_deref(), Some("3"));
    }

    #[test]
    fn a_command_that_is_not_known_is_an_agent_only_where_it_looks_like_one() {
        assert_eq!(call("./my-agent|hello").0.agent.as_deref(), Some("./my-agent"));
        assert_eq!(call("mine|exec|hello").0.agent.as_deref(), Some("mine"));
        assert_eq!(call("find|the|bug").0.agent, None);
        assert_eq!(call("fix a/b please").0.agent, None);
        assert_eq!(call("--agent|x|a/b|please").0.words, ["a/b", "please"]);
    }

    #[test]
    fn a_verb_is_a_word_once_the_prompt_has_begun() {
        let (line, _) = call("exec|please|cancel|--|--all");
        assert_eq!(line.words, ["please", "cancel", "--all"]);
    }

    #[test]
    fn the_flags_of_a_verb_come_before_those_of_every_command() {
        let (_, flags) = call("--cwd|/a|sessions|import|x.json|--cwd|/b");
        assert_eq!((flags.cwd.as_deref(), flags.sessions.cwd.as_deref()), (Some("/a"), Some("/b")));
        // Before its command, `-s` is still a flag of `trace` and not of a prompt.
        let (_, flags) = call("-s|x|trace|file");
        assert_eq!((flags.trace.session.as_deref(), flags.prompt.session), (Some("x"), None));
    }

    #[test]
    fn mistakes_are_reported() {
        let message = |line: &str| read(line).map(|_| ()).unwrap_err().message;
        assert_eq!(message("--fromat|json"), "unknown option --fromat");
        assert_eq!(message("--format|xml"), "--format is one of text, json, quiet, not `xml`");
        assert_eq!(message("set-mode"), "`attache set-mode` needs a mode");
        assert_eq!(message("status|now"), "`attache status` takes no `now`");
        assert_eq!(message("sessions|nwe"), "`attache sessions` has no command `nwe`");
        assert_eq!(message("--agent|x|codex|exec|hi"), "name an agent or give --agent, not both");
        assert_eq!(message("--agent|x|mine|exec|hi"), "name an agent or give --agent, not both");
        assert_eq!(message("exec|--session|x|hi"), "`attache exec` takes no --session");
        assert_eq!(message("-s|x|exec|hi"), "`attache exec` takes no --session");
        assert_eq!(message("--timeout"), "--timeout needs a value: SECONDS");
    }

    #[test]
    fn a_word_that_is_nearly_a_command_is_no_prompt() {
        for (typed, meant) in [
            ("claud", "attache claude"),
            ("login", "attache auth login"),
            ("models", "attache chat, then /model"),
            ("sesions", "attache sessions"),
            ("resume", "attache --resume"),
            ("codex|exce", "attache exec"),
        ] {
            let failure = read(typed).map(|_| ()).unwrap_err();
            assert_eq!(failure.hints[0], format!("did you mean `{meant}`?"), "{typed}");
        }
        for prompt in ["hello", "explain", "why?", "fix|it", "log in", "--|login", "-r|claud", "tests"] {
            assert!(matches!(read(prompt), Ok(Parsed::Run(..))), "{prompt}");
        }
    }

    #[test]
    fn help_and_version() {
        assert!(matches!(read("--version"), Ok(Parsed::Version)));
        assert!(matches!(read("exec|-h"), Ok(Parsed::Help(commands)) if commands.len() == 2));
        assert!(matches!(read("help|sessions|new"), Ok(Parsed::Help(commands)) if commands.len() == 3));
    }
}
