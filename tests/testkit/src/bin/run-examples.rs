//! Runs example files and says which lines do not behave as they should. `cargo xtask examples`
//! calls it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people: it prints")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use attache_testkit::example;
use attache_testkit::verify::{Verdict, verify};

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let (mut good, mut bad, mut elsewhere) = (0usize, 0usize, 0usize);
    for file in &files {
        let lines = match std::fs::read(file)
            .map_err(|error| error.to_string())
            .and_then(|bytes| example::read(&bytes))
        {
            Ok(lines) => lines,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        };
        let mut out_of_scope: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let (good_before, bad_before) = (good, bad);
        println!("{file}: {} lines", lines.len());
        for line in lines {
            match verify(&line, attache_testkit::semantic::verify) {
                Verdict::Pass => good += 1,
                Verdict::OutOfScope(why) => {
                    elsewhere += 1;
                    out_of_scope.entry(why).or_default().push(line.id);
                }
                Verdict::Fail(why) => {
                    bad += 1;
                    let about = [&line.method, &line.rule].map(String::as_str).join(" ");
                    println!("  {} ({}) does not behave: {why}", line.id, about.trim());
                }
            }
        }
        println!("  {} behave as they should, {} do not", good - good_before, bad - bad_before);
        for (why, ids) in out_of_scope {
            println!("  {} out of scope ({why}): {}", ids.len(), ids.join(" "));
        }
    }
    println!("{good} of {} behave as they should, {bad} do not, {elsewhere} are out of scope", good + bad);
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
