//! A program that confines commands for an agent, and does nothing else: `attache agent` does the
//! same with its hidden word.
//!
//! An agent is given its path in `Options::sandbox`. The tests of this crate start it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != attache_host::sandbox::WORD) {
        return ExitCode::from(2);
    }
    // The caller sees an exit code that no shell gives for a command that was found.
    attache_host::sandbox::run(words).map_or(ExitCode::from(126), ExitCode::from)
}
