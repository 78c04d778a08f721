//! The peers as programs. Their `main` functions are here so that other packages can build the same
//! programs.

pub mod agent;
pub mod client;
