//! Faults and habits of the listener.

use serde_json::Value;

/// The notification in whose place a faulty server does what is wrong.
pub(crate) const FAULT_METHOD: &str = "_attache/fault";

/// The place of a cut, in thousandths of the message; a parameter of [`FAULT_METHOD`].
pub(crate) const CUT_AT: &str = "cutAt";

/// Deviations of the server that a client must cope with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behaviour {
    #[default]
    Plain,
    /// Events with comments, ids, names and several lines of data.
    OddEvents,
    /// The answer to `session/load` is on the stream of the connection.
    LoadOnConnection,
    /// Every second message of a session is on the stream of the connection.
    EitherStream,
    /// Binary messages between the others.
    Binary,
    /// A ping before every message.
    Pings,
    /// Every message in three frames, with a ping between them.
    Fragments,
    /// In the place of [`FAULT_METHOD`] all streams, or the WebSocket, end within a message, at the
    /// place that it names. New ones are accepted.
    Cut,
    /// The first prompt is refused with 429 and `Retry-After`.
    Busy,
    /// The first streams of a session are refused with 404.
    RefusedStream,
    /// The 202 for a prompt comes in the place of [`FAULT_METHOD`].
    LateAccept,
    /// Events with other characters than ASCII come in two pieces, and the first ends within a
    /// character.
    Pieces,
    /// Messages of an unknown session are on the stream of a known one.
    OtherSession,
    /// An upgrade is redirected.
    Redirect,
    /// In the place of [`FAULT_METHOD`] the head of a frame of a terabyte.
    Oversized,
    /// In the place of [`FAULT_METHOD`] a compressed frame.
    Compressed,
    /// In the place of [`FAULT_METHOD`] a masked frame.
    Masked,
    /// In the place of [`FAULT_METHOD`] a frame with an opcode that has no meaning.
    UnknownOpcode,
}

impl Behaviour {
    /// The behaviour of a scenario.
    pub(crate) fn of(scenario: &str) -> Behaviour {
        match scenario {
            "http-client-events" => Behaviour::OddEvents,
            "http-client-load" => Behaviour::LoadOnConnection,
            "http-client-either-stream" => Behaviour::EitherStream,
            "ws-client-binary" => Behaviour::Binary,
            "ws-client-ping" => Behaviour::Pings,
            "ws-client-fragments" => Behaviour::Fragments,
            "http-client-fault-cut" | "ws-client-fault-cut" => Behaviour::Cut,
            "http-client-fault-busy" => Behaviour::Busy,
            "http-client-fault-refused-stream" => Behaviour::RefusedStream,
            "http-client-fault-late-accept" => Behaviour::LateAccept,
            "http-client-fault-pieces" => Behaviour::Pieces,
            "http-client-fault-session" => Behaviour::OtherSession,
            "ws-client-fault-redirect" => Behaviour::Redirect,
            "ws-client-fault-oversized" => Behaviour::Oversized,
            "ws-client-fault-compressed" => Behaviour::Compressed,
            "ws-client-fault-masked" => Behaviour::Masked,
            "ws-client-fault-opcode" => Behaviour::UnknownOpcode,
            _ => Behaviour::Plain,
        }
    }
}

/// The place within `len` bytes at which a line of the checker wants them cut.
pub(super) fn cut_at(line: &[u8], len: usize) -> usize {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let part = usize::try_from(message["params"][CUT_AT].as_u64().unwrap_or(500)).unwrap_or(500);
    len * part.min(999) / 1000
}

/// Whether a line of the checker stands for what is wrong.
pub(super) fn is_fault(line: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    message["method"] == FAULT_METHOD
}
