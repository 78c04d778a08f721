//! Protocol version 1.

mod agent_capabilities;
mod auth;
mod client_capabilities;
mod content;
mod ids;
mod initialize;
mod nes_capabilities;

pub use agent_capabilities::*;
pub use auth::*;
pub use client_capabilities::*;
pub use content::*;
pub use ids::*;
pub use initialize::*;
pub use nes_capabilities::*;
