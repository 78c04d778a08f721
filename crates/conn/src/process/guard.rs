//! Our side of a running child: what is known of it, and how its end is asked for.

use std::fmt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::os::Control;
use super::tail::{Lines, Tail};

/// Holds a child process; dropping it ends the child, in the background and without needing a runtime.
///
/// The ladder begins with the end of the child's stdin, which is another value ([`Child::stdin`](super::Child)):
/// drop that first, or the child cannot know within [`Command::grace`](super::Command::grace) that it should leave.
pub struct ChildGuard {
    pid: u32,
    control: Arc<Control>,
    exit: watch::Receiver<Option<ExitStatus>>,
    tail: Arc<Mutex<Tail>>,
}

impl ChildGuard {
    pub(super) fn new(pid: u32, control: Arc<Control>, ending: &Ending, notes: &Notes) -> Self {
        Self { pid, control, exit: ending.0.subscribe(), tail: notes.tail.clone() }
    }

    /// The child's process id, to show. To end the child, use this guard: a process id may belong to another
    /// process by the time that it is used.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the child has ended, and with it everything that it had started, all of it reaped. Does not ask
    /// it to end.
    pub async fn wait(&self) -> ExitStatus {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or_default(),
            // The thread that watches publishes before it goes, so this is not reached.
            Err(_) => ExitStatus::default(),
        }
    }

    /// The exit status, once [`wait`](Self::wait) would not have to wait.
    pub fn try_exit(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// The last 64 KiB that the child wrote to a captured stderr; complete when the child has ended.
    pub fn stderr_tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Starts the ladder (time to leave, `SIGTERM`, time to leave, `SIGKILL`) and waits for the end of it.
    /// The ladder goes on when this future is dropped.
    pub async fn shutdown(&self) -> ExitStatus {
        self.control.stop();
        self.wait().await
    }

    /// Starts the ladder at `SIGTERM`, and does not wait. Windows has no such signal: there it is a kill.
    pub fn terminate(&self) {
        self.control.terminate();
    }

    /// Kills the child and all that it started, and does not wait.
    pub fn kill(&self) {
        self.control.kill();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl fmt::Debug for ChildGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildGuard").field("pid", &self.pid).field("exit", &self.try_exit()).finish()
    }
}

/// Tells the guard that the child is gone and reaped.
pub(super) struct Ending(watch::Sender<Option<ExitStatus>>);

impl Ending {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn publish(self, status: ExitStatus) {
        self.0.send_replace(Some(status));
    }
}

/// What is written down of the child's stderr.
pub(super) struct Notes {
    tail: Arc<Mutex<Tail>>,
    lines: Option<Lines>,
}

impl Notes {
    pub(super) fn new(on_line: Option<super::OnLine>) -> Self {
        Self { tail: Arc::default(), lines: on_line.map(Lines::new) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        self.call(|lines| lines.push(bytes));
    }

    /// There will be no more.
    pub(super) fn finish(mut self) {
        self.call(Lines::finish);
    }

    /// A callback that panics is not called again; the child still has to be watched.
    fn call(&mut self, f: impl FnOnce(&mut Lines)) {
        if let Some(mut lines) = self.lines.take() {
            let call = std::panic::AssertUnwindSafe(|| {
                f(&mut lines);
                lines
            });
            self.lines = std::panic::catch_unwind(call).ok();
        }
    }
}
