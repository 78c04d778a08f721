//! Protocol version 1.

mod agent_capabilities;
mod auth;
mod client_capabilities;
mod command;
mod content;
mod fs;
mod ids;
mod initialize;
mod nes_capabilities;
mod notice;
mod permission;
mod plan;
mod prompt;
mod protocol;
mod subagent;
mod tool_call;
mod update;
mod usage;

pub use agent_capabilities::*;
pub use auth::*;
pub use client_capabilities::*;
pub use command::*;
pub use content::*;
pub use fs::*;
pub use ids::*;
pub use initialize::*;
pub use nes_capabilities::*;
pub use notice::*;
pub use permission::*;
pub use plan::*;
pub use prompt::*;
pub use protocol::*;
pub use subagent::*;
pub use tool_call::*;
pub use update::*;
pub use usage::*;
