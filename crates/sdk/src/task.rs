//! A spawned task that ends with whoever waits for it.

use tokio::task::JoinHandle;

use crate::{Error, Result};

/// Waits for a task; the task is aborted if this is dropped first.
pub(crate) async fn join<T>(handle: JoinHandle<T>) -> Result<T> {
    let mut task = AbortOnDrop(handle);
    (&mut task.0).await.map_err(Error::internal)
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
