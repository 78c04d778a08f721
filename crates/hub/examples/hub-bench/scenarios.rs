//! The scenarios, each with its targets.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Sizes;
use crate::agent;
use crate::client::{Client, hold_websocket};
use crate::process::HubProcess;
use crate::table::Table;

const UPDATES: u64 = 1_000_000;
const HISTORY: u64 = 100_000;
const PROMPTS: u32 = 2_000;
const RATE: u64 = 1_000;
const RATED: u64 = 10_000;
/// Watchers whose updates are timed; the bytes of the others are counted.
const TIMED: usize = 20;
const RUNS: usize = 3;

pub(crate) fn run(directory: &Path, sizes: Sizes) -> io::Result<bool> {
    let mut table = Table::new();
    throughput(directory, &mut table)?;
    resume(directory, &mut table)?;
    round_trips(directory, &mut table)?;
    watchers(directory, sizes.watchers, &mut table)?;
    connections(directory, sizes.connections, &mut table)?;
    Ok(table.is_met())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn position(response: &Value) -> io::Result<String> {
    let at = response["result"]["_meta"]["attache"]["at"].as_str();
    at.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no position: {response}")))
}

/// As fast as it goes from one agent to one client.
fn throughput(directory: &Path, table: &mut Table) -> io::Result<()> {
    let hub = HubProcess::start(directory)?;
    let mut client = Client::connect(directory)?;
    let mut rates = Vec::new();
    let session = client.new_session()?;
    hub.reset_peak()?;
    for _ in 0..RUNS {
        let start = Instant::now();
        let prompt = client.prompt(&session, &format!("burst {UPDATES}"))?;
        client.response(prompt)?;
        rates.push(UPDATES as f64 / start.elapsed().as_secs_f64());
    }
    let (rate, peak) = (middle(rates), hub.memory("VmHWM") / 1000.0);
    let scenario = "1,000,000 updates from one agent to one client";
    let value = format!("{:.0}k/s", rate / 1e3);
    table.target(scenario, "updates", &value, "at least 500k/s", rate >= 500e3);
    table.target("", "peak memory of the hub", &format!("{peak:.1} MB"), "at most 40 MB", peak <= 40.0);
    Ok(())
}

/// A client that comes back to a long session.
fn resume(directory: &Path, table: &mut Table) -> io::Result<()> {
    let hub = HubProcess::start(directory)?;
    let mut client = Client::connect(directory)?;
    let session = client.new_session()?;
    let start = position(&client.open("session/resume", &session, None)?)?;
    let prompt = client.prompt(&session, &format!("burst {HISTORY}"))?;
    client.response(prompt)?;
    let middle_position = start.split_once('.').map(|(epoch, _)| format!("{epoch}.{}", HISTORY / 2));
    let after = middle_position.as_deref().unwrap_or(&start);
    let mut first = Vec::new();
    for _ in 0..RUNS * 5 {
        first.push(first_byte(&mut Client::connect(directory)?, &session, after)?);
    }
    let first = middle(first);
    let scenario = "resume of a session of 100,000 updates from its middle";
    let value = format!("{:.2} ms", first * 1e3);
    table.target(scenario, "first byte", &value, "under 20 ms", first < 0.020);
    drop(hub);
    let mut cold = Vec::new();
    for _ in 0..RUNS {
        let _hub = HubProcess::start(directory)?;
        cold.push(first_byte(&mut Client::connect(directory)?, &session, after)?);
    }
    table.row(
        "the same in a hub that was just started",
        "first byte",
        &format!("{:.2} ms", middle(cold) * 1e3),
    );
    Ok(())
}

/// Seconds from the request to the first byte of the replay.
fn first_byte(client: &mut Client, session: &str, after: &str) -> io::Result<f64> {
    let params = serde_json::json!({
        "sessionId": session, "cwd": "/", "mcpServers": [], "_meta": {"attache": {"after": after, "strict": true}},
    });
    let start = Instant::now();
    client.request("session/resume", &params)?;
    client.read_lines(|_| {})?;
    Ok(start.elapsed().as_secs_f64())
}

/// What the hub computes for a prompt and its answer.
fn round_trips(directory: &Path, table: &mut Table) -> io::Result<()> {
    let hub = HubProcess::start(directory)?;
    let mut client = Client::connect(directory)?;
    let session = client.new_session()?;
    let (mut cpu, mut time) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (before, start) = (hub.cpu()?, Instant::now());
        for _ in 0..PROMPTS {
            let prompt = client.prompt(&session, "echo")?;
            client.response(prompt)?;
        }
        cpu.push((hub.cpu()? - before).as_secs_f64() / f64::from(PROMPTS) * 1e6);
        time.push(start.elapsed().as_secs_f64() / f64::from(PROMPTS) * 1e6);
    }
    let cpu = middle(cpu);
    let scenario = "prompts without updates, one at a time";
    table.target(scenario, "CPU of the hub each", &format!("{cpu:.0} us"), "under 100 us", cpu < 100.0);
    table.row("", "time each, with two flushes", &format!("{:.0} us", middle(time)));
    Ok(())
}

/// One session and many clients that watch it, of which one takes nothing.
fn watchers(directory: &Path, count: usize, table: &mut Table) -> io::Result<()> {
    let hub = HubProcess::start(directory)?;
    let mut author = Client::connect(directory)?;
    let session = author.new_session()?;
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = Client::connect(directory)?;
        client.open("session/resume", &session, None)?;
        clients.push(client);
    }
    let mut stalled = Client::connect(directory)?;
    stalled.open("session/resume", &session, None)?;
    let before = hub.memory("VmRSS");
    let delays = Mutex::new(Vec::new());
    let whole = Mutex::new(0_usize);
    let others = clients.split_off(TIMED.min(clients.len()));
    let shares: Vec<Vec<Client>> = {
        let mut shares: Vec<Vec<Client>> = (0..4).map(|_| Vec::new()).collect();
        for (number, client) in others.into_iter().enumerate() {
            shares[number % 4].push(client);
        }
        shares
    };
    let (cpu, start) = (hub.cpu()?, Instant::now());
    let mut took = 0.0;
    std::thread::scope(|scope| -> io::Result<()> {
        for mut client in clients {
            let (delays, whole) = (&delays, &whole);
            scope.spawn(move || {
                let mut own = Vec::new();
                let mut ended = false;
                while !ended {
                    let read = client.read_lines(|line| match time_of(line) {
                        Some(sent) => own.push(agent::now().saturating_sub(sent) as f64 / 1e6),
                        None => ended |= contains(line, b"turn_ended"),
                    });
                    if read.is_err() {
                        break;
                    }
                }
                if let Ok(mut whole) = whole.lock() {
                    *whole += usize::from(own.len() as u64 == RATED);
                }
                if let Ok(mut delays) = delays.lock() {
                    delays.extend(own);
                }
            });
        }
        for share in shares {
            let whole = &whole;
            scope.spawn(move || drain(share, whole));
        }
        let prompt = author.prompt(&session, &format!("rate {RATE} {RATED}"))?;
        author.response(prompt)?;
        took = start.elapsed().as_secs_f64();
        Ok(())
    })?;
    let cpu = (hub.cpu()? - cpu).as_secs_f64();
    let mut delays = delays.into_inner().unwrap_or_default();
    delays.sort_by(f64::total_cmp);
    let late = delays.get(delays.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    let whole = whole.into_inner().unwrap_or_default();
    let scenario = format!("1 session, {RATE} updates/s, {count} watchers and one that takes nothing");
    table.target(&scenario, "watchers that saw all", &format!("{whole}"), "all", whole == count);
    table.target("", "delay, 99 %", &format!("{late:.1} ms"), "under 100 ms", late < 100.0);
    table.row("", "updates delivered", &format!("{:.0}k/s", RATED as f64 * count as f64 / took / 1e3));
    table.row("", "CPU of the hub", &format!("{:.0} %", cpu / took * 100.0));
    let after = hub.memory("VmRSS");
    table.row(
        "",
        "memory of the hub, before and after",
        &format!("{:.1} MB, {:.1} MB", before / 1e3, after / 1e3),
    );
    let is_detached = is_closed(&mut stalled);
    let value = if is_detached { "yes" } else { "no" };
    table.target("", "the one that takes nothing is disconnected", value, "yes", is_detached);
    Ok(())
}

/// The time in an update.
fn time_of(line: &[u8]) -> Option<u64> {
    let mut parts = line.split(|byte| *byte == b'@');
    let number = parts.nth(1)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}

/// Reads many clients in one thread, and counts those that got all updates.
fn drain(mut clients: Vec<Client>, whole: &Mutex<usize>) {
    let mut counts = vec![0_u64; clients.len()];
    let mut ended = vec![false; clients.len()];
    for client in &clients {
        // Reading goes round, and waits for none of them.
        let _ = client.socket.set_nonblocking(true);
    }
    while !ended.iter().all(|ended| *ended) {
        let mut is_idle = true;
        for ((client, count), ended) in clients.iter_mut().zip(&mut counts).zip(&mut ended) {
            if *ended {
                continue;
            }
            let read =
                client.read_lines(|line| match contains(line.get(..64).unwrap_or(line), b"turn_ended") {
                    true => *ended = true,
                    false => *count += u64::from(contains(line.get(..64).unwrap_or(line), b"session/update")),
                });
            match read {
                Ok(()) => is_idle = false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => *ended = true,
            }
        }
        if is_idle {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    if let Ok(mut whole) = whole.lock() {
        // The prompt of the author is an update, too.
        *whole += counts.iter().filter(|count| **count == RATED + 1).count();
    }
}

/// Whether the hub has closed a connection, after all that was sent before.
fn is_closed(client: &mut Client) -> bool {
    let limit = Instant::now() + Duration::from_secs(30);
    while Instant::now() < limit {
        // It does not read while it waits to be disconnected: the bytes in the kernel must stay.
        std::thread::sleep(Duration::from_millis(200));
        // A write fails once the other end is closed.
        if client.socket.write_all(b"\n").is_err() {
            return true;
        }
    }
    false
}

/// Connections that are held and silent.
fn connections(directory: &Path, count: usize, table: &mut Table) -> io::Result<()> {
    let hub = HubProcess::start(directory)?;
    // The first one starts an agent.
    let _first = hold_websocket(&hub.address)?;
    let before = hub.memory("VmRSS");
    let mut held = Vec::new();
    let start = Instant::now();
    for _ in 0..count {
        held.push(hold_websocket(&hub.address)?);
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let each = (hub.memory("VmRSS") - before) / count as f64;
    let scenario = format!("{count} WebSockets, initialized and silent");
    table.target(
        &scenario,
        "memory of the hub each",
        &format!("{each:.1} kB"),
        "at most 20 kB",
        each <= 20.0,
    );
    table.row("", "connected", &format!("{rate:.0}/s"));
    let cpu = hub.cpu()?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = (hub.cpu()? - cpu).as_secs_f64() / 2.0 * 100.0;
    table.row("", "CPU at rest", &format!("{idle:.1} %"));
    Ok(())
}
