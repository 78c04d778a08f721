//! Kills the hub, its agents and its clients at random moments, and checks what must hold
//! nevertheless.
//!
//! ```text
//! campaign --starts and kills--> attache hub --starts--> kills agent (writes down what it got)
//!          --starts and kills--> kills client (writes down what it saw, comes back where it was)
//! ```
//!
//! A campaign plays worlds: one hub with a SQLite journal, two sessions, three clients on both of
//! them. After some kills the clients finish what they have begun, and `laws.rs` compares their
//! logs, the logs of the agents and the journal.
//!
//! Reading order: `campaign.rs`, `world.rs`, `client.rs`, `view.rs`, `agent.rs`, `laws.rs`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people: it prints")]

mod agent;
mod campaign;
mod client;
mod laws;
mod log;
mod process;
mod random;
mod view;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("agent") => agent::run(&args[1..]),
        Some("client") => client::run(&args[1..]),
        // A process that does nothing, started by an agent.
        Some("idle") => loop {
            std::thread::park();
        },
        _ => campaign::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kills: {error}");
            ExitCode::FAILURE
        }
    }
}
