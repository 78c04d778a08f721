//! The agent with the SDK's client, in memory, with scripted models and files in directories of their own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod history;
mod lent;
mod models;
mod models_faults;
mod models_found;
mod models_logins;
mod models_server;
mod permits;
mod rig;
mod slice;
mod tools;
