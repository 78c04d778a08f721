//! Numbers of entries and claims.

use std::fmt;

/// The number of an entry, from 1. Zero is the position before the first entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

impl Seq {
    /// The position before the first entry.
    pub const ZERO: Seq = Seq(0);
    /// A position after every entry.
    pub const MAX: Seq = Seq(i64::MAX as u64);

    /// The entry with this number. Numbers over [`Seq::MAX`] become it.
    pub const fn new(number: u64) -> Self {
        if number > Seq::MAX.0 { Seq::MAX } else { Seq(number) }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `count` entries later.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Seq::new(self.0.saturating_add(count))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a claim: the fencing token. Later claims in a journal have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The claim with this number.
    pub const fn new(number: u64) -> Self {
        Epoch(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
