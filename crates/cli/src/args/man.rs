//! The manual page, from the table.

use std::fmt::Write;

use super::flags::Flag;
use super::help::usage;
use super::table::{Command, GLOBAL, TOP};
use crate::error::Kind;

/// The page in the language of man(7).
pub(crate) fn man(environment: &[(&str, &str)], files: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let _ = writeln!(page, ".TH ATTACHE 1 \"\" \"attache {}\" \"User Commands\"", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(page, ".SH NAME\nattache \\- {}", escape(&lower(TOP.about)));
    let _ =
        writeln!(page, ".SH SYNOPSIS\n.B attache\n{}", escape(usage(&[&TOP]).trim_start_matches("attache ")));
    let _ = writeln!(page, ".SH DESCRIPTION\n{}", escape(TOP.details));
    page.push_str(".SH COMMANDS\n");
    for command in TOP.commands {
        command_page(&mut page, &mut vec![&TOP, command]);
    }
    page.push_str(".SH OPTIONS\n");
    let _ = writeln!(page, ".SS \"Prompt\"");
    TOP.own_flags().for_each(|flag| flag_page(&mut page, flag));
    for (title, flags) in GLOBAL {
        let _ = writeln!(page, ".SS \"{title}\"");
        flags.iter().for_each(|flag| flag_page(&mut page, flag));
    }
    page.push_str(".SH EXIT STATUS\n");
    let codes = [
        (0, "The agent answered."),
        (Kind::Runtime.exit_code(), "The agent, the protocol or the system failed."),
        (Kind::Usage.exit_code(), "The command line or a file of settings is wrong."),
        (Kind::Timeout.exit_code(), "A time limit ran out."),
        (Kind::NoSession.exit_code(), "There is no such session."),
        (Kind::PermissionDenied.exit_code(), "Everything that the agent asked for was denied."),
        (Kind::Interrupted.exit_code(), "Interrupted."),
    ];
    for (code, meaning) in codes {
        let _ = writeln!(page, ".TP\n.B {code}\n{meaning}");
    }
    page.push_str(".SH ENVIRONMENT\n");
    for (name, about) in environment {
        let _ = writeln!(page, ".TP\n.B {}\n{}", escape(name), escape(about));
    }
    page.push_str(".SH FILES\n");
    for (name, about) in files {
        let _ = writeln!(page, ".TP\n.I {}\n{}", escape(name), escape(about));
    }
    page.push_str(".SH EXAMPLES\n.nf\n");
    for example in TOP.examples {
        let _ = writeln!(page, "{}", escape(example));
    }
    page.push_str(".fi\n");
    page
}

fn command_page(page: &mut String, commands: &mut Vec<&'static Command>) {
    let Some(command) = commands.last().copied() else { return };
    let _ = writeln!(
        page,
        ".TP\n.B {}\n{}.",
        escape(usage(commands).trim_start_matches("attache ")),
        escape(command.about)
    );
    if !command.details.is_empty() {
        let _ = writeln!(page, "{}", escape(command.details));
    }
    // The flags of a command that has commands are those of the one that is meant without a name.
    if command.commands.is_empty() && command.own_flags().next().is_some() {
        page.push_str(".RS\n");
        command.own_flags().for_each(|flag| flag_page(page, flag));
        page.push_str(".RE\n");
    }
    for inner in command.commands {
        commands.push(inner);
        command_page(page, commands);
        commands.pop();
    }
}

fn flag_page(page: &mut String, flag: &Flag) {
    page.push_str(".TP\n.B ");
    if let Some(short) = flag.short {
        let _ = write!(page, "\\-{short}, ");
    }
    let _ = write!(page, "\\-\\-{}", escape(flag.name));
    if let Some(value) = flag.value {
        let _ = write!(page, " {}", escape(value));
    }
    let _ = writeln!(page, "\n{}.", escape(flag.about));
}

/// A dash that is typed is not a hyphen, and a dot or quote at the start of a line is a command.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_and_every_flag_is_there() {
        let page = man(&[("ATTACHE_HOME", "a")], &[("config.toml", "b")]);
        for command in TOP.commands {
            assert!(page.contains(&escape(command.name)), "{}", command.name);
        }
        for flag in super::super::table::global_flags() {
            assert!(page.contains(&format!("\\-\\-{}", escape(flag.name))), "{}", flag.name);
        }
    }
}
