//! The measuring driver: an ACP client made of raw pipes and hand-made JSON lines, so cheap that
//! what is measured is the agent at the other end.
//!
//! Read [`line`] (how a line is looked at without parsing it), then [`agent`] (the process under
//! test), [`net`] (servers), then [`requests`] and [`streams`] (the measurements themselves).

pub mod agent;
pub mod held;
pub mod line;
pub mod net;
pub mod requests;
mod socket;
pub mod streams;
pub mod tls;
