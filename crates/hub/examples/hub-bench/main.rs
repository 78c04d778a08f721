//! Measures a hub in a process of its own, with a journal in a SQLite file that flushes every
//! commit to the disk.
//!
//! ```text
//! cargo run --release -p attache-hub --example hub-bench [--connections N] [--watchers N] [DIRECTORY]
//! ```
//!
//! The directory decides which disk is measured; the default is that of temporary files. Exits with
//! 1 when a target is missed. Agents and the hub are processes of this program; clients are threads
//! that read bytes and no JSON, so that the hub is what is measured.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod agent;
mod client;
mod hub;
mod process;
mod scenarios;
mod table;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The sizes of the scenarios.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) connections: usize,
    pub(crate) watchers: usize,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("agent") => agent::run().map(|()| true),
        Some("hub") => hub::run(Path::new(args.get(1).map_or(".", String::as_str))).map(|()| true),
        _ => bench(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(args: &[String]) -> io::Result<bool> {
    let mut sizes = Sizes { connections: 10_000, watchers: 1_000 };
    let mut parent = std::env::temp_dir();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| io::Error::other(format!("{arg} needs a number")))
        };
        match arg.as_str() {
            "--connections" => sizes.connections = number()?,
            "--watchers" => sizes.watchers = number()?,
            directory => parent = PathBuf::from(directory),
        }
    }
    let directory = parent.join(format!("attache-hub-bench-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let measured = scenarios::run(&directory, sizes);
    let _ = std::fs::remove_dir_all(&directory);
    measured
}
