//! Attacks on the real program: hostile repositories, models, agents, servers and users.
//!
//! Each attack tries one thing that must not happen and looks for its trace: a file, a secret in an
//! output or a request, a process, a decision in the audit log, memory. Controls show that each
//! kind of trace is found where the act is allowed.
//!
//! Reading order: `report.rs`, `world.rs`, then a class in `classes/`. The peers that attack are
//! `model.rs`, `peer.rs`, `mcp.rs`, `web.rs` and `probe.rs`; `editor.rs` and `terminal.rs` are the
//! users.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program: a panic fails the group of attacks in which it happens"
)]

mod backends;
mod classes;
mod editor;
mod mcp;
mod model;
mod peer;
mod probe;
mod report;
mod terminal;
mod web;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use report::{Group, Report};
use world::Suite;

const HELP: &str = "Attack the program and say which attacks it held

Usage: attacks [--program FILE] [--only CLASS|NAME]… [--list] [--verbose] [--keep]

  --program FILE     The program to attack; otherwise the `attache` beside this one
  --only CLASS|NAME  Only this class, or groups and attacks whose name contains this
  --list             List the groups of attacks
  --verbose          Print every attack and how long each group took
  --keep             Keep the directories of the attacks
";

/// Threads that run groups. Most of the time is spent waiting for processes.
const WORKERS: usize = 4;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("agent") => return peer::run(&args[1..]),
        Some("mcp") => return mcp::run(&args[1..]),
        Some("probe") => return probe::run(&args[1..]),
        _ => {}
    }
    let options = match Options::read(&args) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("error: {problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let groups: Vec<Group> =
        classes::all().into_iter().filter(|group| group.is_wanted(&options.only)).collect();
    if options.list {
        for group in &groups {
            println!("{:<12} {:<24} {}", group.class, group.name, group.about);
        }
        return ExitCode::SUCCESS;
    }
    let suite = match Suite::new(options.program.clone(), options.keep) {
        Ok(suite) => suite,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    let report = run(&suite, &groups, &options);
    let held = report.print(&suite.root);
    drop(suite);
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the groups on a few threads.
fn run(suite: &Suite, groups: &[Group], options: &Options) -> Report {
    let total = Mutex::new(Report::default());
    std::panic::set_hook(Box::new(|_| {}));
    // Groups that depend on how fast a key follows run when the machine is idle.
    for quiet in [false, true] {
        run_phase(suite, groups.iter().filter(|group| group.quiet == quiet), options, &total);
    }
    let _ = std::panic::take_hook();
    total.into_inner().unwrap()
}

fn run_phase<'a>(
    suite: &Suite,
    groups: impl Iterator<Item = &'a Group> + Send,
    options: &Options,
    total: &Mutex<Report>,
) {
    let queue = Mutex::new(groups);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(group) = queue.lock().unwrap().next() else { return };
                    let start = Instant::now();
                    let mut report = Report::of(group, &options.only);
                    let run = catch_unwind(AssertUnwindSafe(|| (group.run)(suite, &mut report)));
                    if let Err(panic) = run {
                        report.broken(&report::panic_text(panic.as_ref()));
                    }
                    if options.verbose {
                        report.print_lines(start.elapsed());
                    }
                    total.lock().unwrap().merge(report);
                }
            });
        }
    });
}

#[derive(Default)]
struct Options {
    program: Option<PathBuf>,
    only: Vec<String>,
    list: bool,
    verbose: bool,
    keep: bool,
    help: bool,
}

impl Options {
    fn read(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().cloned().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--program" => options.program = Some(value()?.into()),
                "--only" => options.only.push(value()?),
                "--list" => options.list = true,
                "--verbose" | "-v" => options.verbose = true,
                "--keep" => options.keep = true,
                "--help" | "-h" => options.help = true,
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(options)
    }
}
