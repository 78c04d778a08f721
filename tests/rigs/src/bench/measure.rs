//! Runs the measured programs and keeps what they say.

use super::peers::{Peer, Tools};
use super::scenarios::{Scenario, Side};
use super::{Options, Places, Row};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

/// No run may take longer.
const TIMEOUT: u64 = 300;

/// The figures of one peer in one scenario, a value per repetition.
#[derive(Default)]
pub(super) struct Measured {
    figures: BTreeMap<String, Vec<f64>>,
    /// Why there are none.
    pub failure: Option<String>,
    /// Messages lost, doubled or out of order, over all repetitions.
    pub disorder: f64,
}

impl Measured {
    pub(super) fn add(&mut self, key: &str, value: f64) {
        self.figures.entry(key.to_owned()).or_default().push(value);
    }

    pub(super) fn failed(why: impl Into<String>) -> Measured {
        Measured { failure: Some(why.into()), ..Measured::default() }
    }

    pub(super) fn median(&self, key: &str) -> Option<f64> {
        let mut values = self.figures.get(key)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(values[middle]),
            _ => Some((values[middle - 1] + values[middle]) / 2.0),
        }
    }

    fn take(&mut self, report: &Map<String, Value>) {
        if let Some(why) = report.get("error") {
            self.failure = Some(why.as_str().unwrap_or("it failed").to_owned());
            return;
        }
        for (key, value) in report {
            if let Some(number) = value.as_f64() {
                self.add(key, number);
            }
        }
        self.disorder += report.get("order_errors").and_then(Value::as_f64).unwrap_or(0.0);
    }
}

/// All repetitions of one scenario. They are interleaved, so that what else the machine does hits
/// all alike.
pub(super) fn scenario(
    scenario: &Scenario,
    peers: &[Peer],
    tools: &Tools,
    options: &Options,
    places: &Places,
) -> Result<Row, String> {
    // A line that rewrites itself is for people, not for logs.
    let alive = std::io::stderr().is_terminal();
    let mut row: Row = peers.iter().map(|_| Measured::default()).collect();
    for rep in 0..options.reps {
        for (peer, measured) in peers.iter().zip(&mut row) {
            if measured.failure.is_some() {
                continue;
            }
            let Some(command) = command(scenario, peer, tools, options.quick) else {
                measured.failure = Some("has no such side".into());
                continue;
            };
            if alive {
                eprint!("\r    {}/{} {:<10}", rep + 1, options.reps, peer.name);
            }
            let report = once(&options.machine.ahead(tools, command), peer.protocol);
            log(places, scenario, peer, rep, &report)?;
            measured.take(&report);
        }
    }
    if alive {
        eprint!("\r{:30}\r", "");
    }
    for (peer, measured) in peers.iter().zip(&row) {
        let summary = scenario
            .figures
            .first()
            .and_then(|figure| Some(super::report::show(figure.unit, measured.median(figure.key)?)));
        let failure = measured.failure.as_deref().unwrap_or("no figure");
        eprintln!("    {:<10} {}", peer.name, summary.as_deref().unwrap_or(failure));
    }
    Ok(row)
}

fn command(scenario: &Scenario, peer: &Peer, tools: &Tools, quick: bool) -> Option<Vec<String>> {
    if (peer.protocol == 2 && scenario.in_v2.is_none())
        || (scenario.only_ours && !peer.name.starts_with("ours"))
    {
        return None;
    }
    let args = match scenario.light {
        Some(light) if !peer.fast => light,
        _ if quick => scenario.quick,
        _ => scenario.args,
    };
    let args = args.split(' ').map(str::to_owned);
    let mut command = Vec::new();
    match scenario.side {
        Side::Agent => {
            command.extend([tools.driver.clone(), "--timeout".into(), TIMEOUT.to_string()]);
            command.extend(args);
            command.push("--".into());
            command.extend(peer.agent.iter().cloned());
        }
        Side::Client => {
            command.extend(peer.client.iter().flatten().cloned());
            if command.is_empty() {
                return None;
            }
            command.extend(args);
            command.extend(["--".into(), tools.raw_agent.clone()]);
        }
        Side::Server => {
            let server = peer.server.as_ref()?;
            command.extend([tools.driver.clone(), "--timeout".into(), TIMEOUT.to_string()]);
            command.extend(args);
            command.push("--".into());
            command.extend(server.iter().cloned());
        }
        Side::Build => return None,
    }
    Some(command)
}

/// The last line that the program prints, read as JSON.
fn once(command: &[String], protocol: u8) -> Map<String, Value> {
    let error = |why: String| Map::from_iter([("error".to_owned(), Value::String(why))]);
    let spawned = Command::new(&command[0])
        .args(&command[1..])
        .env("BENCH_PROTOCOL", protocol.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(why) => return error(format!("{} does not start: {why}", command[0])),
    };
    let (done, printed) = mpsc::channel();
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            let _ = done.send(text);
        });
    }
    // The driver ends hanging agents itself, a little earlier; this is for clients.
    let text = printed.recv_timeout(Duration::from_secs(TIMEOUT + 10));
    if text.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    match text.as_deref().map(|text| text.trim().lines().last().unwrap_or_default()) {
        Err(_) => error(format!("no end after {TIMEOUT} s")),
        Ok("") => error("it printed nothing".into()),
        Ok(line) => serde_json::from_str(line).unwrap_or_else(|why| error(format!("{why} in {line}"))),
    }
}

fn log(
    places: &Places,
    scenario: &Scenario,
    peer: &Peer,
    rep: usize,
    report: &Map<String, Value>,
) -> Result<(), String> {
    let mut entry = report.clone();
    entry.insert("scenario".into(), scenario.name.into());
    entry.insert("peer".into(), peer.name.into());
    entry.insert("rep".into(), rep.into());
    let path = places.log();
    let mut file = OpenOptions::new().create(true).append(true).open(&path);
    file.as_mut()
        .map_err(|error| error.to_string())
        .and_then(|file| writeln!(file, "{}", Value::Object(entry)).map_err(|error| error.to_string()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether we may have the highest priority: mostly only root may.
pub(super) fn has_priority() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        // Without a command, `nice` prints the niceness it runs with.
        let told = Command::new("nice").args(["-n", "-20", "nice"]).output();
        told.is_ok_and(|told| told.stdout.trim_ascii() == b"-20")
    })
}

/// What runs beside the measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    Quiet,
    Awake,
    Busy,
}

/// Ends what runs beside when the measurements end, or when this program does.
pub(super) struct Beside(Vec<Child>);

impl Machine {
    pub(super) fn parse(word: &str) -> Result<Machine, String> {
        match word {
            "quiet" => Ok(Machine::Quiet),
            "awake" => Ok(Machine::Awake),
            "busy" => Ok(Machine::Busy),
            other => Err(format!("--machine {other}: quiet, awake or busy")),
        }
    }

    /// Puts the measured programs ahead of whatever else runs, unless that is the point.
    fn ahead(self, tools: &Tools, command: Vec<String>) -> Vec<String> {
        if self == Machine::Busy || !has_priority() {
            return command;
        }
        [tools.driver.clone(), "ahead".into(), "--".into()].into_iter().chain(command).collect()
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Machine::Quiet => "nothing of ours beside",
            Machine::Awake => "a loop of the lowest priority keeps every core awake",
            Machine::Busy => "other work of ordinary priority on every core",
        }
    }

    pub(super) fn prepare(self, tools: &Tools) -> Result<Beside, String> {
        let niceness = match self {
            Machine::Quiet => return Ok(Beside(Vec::new())),
            Machine::Awake => "19",
            Machine::Busy => "0",
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores)
            .map(|_| {
                let mut spin = Command::new(&tools.driver);
                spin.args(["spin", niceness]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
            })
            .collect::<Result<_, _>>()
            .map(Beside)
            .map_err(|error| format!("{}: {error}", tools.driver))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn figures_are_medians_and_disorder_adds_up() {
        let mut measured = Measured::default();
        for line in [r#"{"per_s":3,"order_errors":1}"#, r#"{"per_s":1,"order_errors":1}"#, r#"{"per_s":2}"#] {
            measured.take(&report(line));
        }
        assert_eq!(measured.median("per_s"), Some(2.0));
        assert_eq!(measured.median("p50_us"), None);
        assert_eq!(measured.disorder, 2.0);
        measured.take(&report(r#"{"per_s":4}"#));
        assert_eq!(measured.median("per_s"), Some(2.5));
        measured.take(&report(r#"{"error":"timeout"}"#));
        assert_eq!(measured.failure.as_deref(), Some("timeout"));
    }
}
