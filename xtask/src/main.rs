//! The project's own chores: `cargo xtask help` lists them.
//!
//! Each chore is a module with one entry, `run(args) -> Result<(), String>`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people: it prints")]

mod api;
mod attacks;
mod coverage;
mod dist;
mod examples;
mod fuzz;
mod kills;
mod matrix;
mod picture;
mod rules;
mod sources;
mod tidy;

use std::process::ExitCode;

use attache_rigs::{agent_eval, bench, interop, nats, program_bench, real_model, repo, sandbox_bench};

type Chore = (&'static str, &'static str, fn(&[String]) -> Result<(), String>);

const CHORES: &[Chore] = &[
    (
        "agent-eval",
        "measure coding agents on small tasks with a real model (--help says how)",
        agent_eval::run,
    ),
    ("api", "write the public API of the libraries to docs/api; --check compares", api::run),
    (
        "attacks",
        "attack the program with hostile repositories, models, agents and servers (--help says how)",
        attacks::run,
    ),
    ("bench", "measure ours beside the other SDKs (--help says how)", bench::run),
    ("bench-program", "measure the program beside npm's acpx (--help says how)", program_bench::run),
    ("bench-sandbox", "measure what the sandbox adds to a command (--help says how)", sandbox_bench::run),
    (
        "check-coverage",
        "which rules the checker covers, and which of its checks have been shown to fail",
        coverage::run,
    ),
    (
        "conformance",
        "judge our peers, the official ones and real ones, for docs/conformance.md",
        interop::conformance,
    ),
    ("dist", "pack the program for tar, Debian, npm, PyPI, containers and the registry (--check)", dist::run),
    ("examples", "run example messages against the crates (FILE…, or the repository's own)", examples::run),
    ("fuzz", "run the fuzz targets for a bounded time or number of runs (--seconds N, --runs N)", fuzz::run),
    (
        "interop",
        "run our agent and clients against the official SDKs and real agents (--help says how)",
        interop::run,
    ),
    ("kills", "kill the hub, its agents and its clients at random moments (--help says how)", kills::run),
    ("matrix", "play every scenario of the checker with every variant of a peer", matrix::run),
    ("nats", "run the journal and several hubs on real NATS servers (--help says how)", nats::run),
    ("picture", "draw the chat for the README, from its real screen (docs/chat.svg)", picture::run),
    ("real-model", "let a language model on this machine drive our agent (--if-available)", real_model::run),
    ("rules", "write docs/rules.md; --check says which duties are open", rules::run),
    ("sources", "compare the sentences that rules quote with the documents (--help says how)", sources::run),
    ("tidy", "check what docs/STYLE.md asks and a program can see", tidy::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    if let Some((_, _, run)) = CHORES.iter().find(|(chore, _, _)| *chore == name) {
        return match run(&args[1..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("xtask {name}: {message}");
                ExitCode::FAILURE
            }
        };
    }
    println!("usage: cargo xtask CHORE [ARGS]\n");
    for (chore, what, _) in CHORES {
        println!("  {chore:<15} {what}");
    }
    if matches!(name, "help" | "--help" | "-h") { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
