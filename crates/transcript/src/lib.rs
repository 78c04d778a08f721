//! The conversation of a session, folded from its events.
//!
//! ```text
//! Event --Transcript::change--> Option<Change> --Transcript::apply--> Transcript
//! ```
//!
//! [`Transcript::change`] reads the model and decides; [`Transcript::apply`] executes and decides
//! nothing. An event makes at most one change. Changes serialise, so a remote view starts from a
//! serialised [`Transcript`], applies the changes it receives, and never folds by itself. A local
//! owner calls [`Transcript::fold`], which does both steps.
//!
//! The model has two parts:
//!
//! - [`items`](Transcript::items): messages, tool calls, questions, notices, compactions and ends
//!   of turns, in the order in which each began. Later updates change an item in place. A message
//!   that is interrupted by another item continues as a new item with the same id, so the order of
//!   events is never lost.
//! - State that each update replaces: mode, config options, commands, plans, title, usage,
//!   subagents.
//!
//! Updates of a subagent carry its session id; everything else belongs to the session itself. Kinds
//! of updates that this version does not know become items too.
//!
//! The crate has no I/O, no clock and no limits. Every item has an index that never changes, so an
//! owner can keep times and other annotations beside the model. An owner with bounded memory drops
//! items from the front ([`Transcript::pop_front`]); [`Transcript::retire_front`] drops a tool call
//! that still runs and brings it back when it ends. An owner that needs only the beginning of a
//! text keeps a [`BoundedText`] instead.
//!
//! The feature `unstable` adds updates that the specification marks as unstable: several plans,
//! subagents, and messages between sessions. Without it they are kept as unknown updates. The
//! feature `drafts` adds members of older drafts. A model that was serialised with a feature is
//! read with the same feature.
//!
//! Read `model.rs`, then `v1.rs` (from version 1 of the protocol to changes), then `change.rs`. The
//! items use the types of [`attache_wire::v1`] for content blocks and other leaves; another version
//! needs a module like `v1.rs`. Changes already express its operations: append to and replace a
//! message by index, patch a tool call.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod change;
mod model;
mod text;
#[cfg(feature = "unstable")]
mod unstable;
mod v1;

pub use change::Change;
pub use model::{
    Answer, Item, ItemKind, Message, Plan, PlanBody, Question, QuestionKind, Role, ToolCall, Transcript,
    TurnEnd, UnknownUpdate,
};
pub use text::{BoundedText, push_bounded};
pub use v1::{Event, join_chunks};
