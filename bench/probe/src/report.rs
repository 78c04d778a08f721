//! The one line of JSON in which every measurement ends.

use std::fmt::Write;

/// A flat object of numbers: any driver, in any language, reads it.
pub struct Report(String);

impl Report {
    pub fn new(test: &str) -> Report {
        Report(format!("{{\"test\":{test:?}"))
    }

    pub fn number(mut self, key: &str, value: usize) -> Report {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }

    pub fn fixed(mut self, key: &str, value: f64, digits: usize) -> Report {
        let _ = write!(self.0, ",\"{key}\":{value:.digits$}");
        self
    }

    /// Median, 90th and 99th percentile of times in microseconds.
    pub fn times(self, micros: &mut [f64]) -> Report {
        micros.sort_by(f64::total_cmp);
        self.fixed("p50_us", percentile(micros, 50.0), 2).fixed("p90_us", percentile(micros, 90.0), 2).fixed(
            "p99_us",
            percentile(micros, 99.0),
            2,
        )
    }

    pub fn failure(test: &str, why: &str) -> String {
        let why: String =
            why.chars().map(|c| if c.is_control() || c == '"' || c == '\\' { ' ' } else { c }).collect();
        format!("{{\"test\":{test:?},\"error\":\"{}\"}}", why.trim())
    }

    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// The value below which `p` per cent of `sorted` lie.
pub fn percentile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * p / 100.0).round() as usize).copied().unwrap_or(0.0)
}
