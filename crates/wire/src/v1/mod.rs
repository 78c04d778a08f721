//! Protocol version 1.
//!
//! The stable part is always available. The feature `unstable` adds the types and fields that the
//! specification marks as unstable; `drafts` adds those that only earlier drafts had and that some
//! agents and clients still use.

mod agent_capabilities;
mod auth;
mod client_capabilities;
mod command;
mod config;
mod content;
mod elicitation;
mod elicitation_schema;
mod fs;
pub(crate) mod idle_reason;
mod ids;
mod initialize;
mod listing;
mod mcp;
mod mode;
mod notice;
mod permission;
mod plan;
pub(crate) mod plan_id;
mod prompt;
mod protocol;
mod session;
mod set_config;
mod terminal;
mod tolerant;
mod tool_call;
mod update;
mod usage;

#[cfg(feature = "drafts")]
mod drafts;
#[cfg(feature = "unstable")]
mod unstable;

#[cfg(feature = "drafts")]
pub use drafts::*;
#[cfg(feature = "unstable")]
pub use idle_reason::*;
#[cfg(feature = "unstable")]
pub use plan_id::*;
#[cfg(feature = "unstable")]
pub use unstable::*;

pub use crate::Fields;
pub use agent_capabilities::*;
pub use auth::*;
pub use client_capabilities::*;
pub use command::*;
pub use config::*;
pub use content::*;
pub use elicitation::*;
pub use elicitation_schema::*;
pub use fs::*;
pub use ids::*;
pub use initialize::*;
pub use listing::*;
pub use mcp::*;
pub use mode::*;
pub use notice::*;
pub use permission::*;
pub use plan::*;
pub use prompt::*;
pub use protocol::*;
pub use session::*;
pub use set_config::*;
pub use terminal::*;
pub use tolerant::*;
pub use tool_call::*;
pub use update::*;
pub use usage::*;
