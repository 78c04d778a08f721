//! What a connection may cost, in bytes and counts.

use std::time::Duration;

/// The bounds of a connection. Every queue in it is bounded by one of these.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest line that is accepted. A longer one is skipped and reported, and the connection goes on.
    pub frame: usize,
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Requests open at once, in each direction.
    pub open_requests: usize,
    /// [`Peer::notify`](crate::Peer::notify) waits while more bytes than this wait to be written.
    pub outgoing: usize,
    /// The reader rests while more bytes than this are queued inside (see [`Backlog`](crate::Backlog)) and nobody waits for it.
    pub queued: usize,
    /// The reader rests while more bytes than this are queued inside, or wait to be written, whoever waits.
    pub queued_hard: usize,
    /// How long a connection whose input has ended, or that was closed, may take to write what is left.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame: 64 << 20,
            depth: 1024,
            open_requests: 4096,
            outgoing: 256 << 10,
            queued: 1 << 20,
            queued_hard: 64 << 20,
            linger: Duration::from_secs(2),
        }
    }
}

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// We are the agent, the peer is the client.
    Agent,
    /// We are the client, the peer is the agent.
    Client,
}

impl Side {
    pub(crate) fn peer(self) -> &'static str {
        match self {
            Side::Agent => "client",
            Side::Client => "agent",
        }
    }
}
