//! Shows on a terminal that a command waits for its agent.

use std::time::Duration;

use attache_term::device::is_unicode;
use tokio::time::{Instant, sleep_until};

use crate::output::{Format, Output, StatusLine};

/// A wait that is shorter needs no spinner.
const DELAY: Duration = Duration::from_millis(300);
/// The time of a frame.
const FRAME: Duration = Duration::from_millis(120);

/// A progress line that turns. It is erased on drop.
pub(super) struct Spinner {
    status: StatusLine,
    text: String,
    count: usize,
    next: Instant,
}

impl Spinner {
    /// `None` if this is not a terminal, or if `-v` prints more.
    pub(super) fn new(output: &Output, text: String) -> Option<Spinner> {
        let watched = output.format == Format::Text && output.stdout.terminal && !output.verbose;
        let status = StatusLine::new(output.stderr).filter(|_| watched)?;
        Some(Spinner { status, text, count: 0, next: Instant::now() + DELAY })
    }

    /// Waits for the next frame and shows it. Cancel-safe.
    pub(super) async fn turn(&mut self) {
        const FULL: [&str; 4] = ["⠋", "⠙", "⠸", "⠴"];
        const ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        sleep_until(self.next).await;
        let frames = if is_unicode() { FULL } else { ASCII };
        let frame = frames.get(self.count % frames.len()).copied().unwrap_or_default();
        self.status.show(&format!("{frame} {}", self.text));
        self.count += 1;
        self.next = Instant::now() + FRAME;
    }

    /// Turns for ever.
    pub(super) async fn run(spinner: Option<Spinner>) {
        let Some(mut spinner) = spinner else { return std::future::pending().await };
        loop {
            spinner.turn().await;
        }
    }
}
