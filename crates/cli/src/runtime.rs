//! The async runtime of commands, and signals that stop them.

use std::future::Future;

use crate::error::{Context as _, Result};

/// Runs an asynchronous command. Threads that it leaves, such as one that reads a terminal, are not
/// waited for.
pub(crate) fn runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime")?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// Resolves each time the user, or the system, wants this process to stop.
#[cfg(unix)]
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn next(signal: std::io::Result<Signal>) {
        match signal {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    }
    tokio::select! {
        () = next(signal(SignalKind::interrupt())) => {}
        () = next(signal(SignalKind::terminate())) => {}
        () = next(signal(SignalKind::hangup())) => {}
    }
}

#[cfg(not(unix))]
pub(crate) async fn interrupted() {
    let _ = tokio::signal::ctrl_c().await;
}
