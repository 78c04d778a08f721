//! Measurements of a server with many connections.

use crate::agent::Subject;
use crate::line::text_member;
use crate::net::Transport;
use bench_probe::{Report, percentile, proc};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

/// What a server holds with `n` initialized connections, or with as many as it takes.
pub fn connections(subject: &Subject, n: usize) -> io::Result<Report> {
    proc::raise_open_files(DESCRIPTORS_EACH * n as u64 + 1_000);
    let first = subject.initialized()?;
    let (pid, before, start) = (first.pid(), proc::rss(first.pid()), Instant::now());
    let mut held = Vec::with_capacity(n);
    while held.len() < n {
        match open(subject.transport, first.port()) {
            Ok(connection) => held.push(connection),
            Err(error) if held.is_empty() => return Err(error),
            Err(error) => {
                eprintln!("connection {}: {error}", held.len() + 1);
                break;
            }
        }
    }
    let secs = start.elapsed().as_secs_f64();
    let after = proc::rss(pid);
    Ok(Report::new("conns")
        .number("held", held.len())
        .fixed("open_per_s", held.len() as f64 / secs, 0)
        .fixed("kb_each", (after.saturating_sub(before)) as f64 / held.len() as f64, 2)
        .number("rss_kb", after as usize))
}

/// A client over HTTP has two: one for its requests and one for its stream.
const DESCRIPTORS_EACH: u64 = 2;

/// Opens a connection and initializes it.
fn open(
    transport: Transport,
    port: u16,
) -> io::Result<(Box<dyn Write + Send>, BufReader<Box<dyn Read + Send>>)> {
    let (mut writer, reader) = transport.open(port)?;
    writer.write_all(crate::agent::initialize(1).as_bytes())?;
    let mut reader = BufReader::with_capacity(4 << 10, reader);
    match reader.read_until(b'\n', &mut Vec::new())? {
        0 => Err(io::Error::other("the server closed the connection")),
        _ => Ok((writer, reader)),
    }
}

/// How late `rate` updates a second on each of `n` connections arrive. Every connection has a
/// thread that reads.
pub fn paced(subject: &Subject, n: usize, rate: usize, seconds: usize) -> io::Result<Report> {
    if !matches!(subject.transport, Transport::WebSocket | Transport::SecureWebSocket) {
        return Err(io::Error::other("only over WebSocket"));
    }
    proc::raise_open_files(n as u64 + 1_000);
    let first = subject.initialized()?;
    let (pid, port) = (first.pid(), first.port());
    let late = Arc::new(Mutex::new(Vec::with_capacity(n * rate * seconds)));
    let ready = Arc::new(Barrier::new(n + 1));
    let mut threads = Vec::with_capacity(n);
    for i in 0..n {
        let (mut writer, reader) = subject.transport.open(port)?;
        let mut reader = BufReader::with_capacity(4 << 10, reader);
        let mut line = Vec::new();
        let mut call = |message: String, reader: &mut dyn BufRead| {
            line.clear();
            writer.write_all(message.as_bytes())?;
            reader.read_until(b'\n', &mut line)?;
            Ok::<_, io::Error>(text_member(&line, "sessionId").map(<[u8]>::to_vec))
        };
        call(crate::agent::initialize(1), &mut reader)?;
        let session = call(crate::agent::new_session(2), &mut reader)?;
        let session = String::from_utf8_lossy(&session.unwrap_or_default()).into_owned();
        let prompt = crate::agent::prompt(3, &session, &format!("paced {} {}", rate * seconds, 1_000 / rate));
        let (late, ready) = (Arc::clone(&late), Arc::clone(&ready));
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || -> io::Result<()> {
            ready.wait();
            // Not all in the same millisecond: clients are independent of each other.
            std::thread::sleep(std::time::Duration::from_micros(
                (i * 100_003 % 1_000_000) as u64 / rate as u64,
            ));
            writer.write_all(prompt.as_bytes())?;
            let (mut own, mut line) = (Vec::with_capacity(rate * seconds), Vec::new());
            while own.len() < rate * seconds {
                line.clear();
                if reader.read_until(b'\n', &mut line)? == 0 {
                    return Err(io::Error::other("the server closed the connection"));
                }
                let made =
                    text_member(&line, "text").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                if let Some(made) = made {
                    own.push(proc::monotonic_us().saturating_sub(made) as f64);
                }
            }
            late.lock().expect("no panic").extend_from_slice(&own);
            Ok(())
        })?;
        threads.push(thread);
    }
    let cpu = proc::cpu(pid);
    let start = Instant::now();
    ready.wait();
    for thread in threads {
        thread.join().map_err(|_| io::Error::other("a reader failed"))??;
    }
    let secs = start.elapsed().as_secs_f64();
    let mut late = late.lock().expect("no panic");
    late.sort_by(f64::total_cmp);
    let ms = |percent: f64| percentile(&late, percent) / 1e3;
    Ok(Report::new("paced")
        .number("n", n)
        .number("updates", late.len())
        .fixed("p50_ms", ms(50.0), 3)
        .fixed("p99_ms", ms(99.0), 3)
        .fixed("max_ms", ms(100.0), 3)
        .fixed("cpu_us_per", (proc::cpu(pid) - cpu) * 1e6 / late.len() as f64, 3)
        .fixed("secs", secs, 2)
        .number("rss_kb", proc::rss(pid) as usize))
}
