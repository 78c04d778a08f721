//! The orders a bench agent takes as prompt text.

/// What the agent does before it ends the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `stream N LEN`: N text chunks of LEN characters, in the loop an author would write.
    Stream { n: usize, len: usize },
    /// `streamy N LEN`: the same, giving control back to the runtime after each chunk.
    Streamy { n: usize, len: usize },
    /// `read N`: N `fs/read_text_file` requests, one after the other.
    Read { n: usize },
    /// `perm N`: N `session/request_permission` requests, one after the other.
    Perm { n: usize },
    /// `paced N MS`: N chunks, one every MS milliseconds, each the time of [`stamp`].
    Paced { n: usize, ms: u64 },
    /// Anything else: the turn ends at once.
    Nothing,
}

impl Order {
    pub fn parse(text: &str) -> Order {
        // A prompt can be many megabytes long; an order is short.
        let head = text.get(..text.len().min(64)).unwrap_or_default();
        let mut words = head.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match verb {
            "stream" => Order::Stream { n: number(), len: number() },
            "streamy" => Order::Streamy { n: number(), len: number() },
            "read" => Order::Read { n: number() },
            "perm" => Order::Perm { n: number() },
            "paced" => Order::Paced { n: number(), ms: number() as u64 },
            _ => Order::Nothing,
        }
    }
}

/// The text of a chunk that says when it was made: microseconds of the clock that all processes of
/// a machine share.
pub fn stamp() -> String {
    format!("{:020}", crate::proc::monotonic_us())
}

/// What follows the sequence number in every chunk of a stream.
pub fn padding(len: usize) -> String {
    "x".repeat(len.saturating_sub(8))
}

/// The text of chunk `i`: eight digits by which the reader checks order and loss, then the padding.
pub fn chunk(i: usize, padding: &str) -> String {
    format!("{i:08}{padding}")
}
