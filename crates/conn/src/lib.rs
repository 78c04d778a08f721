//! The tokio driver of Attaché: links, byte budgets, child processes.
//!
//! [`open`] creates a connection on a [`Link`]. It returns a [`Peer`], which sends messages, and a
//! [`Driver`], the one future in which the connection runs. Messages of the peer go to a
//! [`Dispatch`], whose methods are plain functions; each request has a [`Responder`].
//!
//! The crate knows bytes, lines and JSON-RPC. Of ACP it knows only that one end is an agent and the
//! other a client ([`Side`]), which have different [`Limits`].
//!
//! Reading order: `link/` (how bytes become lines), `shared/` (the state under the lock),
//! `driver.rs` (the loop), `incoming.rs` (messages on their way to a handler), then `peer.rs`,
//! `call.rs`, `notify.rs` and `responder.rs` (sending), `backlog.rs` (inbound budget) and
//! `response_slot.rs` (budget of responses). `private.rs` is separate: files and directories that
//! only this user can change, for all crates above.
//!
//! Never here: dispatch does not wait, the lock is not held while a callback runs, a finished
//! response does not wait for room, no queue is unbounded, nothing is printed.

mod backlog;
mod batch;
mod call;
mod cancel;
mod closed;
mod driver;
mod incoming;
mod limits;
mod link;
mod notify;
mod peer;
pub mod private;
pub mod process;
mod responder;
mod response_slot;
mod shared;
mod sys;
mod waiter;

pub use attache_rpc as rpc;
pub use backlog::{Backlog, Waiting};
pub use call::Call;
pub use cancel::CancelToken;
pub use closed::{Closed, Ending, Reason};
pub use driver::{Dispatch, Driver};
pub use incoming::{IncomingNotification, IncomingRequest};
pub use limits::{Limits, Side};
#[cfg(unix)]
pub use link::{ActivatedSocket, activated_sockets, listen_unix};
pub use link::{Flow, FrameReader, FrameWriter, KeepAlive, Link, Listener, SocketListener, Tap, listen_tcp};
pub use notify::Notify;
pub use peer::{Peer, PeerUnless, open};
pub use responder::Responder;
pub use response_slot::ResponseSlot;
pub use waiter::{CallError, CallId};
