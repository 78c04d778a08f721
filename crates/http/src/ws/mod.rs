//! WebSocket (RFC 6455) as a codec between lines and frames.
//!
//! [`link`] makes a [`Link`](attache_conn::Link) of a socket on which the handshake is done. A text
//! message is one line; a line is one text message. The codec has no queue of messages: the reader
//! unmasks payload straight into the buffer of the link, and the writer puts headers between the
//! lines of a batch, so that a batch costs one write.

mod budget;
mod closer;
pub mod frame;
mod handshake;
mod lines;
mod mask;
mod socket;
mod wakers;

#[cfg(feature = "server")]
pub(crate) use budget::Budget;
pub use closer::Closer;
pub use frame::Close;
pub use handshake::{accept_key, random_key};
#[cfg(feature = "server")]
pub(crate) use socket::link_with_budget;
pub use socket::{Role, Settings, link, link_with_closer};
