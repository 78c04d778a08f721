//! What Attaché's tests share: the protocol as data, and a judge that runs example messages against the crates.
//!
//! - [`catalogue`]: every version 1 type with the presence rules of its members, read from `data/types.jsonl`.
//! - [`normal`]: brings two JSON values of one type into a form in which they can be compared.
//! - [`sample`]: makes values of a type, minimal or random.
//! - [`registry`]: type names tied to the types of `attache-wire`.
//! - `processes`: who is left of the processes that a test has started.
//! - [`line`](mod@line), [`judge`]: example files, and whether each line behaves as it says it should.
//!
//! None of this is for users of Attaché; the crate is not published.

#![allow(clippy::expect_used, reason = "test data is part of the crate: if it is wrong, stop")]

pub mod catalogue;
pub mod judge;
pub mod line;
pub mod normal;
#[cfg(target_os = "linux")]
pub mod processes;
pub mod registry;
pub mod sample;
#[cfg(feature = "sdk")]
pub mod semantic;
