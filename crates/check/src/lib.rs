//! Judges agents, clients and recordings by the rules of the Agent Client Protocol, version 1.
//!
//! The rules are data ([`rules`]). A conversation is a [`Trace`]. Two kinds of judges speak about one: *watchers*
//! ([`judge`]) look at every message of any conversation, and *scenarios* ([`Scenario`]) lead a conversation on purpose, on a
//! [`Stage`], where the checker plays the other side. [`run::run`] plays scenarios against a [`Target`] and makes a
//! [`Report`](run::Report), which [`report`] prints.
//!
//! Reading order: `rules.rs`, `trace.rs`, `judge/` (`message.rs`, `log.rs`, then a watcher), `stage/`, `scenario.rs`, `run.rs`. `agent/` holds the
//! scenarios in which the checker plays the client, `client/` those in which it plays the agent, `faults/` the unkind ones.
//!
//! What never happens here: a rule passes that was not exercised; the checker's own messages are judged; anything is printed. This
//! crate does not know the SDK, which it must be able to judge.

pub mod judge;
pub mod prompts;
pub mod record;
pub mod replay;
pub mod report;
mod role;
pub mod rules;
pub mod run;
mod scenarios;
pub mod schema;
pub mod show;
pub mod stage;
pub mod target;
pub mod trace;

pub use judge::{Finding, Findings, Message, Verdict, Watcher};
pub use role::Role;
pub use rules::{Level, Rule, Tier};
pub use scenarios::{Scenario, scenarios};
pub use stage::{Stage, Step, Stop};
pub use target::{BoxFuture, Connection, Need, StartOptions, Target};
pub use trace::{Entry, EntryKind, Header, LineEnd, Trace};
