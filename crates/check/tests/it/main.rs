//! One binary for all integration tests of the crate.

mod rules;
mod schema;
