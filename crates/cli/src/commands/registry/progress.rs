//! Progress of downloads: a bar on a terminal, a line elsewhere.

use std::time::{Duration, Instant};

use attache_registry::Event;

use crate::output::{Format, Output, StatusLine, bytes};

/// Time between two pictures of the bar.
const INTERVAL: Duration = Duration::from_millis(100);
const BAR: usize = 24;

/// Shows the events of the registry.
pub(super) struct Reporter<'a> {
    output: &'a Output,
    download: Option<Download>,
}

struct Download {
    name: String,
    total: Option<u64>,
    done: u64,
    started: Instant,
    drawn: Option<Instant>,
    /// Set if stderr is a terminal.
    bar: Option<StatusLine>,
}

impl Reporter<'_> {
    pub(super) fn new(output: &Output) -> Reporter<'_> {
        Reporter { output, download: None }
    }

    pub(super) fn report(&mut self, event: Event<'_>) {
        match event {
            Event::Warning(text) => self.output.warn(text),
            Event::InvalidEntry(text) if self.output.verbose => self.output.warn(text),
            Event::NpmInstall(package) => self.output.note(format_args!("npm installs {package}")),
            Event::DownloadStarted { name, total } => {
                self.download = Some(Download::new(self.output, name, total));
            }
            Event::Downloaded(bytes) => self.download.iter_mut().for_each(|download| download.add(bytes)),
            Event::DownloadEnded => self.download = None,
            _ => {}
        }
    }
}

impl Download {
    fn new(output: &Output, name: &str, total: Option<u64>) -> Download {
        let wanted = output.format == Format::Text && !output.strict;
        let bar = if wanted { StatusLine::new(output.stderr) } else { None };
        if bar.is_none() {
            let size = total.map(|total| format!(" ({})", bytes(total))).unwrap_or_default();
            output.note(format_args!("downloading {name}{size}"));
        }
        Download { name: name.to_owned(), total, done: 0, started: Instant::now(), drawn: None, bar }
    }

    fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL);
        if let Some(bar) = self.bar.as_mut().filter(|_| due) {
            self.drawn = Some(Instant::now());
            bar.show(&line(&self.name, self.done, self.total, self.started.elapsed()));
        }
    }
}

fn line(name: &str, done: u64, total: Option<u64>, time: Duration) -> String {
    let rate = done as f64 / time.as_secs_f64().max(0.001);
    let speed = format!("{}/s", bytes(rate as u64));
    match total.filter(|total| *total > 0) {
        Some(total) => {
            let part = (done as f64 / total as f64).min(1.0);
            let full = (part * BAR as f64) as usize;
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR - full));
            format!("[{bar}] {:3.0}% {} of {} {speed}  {name}", part * 100.0, bytes(done), bytes(total))
        }
        None => format!("{} {speed}  {name}", bytes(done)),
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
        // A server may send more than it announced.
        assert!(line("goose", 20, Some(10), second).contains("100%"));
    }
}
