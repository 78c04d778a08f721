//! Protocol version 2, a draft: any release may follow changes of the specification.
//!
//! Differences from [`v1`](crate::v1) that concern every type:
//!
//! - Enums and tagged unions are open: an unlisted value is kept and written back, in `Other`. A
//!   listed tag with a malformed payload is an error and never becomes `Other`.
//! - Updates of messages, tool calls, terminals and sessions have three states per member, as
//!   [`Patch`](crate::Patch): absent stays, `null` clears, a value replaces. Their metadata is
//!   patched by key ([`apply_by_key`](crate::Patch::apply_by_key)).
//! - Capabilities are objects: present means yes.
//!
//! Types that read and write the same JSON in both versions are those of version 1, exported again;
//! formats that only annotate a string, such as URIs, make no difference. Where only the types of
//! members differ, both versions compile the same table, from `both/`.
//!
//! The feature `unstable` adds the types and fields that the specification marks as unstable. There
//! are no drafts.

mod agent_capabilities;
mod auth;
mod client_capabilities;
mod command;
mod config;
mod content;
mod diff;
mod elicitation;
mod elicitation_schema;
mod elicitation_value;
mod ids;
mod initialize;
mod listing;
mod mcp;
mod message;
mod notice;
mod permission;
mod plan;
mod prompt;
mod protocol;
mod session;
mod set_config;
mod state;
mod terminal;
mod tool_call;
mod update;
mod usage;

#[cfg(feature = "unstable")]
mod unstable;

#[cfg(feature = "unstable")]
pub use unstable::*;

pub use crate::Fields;
pub use agent_capabilities::*;
pub use auth::*;
pub use client_capabilities::*;
pub use command::*;
pub use config::*;
pub use content::*;
pub use diff::*;
pub use elicitation::*;
pub use elicitation_schema::*;
pub use elicitation_value::*;
pub use ids::*;
pub use initialize::*;
pub use listing::*;
pub use mcp::*;
pub use message::*;
pub use notice::*;
pub use permission::*;
pub use plan::*;
pub use prompt::*;
pub use protocol::*;
pub use session::*;
pub use set_config::*;
pub use state::*;
pub use terminal::*;
pub use tool_call::*;
pub use update::*;
pub use usage::*;
