//! Shell command lines: what they run, and whether they only read.
//!
//! A wrong "yes" runs something that no one allowed, a wrong "no" costs one question. So everything
//! here errs towards the question: a line that the parser does not fully understand is *unclear*, a
//! flag that is not in the table is a question, a path that may lead out of the session's
//! directories is a question. Nothing searches for substrings: `echo "a;b"` is one command and `cat
//! x;rm y` is two.
//!
//! The table of read-only commands is a convenience, not the guard: such a command still runs
//! confined to a read-only view (see [`crate::sandbox`]).
//!
//! Reading order: `parse.rs`, `read_only.rs`, `known.rs` (the table).

mod known;
mod parse;
mod read_only;

pub use parse::{Command, Line, Operator, Redirection, Unclear, Word};
pub use read_only::{NotReadOnly, check_read_only, is_read_only};
