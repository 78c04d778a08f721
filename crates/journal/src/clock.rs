//! The time for leases and pages.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of wall-clock time, shared by all nodes of a journal. Differences between the clocks of
/// nodes shorten or lengthen leases; they do not affect fencing.
#[derive(Clone, Default)]
pub struct Clock(Option<ManualClock>);

impl Clock {
    /// The clock of the system.
    pub fn system() -> Self {
        Clock(None)
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Some(manual) => manual.0.load(Ordering::SeqCst),
            None => millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }

    /// The time after `span`.
    pub fn after(&self, span: Duration) -> u64 {
        self.now().saturating_add(millis(span))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock::manual" } else { "Clock::system" })
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        Clock(Some(clock.clone()))
    }
}

/// A clock for tests: it stands still until it is advanced.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(millis(span), Ordering::SeqCst);
    }
}

/// Whole milliseconds; a longer span than fits is the longest one that SQLite stores.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(i64::MAX as u64 / 2)
}
