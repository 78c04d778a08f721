//! `cargo xtask bench`: ours beside the other SDKs and beside no SDK at all, in one run.
//!
//! Everything measured lives in `bench/`, a workspace of its own. Here is what surrounds a
//! measurement: which scenarios there are and what they must reach (`scenarios`), how the peers are
//! built (`peers`), how one of them is run (`measure`), what a build costs (`build_cost`) and the
//! table at the end (`report`).

mod build_cost;
mod measure;
mod peers;
mod report;
mod scenarios;

use measure::{Machine, Measured};
use peers::Peer;
use scenarios::{BUILD, SCENARIOS, Scenario, Side};
use std::path::PathBuf;

const USAGE: &str = "usage: cargo xtask bench [OPTIONS]
  --quick            smaller sizes, fewer repetitions, no build costs: a few minutes
  --reps N           repetitions, interleaved between the peers (5, quick 3)
  --only NAMES       peers, scenarios or both, separated by commas
  --machine STATE    quiet: nothing runs beside; awake: a loop of the lowest priority keeps every core from
                     sleeping; busy: other work of ordinary priority on every core (awake)
  --no-fail          a missed target does not make the exit code 1
  --list             the names that --only takes";

struct Options {
    quick: bool,
    reps: usize,
    only: Vec<String>,
    machine: Machine,
    no_fail: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Option<Options>, String> {
        let mut options =
            Options { quick: false, reps: 0, only: Vec::new(), machine: Machine::Awake, no_fail: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value\n{USAGE}"));
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--no-fail" => options.no_fail = true,
                "--reps" => {
                    options.reps = value()?.parse().map_err(|_| format!("--reps wants a number\n{USAGE}"))?;
                }
                "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
                "--machine" => options.machine = Machine::parse(value()?)?,
                "--list" => {
                    list();
                    return Ok(None);
                }
                "--help" | "-h" => {
                    println!("{USAGE}");
                    return Ok(None);
                }
                other => return Err(format!("unknown option {other}\n{USAGE}")),
            }
        }
        if options.reps == 0 {
            options.reps = if options.quick { 3 } else { 5 };
        }
        options.check_names()?;
        Ok(Some(options))
    }

    fn check_names(&self) -> Result<(), String> {
        let unknown = |name: &&String| !peers::NAMES.contains(&name.as_str()) && !is_scenario(name);
        match self.only.iter().find(unknown) {
            Some(name) => Err(format!("{name} is neither a peer nor a scenario; --list names them")),
            None => Ok(()),
        }
    }

    /// `--only ours,rtt` narrows both; `--only rtt` leaves all peers.
    fn wants(&self, name: &str, same_kind: fn(&str) -> bool) -> bool {
        !self.only.iter().any(|other| same_kind(other)) || self.only.iter().any(|other| other == name)
    }

    fn wants_peer(&self, name: &str) -> bool {
        let optional = peers::ON_DEMAND.contains(&name);
        let named = self.only.iter().any(|other| other == name);
        named || (!optional && self.wants(name, |other| peers::NAMES.contains(&other)))
    }

    fn wants_scenario(&self, name: &str) -> bool {
        self.wants(name, is_scenario)
    }
}

fn is_scenario(name: &str) -> bool {
    name == BUILD.name || SCENARIOS.iter().any(|scenario| scenario.name == name)
}

fn list() {
    println!("peers\n  {}\nscenarios", peers::NAMES.join(" "));
    for scenario in SCENARIOS.iter().chain([&BUILD]) {
        println!("  {:<14} {}", scenario.name, scenario.title);
    }
}

/// Runs the benchmark.
///
/// # Errors
/// When an argument is unknown, a program cannot be built or started, or a target is missed.
pub fn run(args: &[String]) -> Result<(), String> {
    let Some(options) = Options::parse(args)? else { return Ok(()) };
    if !cfg!(target_os = "linux") {
        return Err("the measurements read /proc, which only Linux has".into());
    }
    let places = Places::new();
    let tools = peers::build_tools(&places)?;
    let is_served =
        |scenario: &Scenario| scenario.side == Side::Server && options.wants_scenario(scenario.name);
    let with_servers = SCENARIOS.iter().any(is_served);
    let peers = peers::prepare(&places, |name| options.wants_peer(name), with_servers)?;
    let mut rows = Vec::new();
    {
        let _beside = options.machine.prepare(&tools)?;
        let wanted: Vec<&Scenario> =
            SCENARIOS.iter().filter(|scenario| options.wants_scenario(scenario.name)).collect();
        for (i, scenario) in wanted.iter().enumerate() {
            eprintln!("[{}/{}] {}", i + 1, wanted.len(), scenario.title);
            rows.push((*scenario, measure::scenario(scenario, &peers, &tools, &options, &places)?));
        }
    }
    let named = options.only.iter().any(|name| name == BUILD.name);
    if options.wants_scenario(BUILD.name) && (named || !options.quick) {
        eprintln!("[build] {}", BUILD.title);
        rows.push((&BUILD, build_cost::measure(&peers, &places)?));
    }
    let judged = report::print(&rows, &peers, &options);
    eprintln!("every single run: {}", places.log().display());
    match judged {
        missed if missed.is_empty() => Ok(()),
        missed if options.no_fail => {
            eprintln!("missed: {}", missed.join("; "));
            Ok(())
        }
        missed => Err(format!("{} missed: {}", missed.len(), missed.join("; "))),
    }
}

/// What was measured of each peer, in the order of the peers.
type Row = Vec<Measured>;

/// Where things are.
struct Places {
    /// The sources: `bench/`.
    sources: PathBuf,
    /// What cargo builds, and the results.
    target: PathBuf,
    /// What npm and pip install, kept between runs and outside the repository.
    cache: PathBuf,
}

impl Places {
    fn new() -> Places {
        let root = crate::repo::root();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .unwrap_or_else(|| target.clone());
        Places {
            sources: root.join("bench"),
            target: target.join("bench"),
            cache: cache.join("attache").join("bench"),
        }
    }

    fn program(&self, name: &str) -> String {
        self.target.join("release").join(name).display().to_string()
    }

    fn log(&self) -> PathBuf {
        self.target.join("results.jsonl")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args).map(|options| options.unwrap_or_else(|| unreachable!("{line} asks for help")))
    }

    #[test]
    fn only_narrows_peers_and_scenarios_each_for_itself() -> Result<(), String> {
        let all = options("")?;
        assert!(all.wants_peer("ours") && all.wants_scenario("rtt") && !all.wants_peer("raw"));
        let scenario = options("--only rtt")?;
        assert!(scenario.wants_peer("floor") && scenario.wants_scenario("rtt"));
        assert!(!scenario.wants_scenario("stream"));
        let both = options("--only rtt,ours --only raw")?;
        assert!(both.wants_peer("ours") && both.wants_peer("raw") && !both.wants_peer("floor"));
        assert!(options("--only nobody").is_err() && options("--reps many").is_err());
        Ok(())
    }
}
