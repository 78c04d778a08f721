//! The unkind scenarios: what must hold when the peer misbehaves. Played only when asked for.

pub(super) mod agent;
pub(super) mod client;
