//! Reads a command line by the table.

use std::iter::Peekable;

use super::near::nearest;
use super::table::{Flag, GLOBAL, Hint, TOP, Verb};
use crate::error::{Failure, Result};

/// A command line, taken apart.
#[derive(Debug)]
pub(crate) struct Call {
    /// The agent that was named before the command.
    pub(crate) agent: Option<String>,
    /// The command: the program itself, then its verb, then the verb's verb. At least the program is there.
    pub(crate) verbs: Vec<&'static Verb>,
    /// The words that are neither.
    pub(crate) words: Vec<String>,
    given: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    flag: &'static Flag,
    value: String,
    /// Whether it is a flag of the verb and not one that every command takes.
    own: bool,
}

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Parsed {
    Run(Call),
    Help(Vec<&'static Verb>),
    Version,
}

impl Call {
    /// The innermost verb.
    pub(crate) fn verb(&self) -> &'static Verb {
        self.verbs.last().copied().unwrap_or(&TOP)
    }

    /// The names of the verbs, without the program: `["sessions", "new"]`.
    pub(crate) fn path(&self) -> Vec<&'static str> {
        self.verbs.iter().skip(1).map(|verb| verb.name).collect()
    }

    /// Whether a flag was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.flag.name == name)
    }

    /// The value of a flag; the last one if it was given twice.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|given| given.flag.name == name).map(|given| given.value.as_str())
    }

    /// The same, only as a flag of every command.
    pub(crate) fn global(&self, name: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|given| given.flag.name == name && !given.own);
        given.map(|given| given.value.as_str())
    }

    /// The same, only as a flag of the verb itself.
    pub(crate) fn own(&self, name: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|given| given.flag.name == name && given.own);
        given.map(|given| given.value.as_str())
    }

    /// All values of a flag.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.given.iter().filter(move |given| given.flag.name == name).map(|given| given.value.as_str())
    }

    /// A positional argument.
    pub(crate) fn word(&self, at: usize) -> Option<&str> {
        self.words.get(at).map(String::as_str)
    }
}

/// Reads `args`, without the program's name. `known` tells whether a word is the name of an agent.
pub(crate) fn parse(args: impl IntoIterator<Item = String>, known: impl Fn(&str) -> bool) -> Result<Parsed> {
    let mut parser = Parser {
        args: args.into_iter().peekable(),
        call: Call { agent: None, verbs: vec![&TOP], words: Vec::new(), given: Vec::new() },
        known,
    };
    parser.run()
}

struct Parser<I: Iterator<Item = String>, K> {
    args: Peekable<I>,
    call: Call,
    known: K,
}

impl<I: Iterator<Item = String>, K: Fn(&str) -> bool> Parser<I, K> {
    fn run(&mut self) -> Result<Parsed> {
        while let Some(arg) = self.args.next() {
            if arg == "--" {
                let rest: Vec<String> = self.args.by_ref().collect();
                self.call.words.extend(rest);
            } else if let Some(long) = arg.strip_prefix("--") {
                self.long(long)?;
            } else if let Some(shorts) = arg.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
                self.shorts(shorts)?;
            } else {
                self.word(arg);
            }
            if self.call.has("version") && self.call.verbs.len() == 1 {
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

    /// Looks among the flags of the verbs, the innermost first, then among those that every command takes.
    fn find(&self, fits: impl Fn(&Flag) -> bool) -> Option<(&'static Flag, bool)> {
        let own = self.call.verbs.iter().rev().flat_map(|verb| verb.own_flags()).find(|flag| fits(flag));
        own.map(|flag| (flag, true))
            .or_else(|| GLOBAL.iter().find(|flag| fits(flag)).map(|flag| (flag, false)))
    }

    fn give(&mut self, flag: &'static Flag, own: bool, inline: Option<String>) -> Result<()> {
        let value = match (flag.value, inline) {
            (Some(_), Some(value)) => value,
            (Some(what), None) => match self.args.next() {
                Some(value) => value,
                None => return Err(self.usage(format!("--{} needs a value: {what}", flag.name))),
            },
            (None, None) => String::new(),
            (None, Some(_)) => return Err(self.usage(format!("--{} takes no value", flag.name))),
        };
        if let Hint::OneOf(choices) = flag.hint
            && !choices.contains(&value.as_str())
        {
            let choices = choices.join(", ");
            return Err(self.usage(format!("--{} is one of {choices}, not `{value}`", flag.name)));
        }
        self.call.given.push(Given { flag, value, own });
        Ok(())
    }

    fn word(&mut self, word: String) {
        let call = &mut self.call;
        if call.words.is_empty() {
            if let Some(verb) = call.verb().verb(&word).filter(|verb| call.agent.is_none() || verb.agent) {
                call.verbs.push(verb);
                return;
            }
            if call.verbs.len() == 1 && call.agent.is_none() && self.is_agent(&word) {
                self.call.agent = Some(word);
                return;
            }
        }
        self.call.words.push(word);
    }

    /// A word is an agent if it is known as one. A word that is not can still be a command, when it looks like one: a path, or
    /// a word in front of what agents can do. Anything else is the beginning of a prompt.
    fn is_agent(&mut self, word: &str) -> bool {
        if (self.known)(word) {
            return true;
        }
        let blank = word.contains(char::is_whitespace);
        let before_verb = self.args.peek().and_then(|next| TOP.verb(next)).is_some_and(|verb| verb.agent);
        // Beside --agent it is one too many, which is told; a path may be the beginning of a prompt then.
        !blank && (before_verb || (word.contains('/') && !self.call.has("agent")))
    }

    fn finish(&mut self) -> Result<Parsed> {
        if self.call.has("help") {
            return Ok(Parsed::Help(std::mem::take(&mut self.call.verbs)));
        }
        if self.call.verb().name == "help" {
            return self.help_for();
        }
        let verb = self.call.verb();
        if self.call.verbs.len() > 1 && !verb.verbs.is_empty() {
            if let Some(word) = self.call.words.first() {
                let near = nearest(word, verb.verbs.iter().map(|verb| verb.name));
                let failure = self.usage(format!("`{}` has no command `{word}`", self.name()));
                return Err(meant(failure, near));
            }
            if let Some(verb) = verb.default.and_then(|name| verb.verb(name)) {
                self.call.verbs.push(verb);
            }
        }
        self.check_words()?;
        self.check_flags()?;
        if self.call.agent.is_some() && self.call.has("agent") {
            return Err(self.usage("name an agent or give --agent, not both".to_owned()));
        }
        let Call { agent, verbs, words, given } = &mut self.call;
        Ok(Parsed::Run(Call {
            agent: agent.take(),
            verbs: std::mem::take(verbs),
            words: std::mem::take(words),
            given: std::mem::take(given),
        }))
    }

    /// A flag that came before its command must be one of it.
    fn check_flags(&self) -> Result<()> {
        let verb = self.call.verb();
        let foreign =
            |given: &&Given| given.own && !verb.own_flags().any(|flag| flag.name == given.flag.name);
        match self.call.given.iter().find(foreign) {
            Some(given) => Err(self.usage(format!("`{}` takes no --{}", self.name(), given.flag.name))),
            None => Ok(()),
        }
    }

    fn check_words(&self) -> Result<()> {
        let verb = self.call.verb();
        let required = verb.words.iter().filter(|word| word.required).count();
        if let Some(word) = verb.words.get(self.call.words.len()).filter(|_| self.call.words.len() < required)
        {
            return Err(self.usage(format!("`{}` needs a {}", self.name(), word.name)));
        }
        let many = verb.words.iter().any(|word| word.many);
        if let Some(word) = self.call.words.get(verb.words.len()).filter(|_| !many) {
            return Err(self.usage(format!("`{}` takes no `{word}`", self.name())));
        }
        for (word, value) in verb.words.iter().zip(&self.call.words) {
            if let Hint::OneOf(choices) = word.hint
                && !choices.contains(&value.as_str())
            {
                return Err(self.usage(format!("{} is one of {}", word.name, choices.join(", "))));
            }
        }
        Ok(())
    }

    fn help_for(&self) -> Result<Parsed> {
        let mut verbs = vec![&TOP];
        for word in &self.call.words {
            let verb = verbs.last().copied().unwrap_or(&TOP);
            let Some(inner) = verb.verb(word) else {
                let failure = Failure::usage(format_args!("there is no command `{word}`"));
                return Err(meant(failure, nearest(word, verb.verbs.iter().map(|verb| verb.name))));
            };
            verbs.push(inner);
        }
        Ok(Parsed::Help(verbs))
    }

    fn name(&self) -> String {
        self.call.verbs.iter().map(|verb| verb.name).collect::<Vec<_>>().join(" ")
    }

    fn unknown(&self, name: &str) -> Failure {
        let own = self.call.verbs.iter().flat_map(|verb| verb.own_flags());
        let near = nearest(name, own.chain(GLOBAL).map(|flag| flag.name)).map(|near| format!("--{near}"));
        meant(self.usage(format!("unknown option --{name}")), near.as_deref())
    }

    fn usage(&self, message: String) -> Failure {
        Failure::usage(message).hint(format!("`{} --help` lists what there is", self.name()))
    }
}

fn meant(mut failure: Failure, near: Option<&str>) -> Failure {
    if let Some(near) = near {
        failure.hints.insert(0, format!("did you mean `{near}`?"));
    }
    failure
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn call(line: &str) -> Call {
        match read(line) {
            Ok(Parsed::Run(call)) => call,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn read(line: &str) -> Result<Parsed> {
        let words = line.split('|').map(str::to_owned);
        parse(words.filter(|word| !word.is_empty()), |word| word == "codex" || word == "gemini")
    }

    #[test]
    fn an_agent_then_a_verb_then_its_verb() {
        let call = call("--format|json|codex|sessions|new|-s|api");
        assert_eq!(call.agent.as_deref(), Some("codex"));
        assert_eq!(call.path(), ["sessions", "new"]);
        assert_eq!(call.value("name"), Some("api"));
        assert_eq!(call.value("format"), Some("json"));
    }

    #[test]
    fn words_without_a_verb_are_a_prompt() {
        let call = call("fix|the|tests|--timeout=3");
        assert_eq!((call.path(), call.words.len()), (vec![], 3));
        assert_eq!(call.value("timeout"), Some("3"));
    }

    #[test]
    fn a_command_that_is_not_known_is_an_agent_only_where_it_looks_like_one() {
        assert_eq!(call("./my-agent|hello").agent.as_deref(), Some("./my-agent"));
        assert_eq!(call("mine|exec|hello").agent.as_deref(), Some("mine"));
        assert_eq!(call("find|the|bug").agent, None);
        assert_eq!(call("fix a/b please").agent, None);
        assert_eq!(call("--agent|x|a/b|please").words, ["a/b", "please"]);
    }

    #[test]
    fn a_verb_is_a_word_once_the_prompt_has_begun() {
        let call = call("exec|please|cancel|--|--all");
        assert_eq!(call.words, ["please", "cancel", "--all"]);
    }

    #[test]
    fn the_flags_of_a_verb_come_before_those_of_every_command() {
        let call = call("--cwd|/a|sessions|import|x.json|--cwd|/b");
        assert_eq!((call.global("cwd"), call.own("cwd")), (Some("/a"), Some("/b")));
    }

    #[test]
    fn what_is_wrong_is_said() {
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
    fn help_and_version() {
        assert!(matches!(read("--version"), Ok(Parsed::Version)));
        assert!(matches!(read("exec|-h"), Ok(Parsed::Help(verbs)) if verbs.len() == 2));
        assert!(matches!(read("help|sessions|new"), Ok(Parsed::Help(verbs)) if verbs.len() == 3));
    }
}
