//! Fault injection: scenarios in which the checker misbehaves. They run only with `--faults`.

pub(super) mod agent;
pub(super) mod client;
pub(super) mod listener;
