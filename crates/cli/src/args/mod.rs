//! The command line: static tables, from which the parser, the help, the completions and the man
//! page come.
//!
//! `table.rs`, `groups.rs` and `tools.rs` list the commands, `flags.rs` the flags; `parse.rs` reads
//! a command line by them.

mod complete;
#[cfg_attr(not(unix), allow(dead_code))]
mod flags;
mod groups;
mod help;
mod man;
mod near;
mod parse;
mod table;
mod tools;

pub(crate) use complete::completions;
pub(crate) use flags::{Flags, Hint};
pub(crate) use help::help;
pub(crate) use man::man;
pub(crate) use near::nearest;

/// The longest time that a flag or a setting can have, in seconds: a year.
pub(crate) const LONGEST_TIME: f64 = 31_536_000.0;

pub(crate) use parse::{CommandLine, Parsed, incomplete, parse};
pub(crate) use table::Command;

/// The command whose name is most similar to `word`, if one is similar enough.
pub(crate) fn nearest_command(word: &str) -> Option<&'static str> {
    nearest(word, table::TOP.commands.iter().map(|command| command.name))
}
