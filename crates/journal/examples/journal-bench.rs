//! Measures the journal in a SQLite file that flushes every commit to the disk.
//!
//!     cargo run --release -p attache-journal --example journal-bench [DIRECTORY]
//!
//! The directory decides which disk is measured; the default is that of temporary files. Exits with
//! 1 when a target is missed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use attache_journal::sqlite::{Durability, Options};
use attache_journal::{Claim, Journal, Lease, Page, Result, Seq, SessionKey};

const RUNS: usize = 3;
/// The update of an agent that streams a few words.
const UPDATE: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789abcdef","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few more words of it "}}}}
"#;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = parent.join(format!("attache-journal-bench-{}", std::process::id()));
    let measured = match std::fs::create_dir(&directory) {
        Ok(()) => measure(&directory).await,
        Err(error) => Err(error.into()),
    };
    let _ = std::fs::remove_dir_all(&directory);
    match measured {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// Prints the table, and returns whether all targets are met.
async fn measure(directory: &Path) -> Result<bool> {
    println!("updates of {} bytes, medians of {RUNS} runs\n", UPDATE.len());
    println!("| scenario | figure | value | target | met |\n|---|---|---:|---|---|");
    let mut all_met = true;
    for updates in [1, 64, 1000] {
        let seconds = median(|| append(directory, Durability::Flushed, updates, 200)).await?;
        let rate = 200.0 / seconds;
        row(&format!("appends of {updates}, one at a time"), "appends", &format!("{rate:.0}/s"), "");
        row("", "updates", &format!("{:.1}k/s", rate * f64::from(updates) / 1e3), "");
    }
    let seconds = median(|| stream(directory)).await?;
    let met = 1.0 / seconds >= 0.5;
    all_met &= met;
    let target = format!("at least 500k/s | {}", word(met));
    row(
        "1,000,000 updates of one session as they come",
        "updates",
        &format!("{:.0}k/s", 1e3 / seconds),
        &target,
    );
    let seconds = median(|| append(directory, Durability::Written, 1, 1000)).await?;
    row("appends of 1, not flushed", "appends", &format!("{:.0}/s", 1000.0 / seconds), "");
    let seconds = median(|| many_sessions(directory)).await?;
    row("appends of 1 by 256 sessions", "appends", &format!("{:.0}/s", 256.0 * 40.0 / seconds), "");
    let (mut middle, mut worst) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut delays = follow(directory, 1).await?;
        delays.sort_by(f64::total_cmp);
        middle.push(delays[delays.len() / 2]);
        worst.push(delays[delays.len() * 99 / 100]);
    }
    row("one follower, after the acknowledgement", "median", &micros(middle_of(middle)), "");
    row("", "99 %", &micros(middle_of(worst)), "");
    let mut slowest = Vec::new();
    for _ in 0..RUNS {
        let delays = follow(directory, 1000).await?;
        slowest.push(delays.iter().copied().fold(0.0, f64::max));
    }
    row("1,000 followers, the last of them", "slowest of 50 pages", &micros(middle_of(slowest)), "");
    let (mut opened, mut first, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (to_open, to_first, to_end) = read(directory).await?;
        opened.push(to_open);
        first.push(to_first);
        whole.push(to_end);
    }
    let (first, whole) = (middle_of(first), middle_of(whole));
    let met = first < 0.020;
    all_met &= met;
    let target = format!("under 20 ms | {}", word(met));
    row("100,000 updates from a cursor in a file just opened", "open", &micros(middle_of(opened)), "");
    row("", "first page", &micros(first), &target);
    row("", "all", &format!("{:.2}M/s", 0.1 / whole), "");
    if let Some(peak) = peak_memory() {
        row("all of the above", "peak memory", &peak, "");
    }
    Ok(all_met)
}

fn row(scenario: &str, figure: &str, value: &str, target: &str) {
    let target = if target.is_empty() { " | " } else { target };
    println!("| {scenario} | {figure} | {value} | {target} |");
}

fn word(met: bool) -> &'static str {
    if met { "yes" } else { "**no**" }
}

fn micros(seconds: f64) -> String {
    if seconds < 0.001 { format!("{:.0} us", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}

async fn median<F: Future<Output = Result<f64>>>(run: impl Fn() -> F) -> Result<f64> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(run().await?);
    }
    Ok(middle_of(runs))
}

fn middle_of(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

async fn open(directory: &Path, durability: Durability) -> Result<Journal> {
    let options = Options::default().durability(durability).poll_interval(None);
    Journal::sqlite(&directory.join("journal.db"), options).await
}

/// A new session in the file, which grows from run to run.
async fn session(journal: &Journal) -> Result<Lease> {
    let number = journal.list("bench", None, usize::MAX).await?.len();
    let key = SessionKey::new("bench", format!("{number:06}"))?;
    journal.claim(&key, &Claim::new("bench", Duration::from_secs(60))).await
}

fn page(updates: u32) -> Result<Page> {
    let mut page = Page::builder();
    for _ in 0..updates {
        page.push(0, UPDATE)?;
    }
    Ok(page.build())
}

/// Seconds for `pages` appends, each after the acknowledgement of the one before. Pages are built
/// within that time.
async fn append(directory: &Path, durability: Durability, updates: u32, pages: u32) -> Result<f64> {
    let journal = open(directory, durability).await?;
    let lease = session(&journal).await?;
    let mut last = Seq::ZERO;
    let start = Instant::now();
    for _ in 0..pages {
        last = journal.append(&lease, last, page(updates)?).await?;
    }
    let seconds = start.elapsed().as_secs_f64();
    journal.forget(lease.key()).await?;
    Ok(seconds)
}

/// Seconds for 1,000,000 updates from a task that makes them without a pause. A page is what came
/// during the append before, as in a program that never waits with an update.
async fn stream(directory: &Path) -> Result<f64> {
    let journal = open(directory, Durability::Flushed).await?;
    let lease = session(&journal).await?;
    let (made, mut updates) = tokio::sync::mpsc::channel::<Page>(64);
    let start = Instant::now();
    tokio::spawn(async move {
        for _ in 0..10_000 {
            // An agent's updates arrive in batches, too.
            let Ok(batch) = page(100) else { return };
            if made.send(batch).await.is_err() {
                return;
            }
        }
    });
    let mut last = Seq::ZERO;
    while let Some(first) = updates.recv().await {
        let mut next = Page::builder();
        let mut batch = Some(first);
        while let Some(page) = batch {
            for bytes in page.body().chunks(UPDATE.len()) {
                next.push(0, bytes)?;
            }
            let has_room = next.len() + 100 <= Page::MAX_ENTRIES;
            batch = if has_room { updates.try_recv().ok() } else { None };
        }
        last = journal.append(&lease, last, next.build()).await?;
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(last, Seq::new(1_000_000), "all updates are stored");
    journal.forget(lease.key()).await?;
    Ok(seconds)
}

/// Seconds for 40 appends of one update by each of 256 sessions.
async fn many_sessions(directory: &Path) -> Result<f64> {
    let journal = open(directory, Durability::Flushed).await?;
    let mut leases = Vec::new();
    for number in 0..256 {
        let key = SessionKey::new("many", format!("{number}"))?;
        leases.push(journal.claim(&key, &Claim::new("bench", Duration::from_secs(60))).await?);
    }
    let start = Instant::now();
    let writers: Vec<_> = leases
        .into_iter()
        .map(|lease| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let mut last = lease.last();
                for _ in 0..40 {
                    last = journal.append(&lease, last, page(1)?).await?;
                }
                Ok::<(), attache_journal::Error>(())
            })
        })
        .collect();
    for writer in writers {
        writer.await.map_err(|_| attache_journal::Error::Closed)??;
    }
    let seconds = start.elapsed().as_secs_f64();
    for number in 0..256 {
        journal.forget(&SessionKey::new("many", format!("{number}"))?).await?;
    }
    Ok(seconds)
}

/// Seconds from the acknowledgement of a page to its arrival at the last of `followers`, for 50
/// pages.
async fn follow(directory: &Path, followers: u32) -> Result<Vec<f64>> {
    let journal = open(directory, Durability::Flushed).await?;
    let lease = session(&journal).await?;
    let (arrived, mut arrivals) = tokio::sync::mpsc::channel(1024);
    for _ in 0..followers {
        let mut follower = journal.follow(lease.key(), Seq::ZERO).await?;
        let arrived = arrived.clone();
        tokio::spawn(async move {
            while follower.next().await.is_ok() {
                if arrived.send(Instant::now()).await.is_err() {
                    return;
                }
            }
        });
    }
    let (mut last, mut delays) = (Seq::ZERO, Vec::new());
    for _ in 0..50 {
        last = journal.append(&lease, last, page(64)?).await?;
        let acknowledged = Instant::now();
        let mut latest = acknowledged;
        for _ in 0..followers {
            latest = latest.max(arrivals.recv().await.unwrap_or(latest));
        }
        delays.push(latest.duration_since(acknowledged).as_secs_f64());
    }
    journal.forget(lease.key()).await?;
    Ok(delays)
}

/// Seconds to open a file, then to the first page and to the last one of the last 100,000 updates
/// of a session of 200,000.
async fn read(directory: &Path) -> Result<(f64, f64, f64)> {
    let journal = open(directory, Durability::Flushed).await?;
    let lease = session(&journal).await?;
    let mut last = Seq::ZERO;
    while last < Seq::new(200_000) {
        last = journal.append(&lease, last, page(200)?).await?;
    }
    drop(journal);
    let start = Instant::now();
    let journal = open(directory, Durability::Flushed).await?;
    let to_open = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut pages = journal.read(lease.key(), Seq::new(100_000), None).await?;
    let mut updates = pages.next().await?.map_or(0, |page| page.entries().len());
    let to_first = start.elapsed().as_secs_f64();
    while let Some(page) = pages.next().await? {
        updates += page.entries().filter(|entry| entry.bytes() == UPDATE).count();
    }
    let to_end = start.elapsed().as_secs_f64();
    assert_eq!(updates, 100_000, "all updates are read");
    journal.forget(lease.key()).await?;
    Ok((to_open, to_first, to_end))
}

/// The most memory of this process so far, on Linux.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = kilobytes.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(format!("{:.1} MB", kilobytes / 1000.0))
}
