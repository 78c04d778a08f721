//! Timeouts of the guardians, on a clock that may be read after a fork.

use std::time::Duration;

/// Grace period of descendants that outlive the program.
pub(super) const DESCENDANT_GRACE: Millis = Millis(500);
/// Grace period of the program after the death of our process, which closed its stdin.
pub(super) const ORPHAN_GRACE: Millis = Millis(500);
/// The wait for a process that `SIGKILL` does not end because it hangs in the kernel.
pub(super) const LAST_WAIT: Millis = Millis(5_000);
/// Poll interval where the system has no notification.
pub(super) const POLL_INTERVAL: Millis = Millis(50);

/// A time span, or a point on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Millis(pub(super) i64);

impl Millis {
    pub(super) fn of(time: Duration) -> Self {
        // A year is enough, and far from overflowing.
        Self(time.as_millis().min(31_536_000_000) as i64)
    }

    pub(super) fn now() -> Self {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one timespec, to a place that is one.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        #[allow(clippy::unnecessary_cast, reason = "the two are not i64 everywhere")]
        Self((now.tv_sec as i64).wrapping_mul(1_000).wrapping_add(now.tv_nsec as i64 / 1_000_000))
    }

    /// Returns the point in time this far from now.
    pub(super) fn later(self) -> Self {
        Self(Self::now().0.wrapping_add(self.0))
    }

    /// Returns the time until this point.
    pub(super) fn left(self) -> Self {
        Self(self.0.wrapping_sub(Self::now().0).max(0))
    }

    #[cfg(target_os = "linux")]
    fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

/// Grace periods of the shutdown sequence.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) grace: Millis,
    pub(super) term_grace: Millis,
}

#[cfg(target_os = "linux")]
impl Times {
    /// The time within which the inner guardian has ended everything after the death of our
    /// process.
    pub(super) fn of_orphans(self) -> Millis {
        self.grace.min(ORPHAN_GRACE).plus(self.term_grace).plus(LAST_WAIT).plus(Millis(1_000))
    }
}
