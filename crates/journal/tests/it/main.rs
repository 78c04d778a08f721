//! The laws of the journal, for every backend, and what is special to each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod laws;
mod memory;
mod model;
#[cfg(feature = "nats")]
mod nats;
mod pages;
mod rig;
mod sqlite;
mod sqlite_processes;
