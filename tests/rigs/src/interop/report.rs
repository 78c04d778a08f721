//! Results, printed as they come and once more at the end.

use std::path::PathBuf;
use std::time::Duration;

/// The outcome of one pair of programs.
pub(super) struct Row {
    pub(super) client: String,
    pub(super) agent: String,
    /// How many observations were as expected.
    pub(super) good: usize,
    /// How many messages went over the wire.
    pub(super) messages: usize,
    /// What was wrong.
    pub(super) bad: Vec<String>,
    /// Where to look if something was wrong.
    pub(super) traces: PathBuf,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
    pub(super) took: Duration,
}

#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Reports the start of a pair.
    pub(super) fn start(client: &str, agent: &str) {
        println!("run     client {client}, agent {agent}");
    }

    pub(super) fn add(&mut self, row: Row) {
        for problem in &row.bad {
            println!("        FAILED {problem}");
        }
        if !row.bad.is_empty() {
            println!("        what was said is in {}", row.traces.display());
        }
        for reason in &row.left_out {
            println!("        left out {reason}");
        }
        self.rows.push(row);
    }

    /// Prints the table; an error if anything failed.
    pub(super) fn finish(self, took: Duration) -> Result<(), String> {
        println!(
            "\n{:<22} {:<22} {:>6} {:>9} {:>9} {:>7}",
            "client", "agent", "checks", "messages", "left out", "time"
        );
        let mut failed = 0;
        for row in &self.rows {
            let end = if row.bad.is_empty() { String::new() } else { format!("  {} FAILED", row.bad.len()) };
            failed += row.bad.len();
            println!(
                "{:<22} {:<22} {:>6} {:>9} {:>9} {:>6.1}s{end}",
                row.client,
                row.agent,
                row.good,
                row.messages,
                row.left_out.len(),
                row.took.as_secs_f64()
            );
        }
        println!("{} pairs in {:.0} s", self.rows.len(), took.as_secs_f64());
        match failed {
            0 => Ok(()),
            count => Err(format!("{count} checks failed")),
        }
    }
}
