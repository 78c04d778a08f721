//! The async runtime of commands, and signals that stop them.

use std::future::Future;

use crate::error::{Context as _, Failure, Result};

/// Runs an asynchronous command. Threads that it leaves, such as one that reads a terminal, are not
/// waited for.
pub(crate) fn runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime")?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// Does the work, unless this process is asked to stop before it is done.
pub(crate) async fn until_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut interrupts = Interrupts::new();
    tokio::select! {
        // First, so that signals are handled before the work has left anything to remove.
        biased;
        () = interrupts.next() => Err(Failure::interrupted()),
        result = work => result,
    }
}

/// Requests of the user, or of the system, that this process stops. They are counted from
/// [`Interrupts::new`] on, so one that comes while nothing waits for it is seen by the next wait.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
    #[cfg(windows)]
    ctrl_c: Option<tokio::signal::windows::CtrlC>,
}

#[cfg(unix)]
impl Interrupts {
    /// Watches from now on. Needs the runtime.
    pub(crate) fn new() -> Interrupts {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // A signal that cannot be watched keeps its default action.
        Interrupts { signals: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        std::future::poll_fn(|cx| {
            let ready = self.signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

#[cfg(windows)]
impl Interrupts {
    /// Watches from now on. Needs the runtime.
    pub(crate) fn new() -> Interrupts {
        Interrupts { ctrl_c: tokio::signal::windows::ctrl_c().ok() }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        match &mut self.ctrl_c {
            Some(ctrl_c) => drop(ctrl_c.recv().await),
            None => std::future::pending().await,
        }
    }
}

/// Returns the user's editor for a file. The variables may hold arguments, as in `code --wait`.
pub(crate) fn editor(file: &std::path::Path) -> std::process::Command {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut line = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".into());
    line.push(" \"$1\"");
    let mut program = std::process::Command::new("sh");
    program.arg("-c").arg(line).arg("sh").arg(file);
    program
}
