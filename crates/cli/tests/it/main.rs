//! Drives the real program against scripted agents.
//!
//! `world.rs` is a home, a directory and the program in it; the agents are `examples/test_agent`,
//! which does what a script says.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent;
mod agent_api;
mod agent_crash;
mod agent_injection;
mod agent_models;
#[path = "../../../agent/tests/it/models_server.rs"]
#[allow(dead_code, reason = "the tests of the agent use all of it")]
mod agent_models_server;
mod agent_sandbox;
mod agent_wire;
mod asked;
mod auth;
mod auth_terminal;
mod bounds;
mod causes;
mod chat;
mod chat_ask;
mod chat_calm;
mod chat_crash;
mod chat_end;
mod chat_fold;
mod chat_form;
mod chat_habits;
mod chat_hostile;
mod chat_job;
mod chat_keys;
mod chat_named;
mod chat_news;
mod chat_rig;
mod chat_share;
mod chat_undo;
mod chat_v2;
mod check;
mod check_mutants;
mod clean;
mod clean_cases;
mod clean_scripts;
mod clean_tty;
mod client_services;
mod compat;
mod config;
mod credentials;
mod demo;
mod doctor;
mod exec;
mod first_run;
mod formats;
mod guide;
mod guide_agents;
mod hub;
mod hub_nodes;
mod import;
mod log;
mod mcp_server;
mod misbehave;
mod paging;
mod permissions;
mod private_files;
mod prompt;
mod protocol;
mod quirks;
mod recordings;
mod registry;
mod registry_server;
mod remote;
mod remote_guide;
mod second_user;
mod sessions;
mod socket;
mod surface;
mod world;
