//! Drives the real program against scripted agents.
//!
//! `world.rs` is a home, a directory and the program in it; the agents are `examples/test_agent`, which does what a script says.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chat;
mod chat_rig;
mod config;
mod exec;
mod formats;
mod lent;
mod misbehave;
mod permissions;
mod prompt;
mod registry;
mod registry_server;
mod sessions;
mod surface;
mod world;
