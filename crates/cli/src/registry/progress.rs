//! How far a download is: a bar where somebody watches, lines where not.

use std::time::{Duration, Instant};

use crate::output::{Format, Output, StatusLine};

/// Often enough to look alive, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_millis(100);
const BAR: usize = 24;

/// A download that is shown.
pub(super) struct Progress {
    what: String,
    total: Option<u64>,
    done: u64,
    started: Instant,
    drawn: Option<Instant>,
    /// Set if stderr is a terminal.
    bar: Option<StatusLine>,
}

impl Progress {
    pub(super) fn new(output: &Output, what: &str, total: Option<u64>) -> Progress {
        let wanted = output.format == Format::Text && !output.strict;
        let bar = if wanted { StatusLine::new(output.stderr) } else { None };
        if bar.is_none() {
            let size = total.map(|total| format!(" ({})", bytes(total))).unwrap_or_default();
            output.note(format_args!("downloading {what}{size}"));
        }
        Progress { what: what.to_owned(), total, done: 0, started: Instant::now(), drawn: None, bar }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        let Some(bar) = self.bar.as_mut().filter(|_| self.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY))
        else {
            return;
        };
        self.drawn = Some(Instant::now());
        bar.show(&line(&self.what, self.done, self.total, self.started.elapsed()));
    }
}

fn line(what: &str, done: u64, total: Option<u64>, time: Duration) -> String {
    let rate = done as f64 / time.as_secs_f64().max(0.001);
    let speed = format!("{}/s", bytes(rate as u64));
    match total.filter(|total| *total > 0) {
        Some(total) => {
            let part = (done as f64 / total as f64).min(1.0);
            let full = (part * BAR as f64) as usize;
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR - full));
            format!("[{bar}] {:3.0}% {} of {} {speed}  {what}", part * 100.0, bytes(done), bytes(total))
        }
        None => format!("{} {speed}  {what}", bytes(done)),
    }
}

/// `12.3 MB`
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line("goose", 500_000, Some(1_000_000), second),
            "[############------------]  50% 500.0 kB of 1.0 MB 500.0 kB/s  goose"
        );
        assert_eq!(line("goose", 12, None, second), "12 B 12 B/s  goose");
        // More than was announced is no reason to fail.
        assert!(line("goose", 20, Some(10), second).contains("100%"));
    }
}
