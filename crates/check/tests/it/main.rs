//! One binary for all integration tests of the crate.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod accusations;
mod agent_mutants;
mod client_mutants;
mod coverage;
mod engine;
mod listener_mutants;
mod matrix;
mod report;
mod rules;
mod schema;
mod server_mutants;
mod sources;
mod talk;
mod watchers;
