//! One binary for all integration tests of the crate.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod agent_mutants;
mod client_mutants;
mod coverage;
mod engine;
mod matrix;
mod report;
mod rules;
mod schema;
mod talk;
mod watchers;
