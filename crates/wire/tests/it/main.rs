//! The types against the catalogue: examples, presence rules, random values.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod compact;
mod examples;
mod limits;
mod presence;
mod random;
mod setters;
