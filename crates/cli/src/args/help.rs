//! The help of a command, from the table.

use std::fmt::Write;

use super::flags::Flag;
use super::table::{Command, GLOBAL, Positional};

/// How wide the help is, unless the terminal is narrower.
const WIDTH: usize = 100;

/// The help of the innermost of `commands`.
pub(crate) fn help(commands: &[&'static Command], width: usize) -> String {
    let Some(command) = commands.last() else { return String::new() };
    let width = width.clamp(40, WIDTH);
    let top = commands.len() == 1;
    let mut text = String::new();
    wrap(&mut text, command.about, 0, width);
    let _ = writeln!(text, "\nUsage: {}", usage(commands));
    if !command.details.is_empty() {
        text.push('\n');
        wrap(&mut text, command.details, 0, width);
    }
    if !top && !command.positionals.is_empty() {
        section(
            &mut text,
            "Arguments",
            command.positionals.iter().map(|word| (word.name.to_owned(), word.about)),
            width,
        );
    }
    if !command.commands.is_empty() {
        let commands = command.commands.iter().map(|command| (command.name.to_owned(), command.about));
        section(&mut text, "Commands", commands, width);
    }
    if command.own_flags().next().is_some() {
        let title = if top { "Prompt" } else { "Options" };
        section(&mut text, title, command.own_flags().map(row), width);
    }
    if top {
        for (title, flags) in GLOBAL {
            section(&mut text, title, flags.iter().map(row), width);
        }
    } else {
        text.push('\n');
        wrap(&mut text, "Options that every command takes: `attache --help`.", 0, width);
    }
    if !command.examples.is_empty() {
        text.push_str("\nExamples:\n");
        for example in command.examples {
            let _ = writeln!(text, "  {example}");
        }
    }
    text
}

/// `attache [AGENT] sessions new [OPTIONS]`
pub(crate) fn usage(commands: &[&'static Command]) -> String {
    let mut text = String::from("attache");
    if commands.last().is_some_and(|command| command.agent) {
        text.push_str(" [AGENT]");
    }
    for command in commands.iter().skip(1) {
        let _ = write!(text, " {}", command.name);
    }
    let Some(command) = commands.last() else { return text };
    if !command.commands.is_empty() {
        text.push_str(" [COMMAND]");
    }
    text.push_str(" [OPTIONS]");
    for word in command.positionals {
        let _ = write!(text, " {}", shape(word));
    }
    text
}

fn shape(word: &Positional) -> String {
    let name = word.name.to_uppercase();
    match (word.required, word.many) {
        (true, false) => name,
        (true, true) => format!("{name}…"),
        (false, false) => format!("[{name}]"),
        (false, true) => format!("[{name}…]"),
    }
}

fn row(flag: &'static Flag) -> (String, &'static str) {
    let mut name = match flag.short {
        Some(short) => format!("-{short}, --{}", flag.name),
        None => format!("    --{}", flag.name),
    };
    if let Some(value) = flag.value {
        let _ = write!(name, " {value}");
    }
    (name, flag.about)
}

/// A titled list in two columns; on a narrow terminal the second one moves below the first.
fn section(text: &mut String, title: &str, rows: impl Iterator<Item = (String, &'static str)>, width: usize) {
    let rows: Vec<(String, &str)> = rows.collect();
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let column = longest + 4;
    let _ = write!(text, "\n{title}:\n");
    for (name, about) in rows {
        if column + 30 > width {
            let _ = writeln!(text, "  {name}");
            wrap(text, about, 6, width);
        } else {
            let _ = write!(text, "  {name:<longest$}  ");
            wrap_from(text, about, column, column, width);
        }
    }
}

fn wrap(text: &mut String, words: &str, indent: usize, width: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
    wrap_from(text, words, indent, indent, width);
}

/// Writes words from column `at` on, and further lines from column `indent` on.
fn wrap_from(text: &mut String, words: &str, mut at: usize, indent: usize, width: usize) {
    let mut first = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !first && at + 1 + length > width {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            at = indent;
        } else if !first {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += length;
        first = false;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::table::TOP;
    use super::*;

    #[test]
    fn no_line_is_wider_than_asked_for() {
        for width in [40, 60, 100] {
            for command in TOP.commands {
                // Command lines are not wrapped.
                for line in help(&[&TOP, command], width).lines().take_while(|line| *line != "Examples:") {
                    let fixed = line.starts_with("Usage") || line.contains("--");
                    assert!(fixed || line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn the_usage_shows_what_a_verb_takes() {
        let sessions = TOP.find("sessions");
        let import = sessions.and_then(|command| command.find("import"));
        let commands: Vec<&'static Command> = [Some(&TOP), sessions, import].into_iter().flatten().collect();
        assert_eq!(usage(&commands), "attache [AGENT] sessions import [OPTIONS] ARCHIVE");
    }
}
