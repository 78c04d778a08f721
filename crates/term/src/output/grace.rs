//! The time in which a question that has just appeared takes no answer.

use std::io;
use std::time::Duration;

/// How long a question is visible before it takes an answer.
pub const GRACE: Duration = Duration::from_millis(500);

/// Waits until a question that has just appeared may be answered, and discards what was typed until then: it was meant for
/// something else.
pub async fn wait_unanswered() {
    tokio::time::sleep(GRACE).await;
    discard_typed();
}

/// Like [`wait_unanswered`], but blocks the thread.
pub fn wait_unanswered_blocking() {
    std::thread::sleep(GRACE);
    discard_typed();
}

#[cfg(unix)]
fn discard_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {
    let _ = io::stdin();
}
