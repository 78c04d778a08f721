//! Limits of a connection, in bytes and counts.

use std::time::Duration;

/// Limits of a connection. Every queue in it is bounded by one of them.
///
/// ```
/// let limits = attache_conn::Limits::default().frame(16 << 20);
/// assert_eq!(limits.frame, 16 << 20);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest accepted line. A longer one is skipped and reported, and the connection
    /// continues.
    pub frame: usize,
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Open requests in each direction.
    pub open_requests: usize,
    /// Bytes of the peer's open requests. A single request may be larger.
    pub open_request_bytes: usize,
    /// Handlers of large responses start while fewer bytes than this are unsent; see
    /// [`ResponseSlot`](crate::ResponseSlot).
    pub response_bytes: usize,
    /// Handlers of large responses that run at once.
    pub large_responses: usize,
    /// [`Peer::notify`](crate::Peer::notify) waits while more bytes than this are unsent.
    pub write_buffer: usize,
    /// The reader pauses while more bytes than this are queued inside (see
    /// [`Backlog`](crate::Backlog)) and no task waits for it.
    pub queued: usize,
    /// The reader pauses while more bytes than this are queued inside, even if a task waits for it.
    pub queued_hard: usize,
    /// The reader pauses while more bytes than this are unsent, because the peer does not read.
    pub unsent_hard: usize,
    /// How long a connection may take to write the rest after its input has ended or it was closed.
    pub linger: Duration,
}

impl Limits {
    /// Returns the limits for a client, whose peer is an untrusted program. They are smaller than
    /// those of an agent, which is sent prompts with whole files in them.
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

macro_rules! setters {
    ($($field:ident: $type:ty),* $(,)?) => {
        impl Limits {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

setters! {
    frame: usize,
    depth: usize,
    open_requests: usize,
    open_request_bytes: usize,
    response_bytes: usize,
    large_responses: usize,
    write_buffer: usize,
    queued: usize,
    queued_hard: usize,
    unsent_hard: usize,
    linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame: 64 << 20,
            depth: 1024,
            open_requests: 4096,
            open_request_bytes: 64 << 20,
            response_bytes: 8 << 20,
            large_responses: 4,
            write_buffer: 256 << 10,
            queued: 1 << 20,
            queued_hard: 64 << 20,
            unsent_hard: 64 << 20,
            linger: Duration::from_secs(2),
        }
    }
}

/// An end of the connection.
///
/// ```
/// use attache_conn::{Closed, Side};
///
/// fn peer(closed: &Closed) -> &'static str {
///     match closed.side {
///         Side::Agent => "client",
///         Side::Client => "agent",
///     }
/// }
/// ```
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
