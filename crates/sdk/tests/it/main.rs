//! The SDK over links in memory, against scripted peers. The clock is paused: nothing
//! sleeps, and a wait that would last for ever fails at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_background;
mod agent_begin;
mod agent_both;
mod agent_cancel;
mod agent_extra;
mod agent_flow;
mod agent_gates;
mod agent_hello;
mod agent_manage;
mod agent_open;
mod agent_quirks;
mod agent_rig;
mod agent_state;
mod agent_steering;
mod agent_tool;
mod agent_turn;
mod agent_v2;
mod bridge;
mod client_ask;
mod client_bounds;
mod client_cancel;
mod client_connect;
mod client_gates;
mod client_lines;
mod client_negotiation;
mod client_parts;
mod client_quirks;
#[cfg(feature = "http")]
mod client_remote;
mod client_serve;
mod client_session;
mod client_stress;
mod client_turn;
mod client_v2;
mod docs;
mod guide_tables;
mod handler_errors;
mod proxy_relay;
mod round_trip;
mod script;
mod turn_events;
mod twin;
