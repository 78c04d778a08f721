//! Tests over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod foreign;
mod kit;
mod reconnect;
mod remote;
mod server_access;
mod server_bytes;
mod server_faults;
mod server_http;
mod server_limits;
mod server_ws;
mod ws;
