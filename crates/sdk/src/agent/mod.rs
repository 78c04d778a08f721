//! The agent side: answer prompts, report tool calls, ask for permission, use files and terminals
//! of the client.
//!
//! Implement [`AgentSession`], which answers prompts, and pass [`serve`] a function that opens
//! sessions. Install further services on [`Agent`]; installing a service advertises it. Inside a
//! prompt everything goes through [`Turn`]: text, plans, tool calls, permission requests, and the
//! files and terminals of the client, which are `None` if it provides none.
//!
//! ```
//! use attache::agent::{AgentSession, Turn, usual_options};
//! use attache::model::ToolKind;
//! use attache::{Prompt, Result, StopReason};
//!
//! struct Shell;
//!
//! impl AgentSession for Shell {
//!     async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
//!         let Some(terminals) = turn.terminals() else {
//!             turn.say("Your editor provides no terminals.").await?;
//!             return Ok(StopReason::Refusal);
//!         };
//!         let tool = turn.tool(prompt.text()).kind(ToolKind::Execute).start().await?;
//!         if !turn.ask(&tool, usual_options()).await?.is_allowed() {
//!             tool.fail("not allowed").await?;
//!             return Ok(StopReason::EndTurn);
//!         }
//!         tool.run().await?;
//!         let terminal = terminals.command("sh").args(["-c", &*prompt.text()]).start().await?;
//!         tool.show_terminal(&terminal).await?;
//!         terminal.wait().await?; // ends with `Err(Cancelled)` if the user cancels; the terminal is released by its drop
//!         tool.complete([]).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! ```
//!
//! The SDK owns the session table, cancel tokens, the order of messages, capability checks, the
//! login gate and version negotiation.
//! [`examples/echo_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/echo_agent.rs)
//! and
//! [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs)
//! are complete programs.

// Reading order: `builder`, `session`, `dispatch`, `turn_task`, `turn`, `tool`, `tool_state`.
// Never: dispatch waits; an update of a turn follows its response; an update of a session precedes
// the response that names it, or follows its end; user code runs under a lock.

mod ask;
mod auth;
mod background;
mod builder;
mod client;
mod content;
mod core;
mod dispatch;
#[cfg(feature = "drafts")]
mod drafts;
mod handle;
mod initialize;
mod manage;
mod message;
mod method;
mod open;
mod options;
mod own_terminal;
mod plan;
mod provided;
mod record;
mod sender;
mod session;
mod shared;
mod state;
mod steering;
mod table;
mod tool;
mod tool_state;
mod turn;
mod turn_state;
mod turn_task;
#[cfg(feature = "unstable")]
mod unstable;
mod v2;

use std::future::Future;

use attache_conn::{IncomingRequest, Responder};
use attache_rpc::ErrorObject;
use attache_wire::{Fields, Json, Request};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

pub use ask::{Choice, Forms, Links, Question, usual_options};
pub use attache_wire::v2::ToolCallStatus as ToolStatus;
pub use auth::Auth;
pub use background::BackgroundTool;
pub use builder::Agent;
pub use client::ClientHandle;
pub use content::ToolContent;
#[cfg(feature = "drafts")]
pub use drafts::{DocumentEvent, NextEdits};
pub use handle::SessionHandle;
pub use message::Message;
pub use own_terminal::{OwnTerminal, OwnTerminalBuilder, TerminalExit};
pub use plan::NamedPlan;
pub use provided::{ClientTerminal, ClientTerminals, FileReader, FileWriter, TerminalBuilder};
pub use session::{AgentSession, IntoOpenedSession, OpenRequest, OpenedSession, OptionValue};
pub use state::StatefulAgent;
pub use tool::{Tool, ToolBuilder, block};
pub use tool_state::ToolChange;
pub use turn::{DetachedTurn, Turn};
#[cfg(feature = "unstable")]
pub use unstable::{Providers, SystemPromptSupport};
pub use v2::translate;

use crate::{Link, Result};

/// Serves one client over a link with sessions that `open` creates, and no further services.
///
/// Example:
/// [`examples/echo_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/echo_agent.rs).
pub async fn serve<F, Fut, O>(open: F, link: Link) -> Result<()>
where
    F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
    O: IntoOpenedSession + 'static,
{
    Agent::new(open).serve(link).await
}

/// Decodes a request and opens it. Version 2 has no peers with known mistakes, so nothing is
/// repaired there.
fn read<R: Request>(request: IncomingRequest<'_>, in_v2: bool) -> Option<(R, Responder)> {
    request.decode(attache_wire::from_text, |params| match in_v2 {
        true => attache_wire::decode(params).map_err(invalid_params),
        false => decode(params),
    })
}

/// Decodes params tolerantly.
fn decode<R: Request>(params: Option<&RawValue>) -> Result<R, ErrorObject> {
    attache_wire::v1::decode_tolerant(R::METHOD, params).map_err(invalid_params)
}

// RPC-13: params that do not fit are refused.
fn invalid_params(error: serde_json::Error) -> ErrorObject {
    ErrorObject::invalid_params(error.to_string())
}

/// Reads one member of params before their type is known. Only small requests are read twice.
fn member<T: DeserializeOwned>(params: &str, name: &str) -> Option<T> {
    let members: Fields<Json> = serde_json::from_str(params).ok()?;
    members.get(name)?.parse().ok()
}
