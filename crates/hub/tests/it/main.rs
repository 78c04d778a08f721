//! The hub with scripted agents and clients, over links in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod access;
mod agent;
mod complaints;
mod nodes;
mod operate;
#[cfg(unix)]
mod provision;
mod questions;
mod reconnect;
mod rig;
mod roles;
mod sdk_client;
mod sessions;
mod simulation;
mod v2;
