//! What a bench client was asked to do, and how it counts.

use crate::{Report, proc};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const MULTI_THREAD: &str = "--multi-thread";

/// Is the program to run on more than one thread? Said as its first argument.
pub fn multi_thread() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == MULTI_THREAD)
}

/// The version of the protocol to measure: `BENCH_PROTOCOL`, or 1.
pub fn protocol() -> u8 {
    std::env::var("BENCH_PROTOCOL").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// `CLIENT MODE NUMBERS… -- AGENT COMMAND…`
pub struct Job {
    pub mode: String,
    pub numbers: Vec<usize>,
    pub agent: Vec<String>,
}

impl Job {
    pub fn from_args() -> Result<Job, String> {
        let usage = "usage: CLIENT stream N LEN | jitter N LEN | rtt N | turns N | call N | sess SESSIONS N LEN -- AGENT…";
        let mut args = std::env::args().skip(1).skip_while(|word| word == MULTI_THREAD);
        let mine: Vec<String> = args.by_ref().take_while(|word| word != "--").collect();
        let agent: Vec<String> = args.collect();
        let mode = mine.first().cloned().ok_or(usage)?;
        let numbers: Vec<usize> =
            mine[1..].iter().map(|word| word.parse().map_err(|_| usage)).collect::<Result<_, _>>()?;
        let wanted = match mode.as_str() {
            "rtt" | "turns" | "call" => 1,
            "stream" | "jitter" => 2,
            "sess" => 3,
            _ => return Err(format!("unknown mode {mode}; {usage}")),
        };
        if numbers.len() != wanted || agent.is_empty() {
            return Err(usage.into());
        }
        Ok(Job { mode, numbers, agent })
    }

    /// How many messages or round trips are measured.
    pub fn n(&self) -> usize {
        self.numbers[usize::from(self.mode == "sess")]
    }

    /// How many sessions are open; one of them is used.
    pub fn sessions(&self) -> usize {
        if self.mode == "sess" { self.numbers[0] } else { 1 }
    }

    /// The prompt for the agent.
    pub fn prompt(&self) -> String {
        match self.mode.as_str() {
            "call" => format!("read {}", self.n()),
            _ => format!("stream {} {}", self.n(), self.numbers.last().copied().unwrap_or(0)),
        }
    }

    /// How long a `jitter` handler waits with this chunk: 1 to 3 ms, so that only real order
    /// survives.
    pub fn jitter(text: &str) -> std::time::Duration {
        let i: u64 = text.get(..8).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        std::time::Duration::from_millis(3 - i % 3)
    }
}

/// Counts chunks and checks their sequence numbers. Shared, because handlers may run anywhere.
#[derive(Default)]
pub struct Seen {
    handled: AtomicUsize,
    out_of_order: AtomicUsize,
}

impl Seen {
    pub fn text(&self, text: &str) {
        let expected = self.handled.fetch_add(1, Ordering::SeqCst);
        if text.get(..8).and_then(|digits| digits.parse().ok()) != Some(expected) {
            self.out_of_order.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub fn handled(&self) -> usize {
        self.handled.load(Ordering::SeqCst)
    }

    pub fn out_of_order(&self) -> usize {
        self.out_of_order.load(Ordering::SeqCst)
    }
}

/// Wall and CPU time of the measured part of this very process.
pub struct Meter {
    wall: Instant,
    cpu: f64,
}

impl Meter {
    pub fn start() -> Meter {
        Meter { cpu: proc::cpu(std::process::id()), wall: Instant::now() }
    }

    pub fn stop(&self, job: &Job, seen: &Seen) -> Report {
        let secs = self.wall.elapsed().as_secs_f64();
        let me = std::process::id();
        let cpu = proc::cpu(me) - self.cpu;
        let n = job.n() as f64;
        Report::new(&format!("client-{}", job.mode))
            .number("n", job.n())
            .fixed("secs", secs, 4)
            .fixed("per_s", n / secs, 0)
            .fixed("cpu_us_per", cpu * 1e6 / n, 3)
            .number("handled", seen.handled())
            .number("order_errors", seen.out_of_order())
            .number("rss_kb", proc::rss(me) as usize)
            .number("hwm_kb", proc::peak(me) as usize)
    }
}
