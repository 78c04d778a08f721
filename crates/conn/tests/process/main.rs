//! Child processes as real processes: after every kind of end, the tests count the processes that
//! remain.
#![cfg(any(target_os = "linux", windows))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[cfg(target_os = "linux")]
mod attacks;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(target_os = "linux")]
mod starts;
#[cfg(windows)]
mod windows;

use attache_conn::process::Child;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Reads stdout until each of `words` has come as a line, in any order.
async fn wait_for_output(child: &mut Child, words: &[&str]) {
    let mut lines = BufReader::new(&mut child.stdout).lines();
    let mut missing = words.to_vec();
    while !missing.is_empty() {
        let line = lines.next_line().await.unwrap().expect("stdout ended too early");
        missing.retain(|word| *word != line);
    }
}
