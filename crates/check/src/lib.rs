//! Judges agents, clients and recordings by the rules of the Agent Client Protocol, version 1.
//!
//! Rules are data ([`rules`]), and a conversation is a [`Trace`]. Two kinds of judges work on it:
//! *watchers* ([`judge`]) look at every message of any conversation; *scenarios* ([`Scenario`])
//! lead a conversation to exercise rules, on a [`Stage`] where the checker plays the other role.
//! [`run::run`] runs scenarios against a [`Target`] and returns a [`Report`](run::Report), which
//! [`report`] prints.
//!
//! Reading order: `rules.rs`, `trace.rs`, `judge/` (`message.rs`, `event_log.rs`, then a watcher),
//! `target.rs`, `stage/`, `scenarios/`, `run.rs`.
//!
//! Never here: a rule passes that was not exercised; the checker's own messages are judged;
//! anything is printed. The crate does not use the SDK, which it must be able to judge.

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
