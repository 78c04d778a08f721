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
    /// The bytes of the peer's requests that are open at once. One by itself may have more.
    pub open_request_bytes: usize,
    /// Answers that may be large are produced while fewer bytes than this wait to be written; see [`AnswerSlot`](crate::AnswerSlot).
    pub answers: usize,
    /// Answers that may be large and are produced at once.
    pub serving: usize,
    /// [`Peer::notify`](crate::Peer::notify) waits while more bytes than this wait to be written.
    pub outgoing: usize,
    /// The reader rests while more bytes than this are queued inside (see [`Backlog`](crate::Backlog)) and nobody waits for it.
    pub queued: usize,
    /// The reader rests while more bytes than this are queued inside, whoever waits.
    pub queued_hard: usize,
    /// The reader rests while more bytes than this wait to be written: the peer asks and does not read the answers.
    pub unsent_hard: usize,
    /// How long a connection whose input has ended, or that was closed, may take to write what is left.
    pub linger: Duration,
}

impl Limits {
    /// The bounds for a client, whose peer is a program that it need not trust. An agent is sent prompts with whole files in
    /// them; what an agent sends is smaller.
    pub fn for_client() -> Self {
        Limits {
            frame: 12 << 20,
            open_request_bytes: 16 << 20,
            queued_hard: 4 << 20,
            unsent_hard: 24 << 20,
            ..Limits::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame: 64 << 20,
            depth: 1024,
            open_requests: 4096,
            open_request_bytes: 64 << 20,
            answers: 8 << 20,
            serving: 4,
            outgoing: 256 << 10,
            queued: 1 << 20,
            queued_hard: 64 << 20,
            unsent_hard: 64 << 20,
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
