//! JSON-RPC 2.0 as a state machine.
//!
//! The crate parses and encodes messages ([`Frame`], [`encode`]) and tracks which requests are open
//! in each direction ([`Machine`]). It does no I/O, has no clock and never waits: bytes go in,
//! events and bytes come out. `attache-conn` drives it with tokio.
//!
//! Three conventions of ACP are built in: the notification `$/cancel_request`, the error codes in
//! [`code`], and the rule that params are objects except for methods that begin with `_`.
//!
//! Reading order: [`Id`] and [`ErrorObject`], `scan.rs` (fast path for envelopes in the usual
//! form), `frame.rs` (one line becomes one [`Frame`]), `encode.rs`, then `machine.rs`.
//!
//! What never happens here: a panic on any input, recursion on the depth of the input, a copy of
//! `params` or `result`, a second response to one request, a response to a notification or a
//! response.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod encode;
mod error;
mod frame;
mod id;
mod machine;
mod open_requests;
mod scan;

pub use error::{ErrorObject, code};
pub use frame::{Fault, Frame, Malformed, RawCall, Scan};
pub use id::Id;
pub use machine::{Event, Limits, Machine, RequestError};
