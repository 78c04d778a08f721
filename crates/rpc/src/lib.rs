//! JSON-RPC 2.0 as a state machine.
//!
//! This crate knows what a message looks like ([`Frame`], [`encode`]), which ids are in use and who waits for
//! which answer ([`Machine`]). It does not know ACP, it does no I/O, it has no clock and nothing in it waits:
//! bytes go in, events and bytes come out. Whoever owns a transport drives it; `attache-conn` does so with tokio.
//!
//! Reading order: [`Id`] and [`ErrorObject`], then `frame.rs` (one line becomes one [`Frame`]) with `plain.rs` (the same for
//! the usual lines, faster), `encode.rs` (the way back), and last `machine.rs`, which is the memory between two frames.
//!
//! What never happens here: a panic on any input, recursion on the depth of the input, a copy of `params` or
//! `result`, a second answer to one request, an answer to a notification or to an answer.

pub mod encode;
mod error;
mod frame;
mod id;
mod machine;
mod open;
mod plain;

pub use error::{ErrorObject, code};
pub use frame::{Fault, Frame, Malformed};
pub use id::Id;
pub use machine::{Event, Limits, Machine, RequestError};
pub use plain::Unread;
