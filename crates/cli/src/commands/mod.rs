//! Commands that only read or change what other modules keep.

pub(crate) mod agents;
pub(crate) mod config;
pub(crate) mod registry;
