//! The bytes that a socket has received and its link has not taken.

/// Bytes that are not counted, so that small messages cost nothing.
const UNCOUNTED: usize = 64 << 10;
/// The count changes in steps.
const STEP: usize = 64 << 10;

/// A bound on received bytes that several sockets share.
pub(crate) trait Budget: Send {
    /// Sets the bytes of this socket. Returns `false` and changes nothing if they are too many.
    fn set(&mut self, bytes: usize) -> bool;
}

/// The received bytes of one socket, which a budget may bound.
#[derive(Default)]
pub(super) struct ReceivedBytes {
    budget: Option<Box<dyn Budget>>,
    counted: usize,
}

impl ReceivedBytes {
    #[cfg(feature = "server")]
    pub(super) fn new(budget: Box<dyn Budget>) -> Self {
        ReceivedBytes { budget: Some(budget), counted: 0 }
    }

    /// Sets the number of bytes. Returns whether that is within the budget.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let counted = if bytes <= UNCOUNTED { 0 } else { bytes.next_multiple_of(STEP) };
        if counted == self.counted {
            return true;
        }
        let is_within = self.budget.as_mut().is_none_or(|budget| budget.set(counted));
        if is_within {
            self.counted = counted;
        }
        is_within
    }
}
