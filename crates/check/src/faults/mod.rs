//! The unkind scenarios: what must hold when the peer misbehaves. Played only when asked for.

pub mod agent;
pub mod client;
