//! The manual page, from the table.

use std::fmt::Write;

use super::help::usage;
use super::table::{Flag, GLOBAL, Section, TOP, Verb};
use crate::error::Kind;

/// The page in the language of man(7).
pub(crate) fn man() -> String {
    let mut page = String::new();
    let _ = writeln!(page, ".TH ATTACHE 1 \"\" \"attache {}\" \"User Commands\"", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(page, ".SH NAME\nattache \\- {}", escape(&lower(TOP.about)));
    let _ =
        writeln!(page, ".SH SYNOPSIS\n.B attache\n{}", escape(usage(&[&TOP]).trim_start_matches("attache ")));
    let _ = writeln!(page, ".SH DESCRIPTION\n{}", escape(TOP.more));
    page.push_str(".SH COMMANDS\n");
    for verb in TOP.verbs {
        verb_page(&mut page, &mut vec![&TOP, verb]);
    }
    page.push_str(".SH OPTIONS\n");
    let _ = writeln!(page, ".SS \"Prompt\"");
    TOP.own_flags().for_each(|flag| flag_page(&mut page, flag));
    for section in Section::GLOBAL {
        let _ = writeln!(page, ".SS \"{}\"", section.title());
        GLOBAL.iter().filter(|flag| flag.section == section).for_each(|flag| flag_page(&mut page, flag));
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
    for (name, about) in crate::config::ENVIRONMENT {
        let _ = writeln!(page, ".TP\n.B {}\n{}", escape(name), escape(about));
    }
    page.push_str(".SH FILES\n");
    for (name, about) in crate::config::FILES {
        let _ = writeln!(page, ".TP\n.I {}\n{}", escape(name), escape(about));
    }
    page.push_str(".SH EXAMPLES\n.nf\n");
    for example in TOP.examples {
        let _ = writeln!(page, "{}", escape(example));
    }
    page.push_str(".fi\n");
    page
}

fn verb_page(page: &mut String, verbs: &mut Vec<&'static Verb>) {
    let Some(verb) = verbs.last().copied() else { return };
    let _ = writeln!(
        page,
        ".TP\n.B {}\n{}.",
        escape(usage(verbs).trim_start_matches("attache ")),
        escape(verb.about)
    );
    if !verb.more.is_empty() {
        let _ = writeln!(page, "{}", escape(verb.more));
    }
    // The flags of a verb that has verbs are those of the one that is meant without a name.
    if verb.verbs.is_empty() && verb.own_flags().next().is_some() {
        page.push_str(".RS\n");
        verb.own_flags().for_each(|flag| flag_page(page, flag));
        page.push_str(".RE\n");
    }
    for inner in verb.verbs {
        verbs.push(inner);
        verb_page(page, verbs);
        verbs.pop();
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
        let page = man();
        for verb in TOP.verbs {
            assert!(page.contains(&escape(verb.name)), "{}", verb.name);
        }
        for flag in GLOBAL {
            assert!(page.contains(&format!("\\-\\-{}", escape(flag.name))), "{}", flag.name);
        }
    }
}
