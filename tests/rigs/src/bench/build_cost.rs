//! What it costs to build a minimal agent from nothing: CPU seconds and crates, in debug mode.

use super::measure::Measured;
use super::peers::{Peer, cargo, finish};
use super::{Places, Row};
use std::path::Path;
use std::process::Stdio;

pub(super) fn measure(peers: &[Peer], places: &Places) -> Result<Row, String> {
    let mut row = Row::new();
    for peer in peers {
        row.push(match peer.minimal {
            None => Measured::failed("has no minimal agent"),
            Some(minimal) => {
                eprint!("    {:<10} ", peer.name);
                let outcome = build(&places.sources.join(minimal), &places.target.join("clean"));
                match &outcome {
                    Ok((cpu, crates)) => eprintln!("{cpu:.1} CPU-s, {crates} crates"),
                    Err(why) => eprintln!("{why}"),
                }
                outcome.map_or_else(Measured::failed, |(cpu, crates)| {
                    let mut measured = Measured::default();
                    measured.add("cpu_s", cpu);
                    measured.add("crates", crates as f64);
                    measured
                })
            }
        });
    }
    Ok(row)
}

fn build(package: &Path, target: &Path) -> Result<(f64, usize), String> {
    // Downloading is not building.
    finish(cargo().args(["fetch", "--quiet"]).current_dir(package))?;
    let _ = std::fs::remove_dir_all(target);
    let before = children_cpu()?;
    let output = cargo()
        .args(["build", "--color=never"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", target)
        // A compiler cache would make the second measurement one of the cache.
        .env("RUSTC_WRAPPER", "")
        .env("CARGO_BUILD_RUSTC_WRAPPER", "")
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let cpu = children_cpu()? - before;
    let _ = std::fs::remove_dir_all(target);
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "{} does not build: {}",
            package.display(),
            said.lines().last().unwrap_or_default()
        ));
    }
    // The agent itself is not one of the crates it brings along.
    let crates = said.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count();
    Ok((cpu, crates.saturating_sub(1)))
}

/// CPU seconds of all children that have ended, and of theirs: cargo waits for every rustc.
fn children_cpu() -> Result<f64, String> {
    let stat =
        std::fs::read_to_string("/proc/self/stat").map_err(|error| format!("/proc/self/stat: {error}"))?;
    // The name in brackets may hold anything; what follows it does not.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    // Fields 16 and 17 of proc(5), counted from the third; the kernel reports hundredths of a
    // second.
    Ok((ticks(13) + ticks(14)) / 100.0)
}
