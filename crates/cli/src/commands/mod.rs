//! Commands that no other module uses.

pub(crate) mod agents;
#[cfg(unix)]
pub(crate) mod check;
pub(crate) mod config;
#[cfg(unix)]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod hub;
pub(crate) mod import;
#[cfg(unix)]
pub(crate) mod mcp_server;
pub(crate) mod permissions;
pub(crate) mod recordings;
pub(crate) mod registry;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod top;
