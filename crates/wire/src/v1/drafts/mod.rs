//! Types that only earlier drafts had and that some agents and clients still use.

mod auth_env_var;
mod document;
mod mcp_connection;
mod model;
mod nes;
mod nes_capabilities;

pub use auth_env_var::*;
pub use document::*;
pub use mcp_connection::*;
pub use model::*;
pub use nes::*;
pub use nes_capabilities::*;
