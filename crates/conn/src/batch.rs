//! Batching of small messages that are not urgent.
//!
//! Without it, a task that yields after each update would cost one system call for each.

use std::time::{Duration, Instant};

/// Fewer unsent bytes than this wait for more, as long as other tasks keep adding to them.
const BATCH_BYTES: usize = 8 << 10;
/// The longest time that they wait.
const BATCH_TIME: Duration = Duration::from_micros(200);

/// Unsent bytes that wait for more.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    since: Instant,
    len: usize,
    /// It has not grown since the poll before.
    stale: bool,
}

impl Batch {
    /// The batch after a poll of the driver that found `len` bytes; `None` if they are to be
    /// written now.
    pub(crate) fn next(batch: Option<Batch>, len: usize, now: impl FnOnce() -> Instant) -> Option<Batch> {
        if !(1..BATCH_BYTES).contains(&len) {
            return None;
        }
        match batch {
            None => Some(Batch { since: now(), len, stale: false }),
            // A task that has yielded may run after the driver, so one poll without growth is not
            // the end.
            Some(batch) if batch.stale && batch.len == len => None,
            Some(batch) if now().duration_since(batch.since) >= BATCH_TIME => None,
            Some(batch) => Some(Batch { since: batch.since, len, stale: batch.len == len }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many polls a batch waits whose size at each poll is given.
    fn polls(sizes: &[usize], apart: Duration) -> usize {
        let (mut batch, mut now) = (None, Instant::now());
        for (polls, len) in sizes.iter().enumerate() {
            batch = Batch::next(batch, *len, || now);
            if batch.is_none() {
                return polls;
            }
            now += apart;
        }
        sizes.len()
    }

    #[test]
    fn a_batch_waits_while_it_grows() {
        let short = Duration::from_micros(1);
        assert_eq!(polls(&[5; 9], short), 2, "it does not grow");
        assert_eq!(polls(&[1, 2, 2, 3, 3, 4, 5, 6], short), 8);
        assert_eq!(polls(&[1, 2, 2, 2, 3], short), 3);
        assert_eq!(polls(&[1, BATCH_BYTES], short), 1);
        assert_eq!(polls(&[0], short), 0);
    }

    #[test]
    fn a_batch_does_not_wait_for_long() {
        let sizes: Vec<usize> = (1..100).collect();
        assert_eq!(polls(&sizes, BATCH_TIME / 4), 4);
        assert_eq!(polls(&sizes, BATCH_TIME), 1);
    }
}
