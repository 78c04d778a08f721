//! `cargo xtask fuzz`: runs every fuzz target over the kept corpus, for a bounded time or a number
//! of runs.

use std::path::Path;
use std::process::Command;

use crate::repo;

const TARGETS: &[&str] = &["frame", "machine", "router", "sse", "ws"];
const HELP: &str = "usage: cargo xtask fuzz [--seconds N | --runs N] [TARGET…]   (default: 30 seconds each)";

/// When a target stops.
#[derive(Clone, Copy)]
enum Bound {
    Seconds(u32),
    Runs(u32),
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (bound, targets) = read(args)?;
    let fuzz = repo::root().join("fuzz");
    // Not in a directory that other users share.
    let scratch = fuzz.join("target").join(format!("found-{}", std::process::id()));
    let outcome = targets.iter().try_for_each(|target| one(&fuzz, &scratch, target, bound));
    // What was found along the way is not kept; a failure is printed and its input stays in
    // fuzz/artifacts.
    let _ = std::fs::remove_dir_all(&scratch);
    outcome
}

fn read(args: &[String]) -> Result<(Bound, Vec<&str>), String> {
    let (mut bound, mut targets) = (Bound::Seconds(30), Vec::new());
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).ok_or(HELP);
        match arg {
            "--help" | "-h" => return Err(HELP.to_owned()),
            "--seconds" => bound = Bound::Seconds(number()?),
            "--runs" => bound = Bound::Runs(number()?),
            target if TARGETS.contains(&target) => targets.push(target),
            other => return Err(format!("there is no target `{other}`; there are: {}", TARGETS.join(", "))),
        }
    }
    if targets.is_empty() {
        targets = TARGETS.to_vec();
    }
    Ok((bound, targets))
}

fn one(fuzz: &Path, scratch: &Path, target: &str, bound: Bound) -> Result<(), String> {
    let (option, words) = match bound {
        Bound::Seconds(n) => (format!("-max_total_time={n}"), format!("{n} s")),
        Bound::Runs(n) => (format!("-runs={n}"), format!("{n} runs")),
    };
    println!("fuzzing `{target}` for {words}");
    let found = scratch.join(target);
    let artifacts = fuzz.join("artifacts");
    for dir in [&found, &artifacts] {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let output = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--bin", target, "--"])
        .args([option.as_str(), "-max_len=4096", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/{target}-", artifacts.display()))
        .arg(&found)
        .arg(Path::new("corpus").join(target))
        .current_dir(fuzz)
        // It would replace the flags that ask for coverage counters.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<&str> = text.lines().rev().take(40).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        return Err(format!("`{target}` failed ({}):\n{}", output.status, tail.join("\n")));
    }
    let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    match runs.map(str::trim) {
        // A target that never ran would otherwise look like one that found nothing.
        None | Some("0") => Err(format!("`{target}` reported no runs:\n{text}")),
        Some(runs) => {
            println!("  {runs} runs, no failure");
            Ok(())
        }
    }
}
