//! A hub of ACP sessions: an agent to its clients, and a client to real agents.
//!
//! ```text
//! clients --session/load, resume, prompt--> hub --session/prompt--> one agent process per session
//!         <------- journal entries --------     <---- updates ----
//! ```
//!
//! ```no_run
//! use attache_conn::{Link, Listener as _};
//! use attache_hub::{Hub, Identity, Options};
//! use attache_journal::Journal;
//!
//! # async fn demo() -> std::io::Result<()> {
//! let hub = Hub::new(Journal::memory(), Options::new("laptop", || async { Link::spawn("my-agent") }));
//! let mut clients = attache_conn::listen_tcp("127.0.0.1:0").await?;
//! loop {
//!     let (hub, link) = (hub.clone(), clients.accept().await?);
//!     tokio::spawn(async move { hub.serve(link, Identity::new("me")).await });
//! }
//! # }
//! ```
//!
//! # How it works
//!
//! The hub works on lines, not on types: a message of an agent is stored in the
//! [journal](attache_journal) and sent to clients as the bytes that it came in. One task per
//! session ([`session`](self)) orders what happens: lines of the agent, prompts, answers. It writes
//! all of it to the journal, and acts only on what is durable: an agent gets a prompt, and an
//! answer to its question, when the journal has it.
//!
//! A client on a session is a cursor in that journal ([`attachment`](self)). Everything that the
//! client sees comes from there, in order: updates, questions, ends of turns, responses. A client
//! that comes back starts at another position. A client that is slow is behind, and holds up no
//! other client.
//!
//! Reading order: `entry.rs`, `session/task.rs`, `session/commands.rs`, `attachment.rs`,
//! `client.rs`, `hub.rs`.
//!
//! # What never happens
//!
//! - A client sees nothing that a crash could take back.
//! - A prompt is sent to an agent twice.
//! - A session waits for a client.
//! - A client learns that a session of another tenant exists.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod agent;
mod attachment;
mod client;
mod entry;
mod hub;
mod identity;
mod message;
mod metrics;
#[cfg(feature = "nats")]
mod nats;
mod network;
mod node_requests;
mod nodes;
mod operate;
mod options;
mod outbox;
#[cfg(unix)]
mod providers;
#[cfg(unix)]
mod provision;
mod questions;
mod session;

pub use identity::{Identity, Role, UnknownRole};
#[cfg(feature = "nats")]
pub use nats::{NatsNetwork, Responder};
pub use network::{Network, NoReply, Requested};
pub use options::Options;
#[cfg(unix)]
pub use provision::Provision;
pub use questions::Policy;

use attache_conn::Link;
use attache_journal::Journal;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// A hub. Cheap to clone; dropping all clones ends its agents when their sessions are idle.
///
/// Example: the [crate](self).
#[derive(Clone)]
pub struct Hub(Arc<hub::Shared>);

impl Hub {
    /// A hub whose sessions are in a journal. Must be used within a tokio runtime.
    pub fn new(journal: Journal, options: Options) -> Hub {
        let shared = Arc::new(hub::Shared::new(journal, options));
        shared.warm_up(false);
        Hub(shared)
    }

    /// Serves a client until it leaves. Its sessions go on.
    pub async fn serve(&self, link: Link, identity: Identity) {
        client::serve(Arc::clone(&self.0), link, identity).await;
    }

    /// Removes sessions of a tenant that were not used for `age`, then the oldest ones until the
    /// rest has at most `bytes`. Sessions in memory stay, and those that another hub has. Returns
    /// how many were removed.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn sweep(&self, tenant: &str, age: Option<Duration>, bytes: Option<u64>) -> io::Result<usize> {
        self.0.sweep(tenant, age, bytes).await.map_err(io::Error::other)
    }

    /// Answers a request that another hub has sent over its [`Network`].
    pub async fn answer(&self, request: &[u8]) -> Vec<u8> {
        node_requests::answer(&self.0, request).await
    }

    /// Ends all sessions in memory: interrupts their turns, ends their agents, and releases their
    /// leases, so that another hub on the journal need not wait for the end of these. Sessions that
    /// are opened from now on end at once.
    pub async fn shut_down(&self) {
        self.0.shut_down().await;
    }

    /// The counters of the hub in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        self.0.cx.metrics.text()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}
