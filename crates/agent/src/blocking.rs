//! Work that blocks, on a thread of its own.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs work that may wait for a disk. The error is the work's, or says that it panicked.
pub(crate) async fn run<T: Send + 'static, E: Display + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Like [`run`], for long work: the flag is set when the caller stops waiting.
pub(crate) async fn run_until_dropped<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, String> {
    struct StopOnDrop(Arc<AtomicBool>);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = StopOnDrop(Arc::default());
    let flag = stop.0.clone();
    run(move || Ok::<T, String>(work(&flag))).await
}
