//! What every measured Rust program shares, so that no peer is measured with another yardstick:
//! what a process costs ([`proc`]), what a prompt asks of the bench agent ([`Order`]), what a bench
//! client was asked to do ([`Job`]) and the one JSON line it prints ([`Report`]).
//!
//! Nothing in here knows the protocol; it runs on Linux, where `/proc` is.

mod job;
mod order;
pub mod proc;
mod report;

pub use job::{Job, Meter, Seen, multi_thread, protocol};
pub use order::{Order, chunk, padding, stamp};
pub use report::{Report, percentile};
