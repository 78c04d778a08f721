//! Version 2 on the client's side: its messages become the updates, events and questions of the
//! model.
//!
//! `convert.rs` has the values, `update.rs` the updates, `turn.rs` the rules by which a turn ends.
//! Where version 1 can express a message, it becomes the update of version 1, so that the rest of
//! the client knows one version only.

pub(crate) mod convert;
mod diff;
mod lines;
mod messages;
pub(crate) mod requests;
mod turn;
mod update;

pub use lines::LinesAsV1;
pub(crate) use turn::{HeldMessage, Prompts};
pub(crate) use update::{Item, Reason, Updates};
