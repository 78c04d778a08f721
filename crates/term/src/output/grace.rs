//! The grace period in which a new question takes no answer.

use std::io;
use std::time::Duration;

/// Time between the appearance of a question and its first possible answer.
pub const GRACE: Duration = Duration::from_millis(500);

/// Waits for the grace period and discards keys that were typed until then, because they were meant
/// for something else.
pub async fn wait_unanswered() {
    tokio::time::sleep(GRACE).await;
    discard_typed();
}

/// Like [`wait_unanswered`], but blocks the thread.
pub fn wait_unanswered_blocking() {
    std::thread::sleep(GRACE);
    discard_typed();
}

/// Discards keys that were typed and not read.
#[cfg(unix)]
pub(crate) fn discard_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Discards keys that were typed and not read.
#[cfg(not(unix))]
pub(crate) fn discard_typed() {
    let _ = io::stdin();
}
