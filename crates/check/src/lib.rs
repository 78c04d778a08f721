//! Judges agents, clients and recordings by the rules of the Agent Client Protocol, version 1.
//!
//! The rules are data ([`rules`]). A conversation is a [`Trace`]. Two kinds of judges speak about one: *watchers*
//! ([`judge`]) look at every message of any conversation, and *scenarios* ([`Scenario`]) lead a conversation on purpose, on a
//! [`Stage`], where the checker plays the other side. [`run::run`] plays scenarios against a [`Target`] and makes a
//! [`Report`](run::Report), which [`report`] prints.
//!
//! Reading order: `rules.rs`, `trace.rs`, `judge/` (`message.rs`, `book.rs`, then a watcher), `stage/`, `scenario.rs`, `run.rs`. `agent/` holds the
//! scenarios in which the checker plays the client, `client/` those in which it plays the agent, `faults/` the unkind ones.
//!
//! What never happens here: a rule passes that was not exercised; the checker's own messages are judged; anything is printed. This
//! crate does not know the SDK, which it must be able to judge.

pub mod agent;
pub mod client;
pub mod faults;
pub mod judge;
pub mod record;
pub mod replay;
pub mod report;
mod role;
pub mod rules;
pub mod run;
mod scenario;
pub mod schema;
pub mod show;
pub mod stage;
pub mod target;
pub mod trace;

pub use judge::{Finding, Findings, Said, Verdict, Watcher};
pub use role::Role;
pub use rules::{Level, Rule, Tier};
pub use scenario::{BoxFuture, Need, Scenario, Step, Stop, scenarios};
pub use stage::Stage;
pub use target::{Fresh, Opened, Target};
pub use trace::{End, Entry, Head, Trace, What};
