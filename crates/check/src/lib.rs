//! Judges agents, clients and recordings by the rules of the Agent Client Protocol.
//!
//! Rules are data ([`rules`]), and a conversation is a [`Trace`]. Two kinds of judges work on it:
//! *watchers* ([`judge`]) look at every message of any conversation; *scenarios* ([`Scenario`])
//! lead a conversation to exercise rules, on a [`Stage`] where the checker plays the other role.
//! [`run::run`] runs scenarios against a [`Target`] and returns a [`Report`](run::Report), which
//! [`report`] prints.
//!
//! A conversation has one [`Version`], the negotiated one. A rule declares the versions that it is
//! for ([`Rule::versions`]), a scenario those that it can lead; findings about a rule of another
//! version are dropped in one place each, by [`judge::judge`] and by the stage. JSON-RPC, lines,
//! extensions and initialization are the same in both versions and share rules, scenarios and
//! watchers. Turns differ: version 2 has `scenarios/…/v2/` and `judge/v2/`.
//!
//! A peer is connected over stdio or is remote ([`Transport`]). A remote server has an
//! [`Endpoint`](remote::Endpoint): ordinary scenarios run over a link to it, and scenarios about a
//! transport write their own requests and frames (`remote/`).
//!
//! Reading order: `rules.rs`, `sources.rs`, `trace.rs`, `judge/` (`message.rs`, `event_log.rs`,
//! then a watcher), `target.rs`, `stage/`, `scenarios/`, `run.rs`.
//!
//! Never here: a rule passes that was not exercised; the checker's own messages are judged;
//! anything is printed. The crate does not use the SDK, which it must be able to judge.

mod baseline;
mod capability;
pub mod judge;
pub mod model;
pub mod prompts;
pub mod record;
pub mod remote;
pub mod replay;
pub mod report;
mod role;
pub mod rules;
pub mod run;
mod scenarios;
pub mod schema;
pub mod show;
pub mod sources;
pub mod stage;
pub mod target;
pub mod trace;
mod transport;
mod version;

pub use baseline::Baseline;
pub use judge::{Finding, Findings, Message, Verdict, Watcher};
pub use role::Role;
pub use rules::{Level, Rule, Tier};
pub use scenarios::{Scenario, scenarios};
pub use stage::{Stage, Step, Stop};
pub use target::{BoxFuture, Connection, Need, StartOptions, Target};
pub use trace::{Entry, EntryKind, Header, LineEnd, Trace};
pub use transport::Transport;
pub use version::Version;
