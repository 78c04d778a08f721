//! The standard streams of this process.

use super::threads;
use tokio::io::{AsyncRead, AsyncWrite};

/// The standard streams, taken away from everybody else in the process.
pub(super) struct Stdio;

impl Stdio {
    pub(super) fn take() -> Stdio {
        Stdio
    }

    pub(super) fn open(self) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        (Box::new(threads::reader(std::io::stdin())), Box::new(threads::writer(std::io::stdout())))
    }
}
