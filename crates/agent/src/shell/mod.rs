//! A command line, read as a shell would read it, to decide whether it only looks.
//!
//! A wrong "yes" runs something that nobody allowed, a wrong "no" costs one question. So everything here errs towards the
//! question: what the parser does not know is *unclear*, a flag that is not in the table is a question, a path that may lead
//! out of the session's roots is a question. Nothing looks for substrings: `echo "a;b"` is one harmless command and
//! `cat x;rm y` is two.
//!
//! Read `parse.rs`, then `read_only.rs` (the judge), then `known.rs` (the table).

mod known;
mod parse;
mod read_only;

pub use parse::{Command, Line, Unclear, Word};
pub use read_only::{NeedsAsking, harmless, only_reads};

/// What a command that nobody was asked about finds in its environment: settings of the project's own repository must
/// not make a harmless `git status` run a program, and nothing may wait in a pager.
pub const QUIET_ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "log.showSignature"),
    ("GIT_CONFIG_VALUE_2", "false"),
];
