//! Child processes as real processes: after every kind of end, the tests count what is left in `/proc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod ends;
mod orphans;
mod proc;
mod starts;

use std::time::Duration;

use attache_conn::process::{Child, Command};
use tokio::io::{AsyncBufReadExt, BufReader};

use proc::Mark;

/// A shell script as the child, marked so that it and its descendants can be found.
fn script(mark: &Mark, text: &str) -> Command {
    Command::new("/bin/sh").arg("-c").arg(text).env(Mark::NAME, mark.value())
}

/// The ladder with steps that no test has to wait long for.
fn hasty(command: Command) -> Command {
    command.grace(Duration::from_millis(50)).term_grace(Duration::from_millis(50))
}

/// Reads stdout until each of `words` has come as a line, in any order.
async fn heard(child: &mut Child, words: &[&str]) {
    let mut lines = BufReader::new(&mut child.stdout).lines();
    let mut missing = words.to_vec();
    while !missing.is_empty() {
        let line = lines.next_line().await.unwrap().expect("stdout ended too early");
        missing.retain(|word| *word != line);
    }
}
