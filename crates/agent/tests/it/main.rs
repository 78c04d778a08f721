//! The agent with the SDK's client, in memory, with scripted models and files in directories of
//! their own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod background;
mod cancel;
mod commands;
mod compact;
mod context;
mod diagnostics;
mod fetch;
mod history;
mod hooks;
mod injection;
mod limits;
mod models;
mod models_faults;
mod models_found;
mod models_logins;
mod models_server;
mod modes;
mod permits;
mod prompts;
mod provided;
mod rig;
mod sandbox;
mod servers;
mod servers_hostile;
mod skills;
mod slice;
mod sloppy;
mod small_windows;
mod subtasks;
mod suggestions;
mod tasks;
mod tasks_real;
mod tools;
mod trust;
mod version_2;
mod web_search;
