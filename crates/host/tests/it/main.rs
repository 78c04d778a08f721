//! Capabilities that a client provides, with real files, real processes and real agents.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs)]

mod audit;
mod bounded;
mod budget;
mod commands;
mod decide;
mod exhaustion;
mod files_change;
mod files_read;
mod files_write;
mod full_disk;
mod glob;
mod guard;
mod jail;
mod kit;
mod left_behind;
mod memory;
mod proxy;
mod proxy_sandbox;
mod races;
mod ring;
mod rules;
mod sandbox;
mod sandbox_attacks;
mod sandbox_free;
mod sandbox_kit;
mod sandbox_paths;
mod sandbox_processes;
mod secrets;
mod served;
mod terminals;
mod trust;
