//! The [Agent Client Protocol](https://agentclientprotocol.com) (ACP) for people who write agents
//! and editors.
//!
//! ```toml
//! [dependencies]
//! attache = "0.1"
//! tokio = { version = "1", features = ["macros", "rt"] } # or "rt-multi-thread"
//! ```
//!
//! # An agent
//!
//! An agent answers prompts. It implements [`agent::AgentSession`] and serves one client, here on
//! stdin and stdout:
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
//! Read [`agent`] next: tool calls, permissions, files and terminals of the client, stored
//! sessions.
//!
//! # A client
//!
//! A client starts an agent, sends prompts and reads the events of each turn in wire order:
//!
//! ```no_run
//! use attache::client::{Client, Event};
//! use attache::model::PermissionOptionKind::AllowOnce;
//! use attache::{Link, Result};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<()> {
//!     let agent = Client::new().connect(Link::spawn("my-agent")?).await?;
//!     let mut session = agent.new_session(std::env::current_dir()?).await?;
//!     let mut turn = session.prompt("What is 2 + 2?").await?;
//!     while let Some(event) = turn.next().await? {
//!         match event {
//!             Event::Text(text) => print!("{text}"),
//!             Event::Permission(ask) => ask.choose_kind(AllowOnce),
//!             _ => {}
//!         }
//!     }
//!     println!("{:?}", turn.stop_reason());
//!     Ok(())
//! }
//! ```
//!
//! Read [`client`] next: files and terminals for the agent, forms, stored sessions, user
//! interfaces. The crate `attache-host` provides files and terminals that are confined to the
//! session's directories, and a permission policy.
//!
//! # Both
//!
//! - A [`proxy`] forwards messages between a client and an agent and edits some of them.
//! - [`Link`] is the transport: stdio, a child process, TCP, a Unix socket, or a pair in memory for
//!   tests. [`Link::tap`] shows every line.
//! - [`model`] has the nouns of conversations: plans, permissions, forms, options. They are the
//!   same in both versions of the protocol. [`wire`] has the exact messages of each. [`extension!`]
//!   defines methods of your own.
//! - [`Error`] has a variant for each failure that a caller can act on. Handlers that fail are
//!   reported through `on_error` ([`HandlerError`]) and as [`tracing`](https://docs.rs/tracing)
//!   events, with spans for sessions, turns and tool calls.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `unstable`: parts that the specification marks as unstable and may change with any release:
//!   forks, archives, titles, status, model providers, system prompts, several plans, subagents.
//! - `http`: remote agents and clients over WebSocket and Streamable HTTP. `Client::connect` takes
//!   URLs, and `http::server` accepts clients.
//! - `drafts`: parts of older drafts that some agents and clients still use: models, next-edit
//!   suggestions. Implies `unstable`.
//!
//! Without a feature its methods are answered "method not found", and its updates are
//! [`Event::Other`](client::Event::Other).
//!
//! # Guarantees
//!
//! This crate guarantees what a user cannot break: the order of messages, one answer per request,
//! cancelled turns that end as cancelled, permissions that are answered, capabilities that are
//! advertised exactly when they are served. The [rules of the
//! protocol](https://github.com/attache-acp/attache/blob/main/docs/rules.md) say where each is kept
//! and tested, and [docs/api.md](https://github.com/attache-acp/attache/blob/main/docs/api.md)
//! explains the names.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod agent;
mod bridge;
mod check;
pub mod client;
mod edit;
mod error;
mod extension;
mod id;
pub mod model;
mod plan_status;
mod prompt;
pub mod proxy;
mod race;
mod report;
mod task;
mod tool_status;

#[cfg(unix)]
pub use attache_conn::listen_unix;
pub use attache_conn::process::{self, Command, Stderr};
pub use attache_conn::{
    Backlog, CancelToken, Closed, Ending, Flow, FrameReader, FrameWriter, Limits, Link, Listener, Reason,
    Side, SocketListener, Tap, Waiting, listen_tcp,
};
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub use attache_http as http;
pub use attache_rpc::{ErrorObject, code};
pub use attache_wire as wire;
pub use attache_wire::v1::{ContentBlock, SessionId, StopReason};
pub use attache_wire::{Json, Meta, Notification, Patch, Request};
pub use bridge::{BridgeEnd, ClientEnd, bridge};
pub use edit::{Edit, EditOperation};
pub use error::{Error, Result};
#[doc(hidden)]
pub use extension::__private;
pub use prompt::Prompt;
pub use report::HandlerError;
