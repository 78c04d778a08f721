//! Pauses between attempts.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often something is tried again, and the pauses in between. They double, and half of each is
/// random. The default is never.
///
/// ```
/// use attache_http::client::Backoff;
/// use std::time::Duration;
///
/// let backoff = Backoff { attempts: 5, first: Duration::from_millis(200), max: Duration::from_secs(5) };
/// let pause = backoff.pause(1);
/// assert!(Duration::from_millis(200) <= pause && pause <= Duration::from_millis(400));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backoff {
    /// Attempts after the first one.
    pub attempts: u32,
    /// The longest first pause.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Backoff {
    /// The pauses of a program that holds a connection: ten attempts in about half a minute.
    pub const RECONNECT: Backoff =
        Backoff { attempts: 10, first: Duration::from_millis(250), max: Duration::from_secs(5) };

    /// Returns the pause after a number of failed attempts, counted from 0.
    pub fn pause(&self, failures: u32) -> Duration {
        let full = self.first.saturating_mul(1 << failures.min(20)).min(self.max);
        full / 2 + (full / 2).mul_f64(random())
    }
}

/// A number between 0 and 1. The standard library seeds its hash maps at random, which is good
/// enough for jitter.
fn random() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1u64 << 53) as f64
}
