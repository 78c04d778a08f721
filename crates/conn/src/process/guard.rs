//! The handle to a running child.

use std::fmt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::os::Control;
use super::tail::{Lines, Tail};

/// Owns a child process. Dropping it ends the child in the background, without a runtime.
///
/// The shutdown sequence begins with the end of the child's stdin, which is another value
/// ([`Child::stdin`](super::Child)): drop it first, or [`Command::grace`](super::Command::grace)
/// passes without effect.
///
/// Example: [`Command::spawn`](super::Command::spawn).
pub struct ChildGuard {
    pid: u32,
    control: Arc<Control>,
    exit: watch::Receiver<Option<ExitStatus>>,
    tail: Arc<Mutex<Tail>>,
}

impl ChildGuard {
    pub(super) fn new(pid: u32, control: Arc<Control>, exit_sender: &ExitSender, sink: &OutputSink) -> Self {
        tracing::debug!(pid, "child started");
        Self { pid, control, exit: exit_sender.0.subscribe(), tail: sink.tail.clone() }
    }

    /// Returns the child's process id, for display. End the child with this guard: the id may be
    /// reused.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the child and all its descendants have ended and are reaped. Does not end them.
    pub async fn wait(&self) -> ExitStatus {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or_default(),
            // The thread that watches publishes before it goes, so this is not reached.
            Err(_) => ExitStatus::default(),
        }
    }

    /// Returns the exit status if the child has ended.
    pub fn try_exit(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Returns the last 64 KiB of a captured stderr; complete when the child has ended.
    pub fn stderr_tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Starts the shutdown sequence (grace period, `SIGTERM`, grace period, `SIGKILL`) and waits
    /// for its end. It continues when this future is dropped.
    pub async fn shutdown(&self) -> ExitStatus {
        self.control.stop();
        self.wait().await
    }

    /// Starts the shutdown sequence at `SIGTERM`, and does not wait. Windows has no such signal:
    /// there it is a kill.
    pub fn terminate(&self) {
        self.control.terminate();
    }

    /// Kills the child and all its descendants, and does not wait.
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

/// Publishes the exit status of a reaped child.
pub(super) struct ExitSender(watch::Sender<Option<ExitStatus>>);

impl ExitSender {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn publish(self, status: ExitStatus) {
        self.0.send_replace(Some(status));
    }
}

/// Receives the child's stderr or the output of its terminal.
pub(super) struct OutputSink {
    tail: Arc<Mutex<Tail>>,
    listener: Option<Listener>,
}

enum Listener {
    Lines(Lines),
    #[cfg(unix)]
    Terminal(super::OnEvent),
}

impl OutputSink {
    pub(super) fn new(on_line: Option<super::OnLine>) -> Self {
        Self { tail: Arc::default(), listener: on_line.map(|on_line| Listener::Lines(Lines::new(on_line))) }
    }

    /// Output of a terminal is not recorded.
    #[cfg(unix)]
    pub(super) fn of_terminal(on_event: super::OnEvent) -> Self {
        Self { tail: Arc::default(), listener: Some(Listener::Terminal(on_event)) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        #[cfg(unix)]
        if let Some(Listener::Terminal(_)) = self.listener {
            return self.call(|listener| listener.push(bytes));
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        self.call(|listener| listener.push(bytes));
    }

    /// Ends the output.
    #[cfg(windows)]
    pub(super) fn finish(mut self) {
        self.call(|Listener::Lines(lines)| lines.finish());
    }

    /// Ends the output with the exit status.
    #[cfg(unix)]
    pub(super) fn finish_with(mut self, status: ExitStatus) {
        self.call(|listener| match listener {
            Listener::Lines(lines) => lines.finish(),
            Listener::Terminal(on_event) => on_event(super::PtyEvent::Ended(status)),
        });
    }

    /// A callback that panics is not called again; the child still has to be watched.
    fn call(&mut self, f: impl FnOnce(&mut Listener)) {
        if let Some(mut listener) = self.listener.take() {
            let call = std::panic::AssertUnwindSafe(|| {
                f(&mut listener);
                listener
            });
            self.listener = std::panic::catch_unwind(call).ok();
        }
    }
}

impl Listener {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Listener::Lines(lines) => lines.push(bytes),
            #[cfg(unix)]
            Listener::Terminal(on_event) => on_event(super::PtyEvent::Output(bytes)),
        }
    }
}
