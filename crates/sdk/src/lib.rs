//! The Agent Client Protocol for people who write agents and editors.
//!
//! An agent is a value that answers prompts:
//!
//! ```no_run
//! use attache::agent::{AgentSession, Turn, serve};
//! use attache::{Link, Prompt, Result, StopReason};
//!
//! struct Echo;
//!
//! impl AgentSession for Echo {
//!     async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
//!         turn.say(prompt.text()).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<()> {
//!     serve(|_| async { Ok(Echo) }, Link::stdio()).await
//! }
//! ```
//!
//! A client starts an agent and reads the events of a turn in the order in which they were sent; see [`client`].
//! A [`proxy`] stands between the two and touches only what it was asked to.
//!
//! What this crate keeps so that its users cannot break it: the order of messages, one answer per request, cancelled
//! turns that end as cancelled, permissions that are answered, capabilities that are advertised exactly when they
//! are served. The rules behind that are named in the code (`CANCEL-05`) and listed in `docs/rules.md`.
//!
//! Read [`agent`] or [`client`] first. The exact messages are in [`wire`], the transports in [`Link`].

pub mod agent;
mod check;
pub mod client;
mod error;
mod extension;
mod id;
mod prompt;
pub mod proxy;
mod race;
mod task;

#[cfg(unix)]
pub use attache_conn::listen_unix;
pub use attache_conn::process::{Command, Stderr};
pub use attache_conn::{
    Backlog, CancelToken, Closed, Ending, Flow, Limits, Link, Listener, Reason, listen_tcp,
};
pub use attache_rpc::{ErrorObject, code};
pub use attache_wire as wire;
pub use attache_wire::v1::{ContentBlock, SessionId, StopReason};
pub use attache_wire::{Json, Meta, Notification, Patch, Request};
pub use error::{Error, Result};
#[doc(hidden)]
pub use extension::__private;
pub use prompt::Prompt;
