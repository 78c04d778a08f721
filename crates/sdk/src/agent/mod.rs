//! The agent's side.
//!
//! The author implements [`AgentSession`], which answers prompts, and hands [`serve`] a function that opens sessions. Services
//! beyond that are installed on [`Agent`]; installing one is what advertises it. Inside a prompt everything goes through
//! [`Turn`]: text, plans, tool calls, permission questions, and the files and terminals that the client lends, which are
//! `None` when it does not.
//!
//! ```
//! use attache::agent::{AgentSession, Turn, usual_options};
//! use attache::wire::v1::ToolKind;
//! use attache::{Prompt, Result, StopReason};
//!
//! struct Shell;
//!
//! impl AgentSession for Shell {
//!     async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
//!         let Some(terminals) = turn.terminals() else {
//!             turn.say("Your editor lends no terminals.").await?;
//!             return Ok(StopReason::BeginError);
//!         };
//!         let tool = turn.tool(prompt.text()).kind(ToolKind::Execute).start().await?;
//!         if !turn.ask(&tool, usual_options()).await?.is_allowed() {
//!             tool.fail("not allowed").await?;
//!             return Ok(StopReason::EndTurn);
//!         }
//!         tool.run().await?;
//!         let terminal = terminals.command("sh").args(["-c".to_owned(), prompt.text()]).start().await?;
//!         tool.show_terminal(&terminal).await?;
//!         terminal.wait().await?; // ends with `Err(Cancelled)` if the user cancels; the terminal is released by its drop
//!         tool.complete([]).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! ```
//!
//! The SDK owns the session table, cancel tokens, the order of messages, capability checks, the login gate, version
//! negotiation, unknown ids and second prompts. Reading order of the source: `builder`, `session`, `dispatch`, `turn`.
//!
//! What never happens here: dispatch does not wait; nothing of a turn is sent after its answer; nothing of a session is
//! sent before the answer that names it, or after its end; no lock is held across an `await`; a panic of the author's code
//! does not end the connection.

mod ask;
mod auth;
mod builder;
mod client;
mod core;
mod dispatch;
mod handle;
mod initialize;
mod manage;
mod nes;
mod open;
mod options;
mod provided;
mod providers;
mod record;
mod session;
mod state;
mod table;
mod tool;
mod turn;

use std::future::Future;

use attache_conn::{IncomingRequest, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use serde_json::value::RawValue;

pub use ask::{Choice, Forms, Links, usual_options};
pub use auth::Auth;
pub use builder::{Agent, SystemPromptSupport};
pub use client::ClientHandle;
pub use handle::SessionHandle;
pub use nes::{DocumentEvent, NextEdits};
pub use provided::{ClientTerminal, ClientTerminals, FileReader, FileWriter, TerminalBuilder};
pub use providers::Providers;
pub use session::{AgentSession, IntoOpenedSession, OpenRequest, OpenedSession, OptionValue};
pub use state::StatefulAgent;
pub use tool::{Tool, ToolBuilder, block, diff};
pub use turn::{DetachedTurn, Turn};

use crate::{Link, Result};

/// Serves one client over a link, with sessions made by `open` and nothing else on offer.
pub async fn serve<F, Fut, O>(open: F, link: Link) -> Result<()>
where
    F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
    O: IntoOpenedSession + 'static,
{
    Agent::new(open).serve(link).await
}

/// Decodes a request and opens it.
fn read<R: Request>(request: IncomingRequest<'_>) -> Option<(R, Responder)> {
    request.decode(serde_json::from_str, decode::<R>)
}

/// Decodes params tolerantly. RPC-13: params that do not fit are refused.
fn decode<R: Request>(params: Option<&RawValue>) -> Result<R, ErrorObject> {
    attache_wire::v1::decode_tolerant(R::METHOD, params)
        .map_err(|error| ErrorObject::invalid_params(error.to_string()))
}
