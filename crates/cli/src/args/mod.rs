//! The command line: one static table, from which the parser, the help, the completions and the man page come.
//!
//! `table.rs` and `groups.rs` are what there is, `parse.rs` reads a command line by it, the rest writes it out.

#[cfg(unix)]
mod agent;
#[cfg(unix)]
mod checking;
mod complete;
mod groups;
mod help;
mod man;
mod near;
mod parse;
mod recordings;
mod table;

pub(crate) use complete::completions;
pub(crate) use help::help;
pub(crate) use man::man;
pub(crate) use near::nearest;
pub(crate) use parse::{Call, Parsed, parse};
pub(crate) use table::{Hint, Verb};

/// The command whose name is nearly this.
pub(crate) fn nearest_command(word: &str) -> Option<&'static str> {
    nearest(word, table::TOP.verbs.iter().map(|verb| verb.name))
}
