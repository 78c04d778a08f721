//! Shared parts of Attaché's tests: the protocol as data, and the verification of example messages.
//!
//! - [`catalogue`]: every type with the presence rules of its members, read from `data/`.
//! - [`normal`]: the normal form of a JSON value, for comparisons.
//! - [`sample`]: minimal and random values of a type.
//! - [`registry`]: readers of the types of `attache-wire` by name.
//! - `processes`: processes of a test that are still alive.
//! - [`example`], [`verify`](mod@verify): example files, and their verification.
//!
//! None of this is for users of Attaché; the crate is not published.

#![allow(clippy::expect_used, reason = "test data is part of the crate: if it is wrong, stop")]

pub mod catalogue;
pub mod example;
pub mod normal;
#[cfg(target_os = "linux")]
pub mod processes;
pub mod registry;
pub mod sample;
#[cfg(feature = "sdk")]
pub mod semantic;
pub mod verify;
