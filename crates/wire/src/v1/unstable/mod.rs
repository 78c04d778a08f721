//! Types and fields that the specification marks as unstable.

mod auth_status;
mod fork;
mod mcp_message;
mod plan_update;
mod provider;
mod proxy;
mod session_status;
mod subagent;
mod system_prompt;

pub use auth_status::*;
pub use fork::*;
pub use mcp_message::*;
pub use plan_update::*;
pub use provider::*;
pub use proxy::*;
pub use session_status::*;
pub use subagent::*;
pub use system_prompt::*;
