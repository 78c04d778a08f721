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

/// What is written down of the child's stderr, or handed on of its terminal.
pub(super) struct Notes {
    tail: Arc<Mutex<Tail>>,
    listener: Option<Listener>,
}

enum Listener {
    Lines(Lines),
    #[cfg(unix)]
    Terminal(super::OnEvent),
}

impl Notes {
    pub(super) fn new(on_line: Option<super::OnLine>) -> Self {
        Self { tail: Arc::default(), listener: on_line.map(|on_line| Listener::Lines(Lines::new(on_line))) }
    }

    /// Nothing is kept here of a terminal.
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

    /// There will be no more.
    #[cfg(windows)]
    pub(super) fn finish(mut self) {
        self.call(|Listener::Lines(lines)| lines.finish());
    }

    /// There will be no more, and this is how the child ended.
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
