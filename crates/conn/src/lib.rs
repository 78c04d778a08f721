//! The tokio driver of Attaché: links, byte budgets, child processes.
//!
//! [`open`] puts a connection on a [`Link`] and gives back a [`Peer`] to talk to and a [`Driver`], the one future in
//! which everything of that connection happens. What the peer says goes to a [`Dispatch`], whose methods are plain
//! functions; each request comes with a [`Responder`].
//!
//! This crate knows bytes, lines and JSON-RPC, and nothing of ACP. Reading order: `link/` (how bytes become lines),
//! `shared.rs` (what is under the lock), `driver.rs` (the loop), then `peer.rs`, `call.rs`, `notify.rs`, `responder.rs`, the four ways
//! to use it, `backlog.rs` for the inbound budget and `slot.rs` for that of answers. `private.rs` stands beside them: files
//! and directories that only this user can change, for every crate above.
//!
//! What never happens here: dispatch does not wait, the lock is not held while user code runs, an answer that exists does not wait for
//! room, no queue is without a bound, nothing is printed.

mod backlog;
mod call;
mod cancel;
mod closed;
mod driver;
mod limits;
mod link;
mod notify;
mod peer;
pub mod private;
pub mod process;
mod responder;
mod shared;
mod slot;
mod sys;
mod ticket;

pub use attache_rpc as rpc;
pub use backlog::{Backlog, Waiting};
pub use call::{Call, CallError, CallId};
pub use cancel::CancelToken;
pub use closed::{Closed, Ending, Reason};
pub use driver::{Dispatch, Driver};
pub use limits::{Limits, Side};
#[cfg(unix)]
pub use link::listen_unix;
pub use link::{Flow, FrameReader, FrameWriter, Link, Listener, listen_tcp};
pub use notify::Notify;
pub use peer::{Peer, open};
pub use responder::Responder;
pub use slot::AnswerSlot;
pub use ticket::Ticket;
