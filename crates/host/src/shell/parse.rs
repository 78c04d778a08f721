//! A parser for the plain part of POSIX shell: simple commands joined by `|`, `&&`, `||`, `;` and
//! line ends.

use std::fmt;

/// The commands of a line, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The simple commands.
    pub commands: Vec<Command>,
}

/// What stands before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operator {
    /// Nothing, `;` or a line end.
    #[default]
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// What joins it to the command before it.
    pub operator: Operator,
    /// The program and its arguments, without quotes.
    pub words: Vec<Word>,
    /// `NAME=value` in front of the program.
    pub assignments: Vec<String>,
    /// Redirections, e.g. `2>&1` or `>out`.
    pub redirections: Vec<Redirection>,
}

/// One word after quoting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// Its text.
    pub text: String,
    /// Whether a shell might expand it: an unquoted `*`, `?`, `[`, `{`, `~`, `^`, or `=` at its
    /// beginning.
    pub expands: bool,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Whether something is read (`<`) or written.
    pub reads: bool,
    /// Where from or where to; `&1` for a descriptor.
    pub target: Word,
}

impl Redirection {
    /// Whether it neither creates nor changes a file: `2>&1`, `>/dev/null`.
    pub fn is_harmless(&self) -> bool {
        !self.target.expands
            && match self.target.text.as_str() {
                "&1" | "&2" => !self.reads,
                "/dev/null" => true,
                _ => false,
            }
    }
}

/// The reason why a line cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unclear(pub &'static str);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Line {
    /// Parses a line.
    ///
    /// # Errors
    /// [`Unclear`]: substitutions, variables, compound commands, here documents, background jobs,
    /// unfinished quotes.
    pub fn parse(text: &str) -> Result<Line, Unclear> {
        Parser {
            rest: text.chars().peekable(),
            line: Line { commands: Vec::new() },
            command: Command::default(),
            word: None,
            operator: None,
        }
        .run()
    }
}

/// Words that begin something compound when they stand where a program would.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
    "select", "function", "time", "coproc", "{", "}", "!", "[[", "]]", "((", "))",
];

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: Line,
    command: Command,
    word: Option<Word>,
    /// A `|`, `&&` or `||` that still needs a command after it.
    operator: Option<Operator>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Line, Unclear> {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' => self.end_word()?,
                '\n' | ';' => self.end_command()?,
                '\r' => return Err(Unclear("a carriage return")),
                '|' => {
                    if self.rest.next_if_eq(&'&').is_some() {
                        return Err(Unclear("`|&`"));
                    }
                    let operator = match self.rest.next_if_eq(&'|') {
                        Some(_) => Operator::Or,
                        None => Operator::Pipe,
                    };
                    self.end_joined(operator)?;
                }
                '&' => {
                    if self.rest.next_if_eq(&'&').is_none() {
                        return Err(Unclear("a job in the background (`&`)"));
                    }
                    self.end_joined(Operator::And)?;
                }
                '<' | '>' => self.redirect(c)?,
                '\'' => self.single_quotes()?,
                '"' => self.double_quotes()?,
                '\\' => self.escape()?,
                '$' => return Err(Unclear("a variable or a substitution (`$`)")),
                '`' => return Err(Unclear("a substitution (backquotes)")),
                '(' | ')' => return Err(Unclear("parentheses")),
                '#' if self.word.is_none() => return Err(Unclear("a comment")),
                '\0' => return Err(Unclear("a zero byte")),
                // Also in the middle: `x=~/y` and `a:~` are expanded by some shells.
                '*' | '?' | '[' | '{' | '~' | '^' => self.push(c, true),
                // zsh looks up the program that follows.
                '=' if self.word.is_none() => self.push(c, true),
                c => self.push(c, false),
            }
        }
        self.end_command()?;
        if self.operator.is_some() {
            return Err(Unclear("an operator without a command"));
        }
        if self.line.commands.is_empty() { Err(Unclear("no command")) } else { Ok(self.line) }
    }

    fn push(&mut self, c: char, expands: bool) {
        let word = self.word.get_or_insert_default();
        word.text.push(c);
        word.expands |= expands;
    }

    fn escape(&mut self) -> Result<(), Unclear> {
        match self.rest.next() {
            Some('\n') => Ok(()),
            Some(c) => {
                self.push(c, false);
                Ok(())
            }
            None => Err(Unclear("a backslash at the end")),
        }
    }

    fn single_quotes(&mut self) -> Result<(), Unclear> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.push(c, false),
                None => return Err(Unclear("a quote without its end")),
            }
        }
    }

    fn double_quotes(&mut self) -> Result<(), Unclear> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('$') => return Err(Unclear("a variable or a substitution (`$`)")),
                Some('`') => return Err(Unclear("a substitution (backquotes)")),
                // Within double quotes only these four lose their meaning by a backslash.
                Some('\\') => match self.rest.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.push(c, false),
                    Some('\n') => {}
                    Some(c) => {
                        self.push('\\', false);
                        self.push(c, false);
                    }
                    None => return Err(Unclear("a quote without its end")),
                },
                // Interactive shells expand it.
                Some('!') => return Err(Unclear("an exclamation mark in double quotes")),
                Some(c) => self.push(c, false),
                None => return Err(Unclear("a quote without its end")),
            }
        }
    }

    fn redirect(&mut self, c: char) -> Result<(), Unclear> {
        // `2>` : a number right before it belongs to it; another word ends here.
        match self.word.take() {
            Some(word) if !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit()) => {}
            Some(word) => {
                self.word = Some(word);
                self.end_word()?;
            }
            None => {}
        }
        let reads = c == '<';
        match self.rest.peek() {
            Some('<') => return Err(Unclear("a here document")),
            Some('(') => return Err(Unclear("a process substitution")),
            Some('>') if reads => return Err(Unclear("`<>`")),
            Some('>' | '|') => {
                self.rest.next();
            }
            _ => {}
        }
        let mut target = Word::default();
        if self.rest.next_if_eq(&'&').is_some() {
            target.text.push('&');
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !"|&;<>()".contains(*c)) {
            // A target that needs quoting is a file, and a redirection to a file is never
            // read-only.
            target.expands |= "*?[{~$`'\"\\".contains(c);
            target.text.push(c);
        }
        if target.text.is_empty() || target.text == "&" {
            return Err(Unclear("a redirection to nowhere"));
        }
        self.command.redirections.push(Redirection { reads, target });
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), Unclear> {
        let Some(word) = self.word.take() else { return Ok(()) };
        if self.command.words.is_empty() {
            if RESERVED.contains(&word.text.as_str()) {
                return Err(Unclear("a compound command"));
            }
            if is_assignment(&word.text) {
                self.command.assignments.push(word.text);
                return Ok(());
            }
        }
        self.command.words.push(word);
        Ok(())
    }

    /// Ends a command that another one must follow.
    fn end_joined(&mut self, operator: Operator) -> Result<(), Unclear> {
        let before = self.line.commands.len();
        self.end_command()?;
        if self.line.commands.len() == before {
            return Err(Unclear("an operator without a command"));
        }
        self.operator = Some(operator);
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), Unclear> {
        self.end_word()?;
        let mut command = std::mem::take(&mut self.command);
        if command != Command::default() {
            command.operator = self.operator.take().unwrap_or_default();
            self.line.commands.push(command);
        }
        Ok(())
    }
}

/// `NAME=…`, also `NAME+=…` and `NAME[1]=…`.
fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    !name.is_empty()
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let line = Line::parse(text).unwrap();
        line.commands.into_iter().map(|c| c.words.into_iter().map(|w| w.text).collect()).collect()
    }

    #[test]
    fn separators_inside_quotes_are_text() {
        assert_eq!(words(r#"echo "a;b" 'c && d' e\;f"#), [["echo", "a;b", "c && d", "e;f"]]);
        assert_eq!(words(r#"echo "a\"b\n" ''"#), [["echo", "a\"b\\n", ""]]);
    }

    #[test]
    fn every_command_of_a_line_is_seen() {
        let all = words("ls|wc -l;rm x&&cat y||id\ntrue");
        let programs: Vec<_> = all.iter().map(|c| c[0].as_str()).collect();
        assert_eq!(programs, ["ls", "wc", "rm", "cat", "id", "true"]);
    }

    #[test]
    fn hidden_commands_are_unclear() {
        for text in [
            "echo $(id)",
            "echo `id`",
            "echo \"$(id)\"",
            "echo \"`id`\"",
            "cat <(id)",
            "id >(cat)",
            "$x",
            "echo ${x}",
            "(id)",
            "id &",
            "if id; then ls; fi",
            "while true; do id; done",
            "{ id; }",
            "f() { id; }",
            "cat <<E\nx\nE",
            "! id",
            "echo 'a",
            "echo \"a",
            "echo a\\",
            "[[ -f x ]]",
            "id |& cat",
            "ls # x",
            "",
            "  ",
            "&& id",
            "ls &&",
            "ls | | wc",
            "echo \"!x\"",
            "a\0b",
            "ls <> x",
            "time rm x",
        ] {
            assert!(Line::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn assignments_and_redirections_stand_beside_the_words() {
        let line = Line::parse("A=1 B+=2 ls -l 2>&1 >out <in >>more 2>/dev/null").unwrap();
        let [command] = line.commands.as_slice() else { panic!("{line:?}") };
        assert_eq!(command.assignments, ["A=1", "B+=2"]);
        assert_eq!(command.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>(), ["ls", "-l"]);
        let harmless: Vec<bool> = command.redirections.iter().map(Redirection::is_harmless).collect();
        assert_eq!(harmless, [true, false, false, false, true]);
        assert!(Line::parse("ls >").is_err());
    }

    #[test]
    fn a_number_before_a_redirection_is_not_an_argument() {
        let line = Line::parse("head -5 x 2>y").unwrap();
        assert_eq!(line.commands[0].words.len(), 3);
        // …but a word that only ends in a digit is.
        let line = Line::parse("cat file2>y").unwrap();
        assert_eq!(line.commands[0].words[1].text, "file2");
    }

    #[test]
    fn unquoted_patterns_are_marked() {
        let line = Line::parse("ls *.rs '*.rs' ~/x a{b,c} \\*").unwrap();
        let expands: Vec<bool> = line.commands[0].words.iter().map(|w| w.expands).collect();
        assert_eq!(expands, [false, true, false, true, true, false]);
    }
}
