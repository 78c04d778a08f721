//! Scenarios that judge the transports of a server: the checker writes requests and frames itself.
//!
//! Each response is a note in the trace, which is the evidence of findings. `http.rs` is about
//! single requests, `streams.rs` about messages on streams, `ws.rs` about frames, `faults.rs` about
//! clients that harm others, `limits.rs` about floods and refusals.

mod client;
mod faults;
mod http;
pub(crate) mod limits;
mod streams;
mod ws;

pub(crate) use client::end_connections;

use crate::target::Need;
use crate::{Scenario, Transport};

/// The requirement of scenarios about Streamable HTTP.
const HTTP: Need = Need::Transport(Transport::Http);
/// The requirement of scenarios about WebSocket.
const WEB_SOCKET: Need = Need::Transport(Transport::WebSocket);

pub(super) fn scenarios() -> Vec<Scenario> {
    [http::SCENARIOS, streams::SCENARIOS, ws::SCENARIOS, faults::SCENARIOS, limits::SCENARIOS].concat()
}
