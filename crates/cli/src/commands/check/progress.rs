//! The progress of a run on stderr: one line that changes on a terminal, else a line for each tenth
//! of a long run.

use attache_check::run;

use crate::cx::Cx;
use crate::output::{Format, Output, StatusLine};

pub(super) struct Progress {
    line: Option<StatusLine>,
    /// Where lines are printed that stay.
    output: Option<Output>,
    failures: usize,
}

impl Progress {
    pub(super) fn new(cx: &Cx) -> Progress {
        let wanted = cx.output.format != Format::Quiet && !cx.output.strict;
        let line = if wanted { StatusLine::new(cx.output.stderr) } else { None };
        let output = (wanted && line.is_none()).then(|| cx.output.clone());
        Progress { line, output, failures: 0 }
    }

    pub(super) fn show(&mut self, progress: &run::Progress<'_>) {
        let (scene, count, total) = match progress {
            run::Progress::Ended(scene, count, total) => (scene, count, total),
            run::Progress::Begins(_) => return,
            run::Progress::Repeats(scene, deadline) => {
                let seconds = deadline.as_secs_f64();
                return self.note(&format!(
                    "{}: a deadline passed and a rule was broken; again, alone, with {seconds} s",
                    scene.name
                ));
            }
            run::Progress::NotRepeated(count) => {
                return self.note(&format!(
                    "a deadline passed in {count} more scenarios; no time is left to run them again"
                ));
            }
        };
        self.failures += scene.failures;
        let failures =
            if self.failures > 0 { format!(", {} failures", self.failures) } else { String::new() };
        if let Some(line) = &mut self.line {
            line.show(&format!("{count} of {total} scenarios{failures}: {}", scene.name));
        } else if let Some(output) = &self.output
            && is_tenth(*count, *total)
        {
            output.note(format_args!("{count} of {total} scenarios{failures}"));
        }
    }

    fn note(&mut self, text: &str) {
        if let Some(line) = &mut self.line {
            line.show(text);
        } else if let Some(output) = &self.output {
            output.note(text);
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(line) = &mut self.line {
            line.clear();
        }
    }
}

/// Whether a further tenth of a long run has ended.
fn is_tenth(count: usize, total: usize) -> bool {
    total >= 10 && count * 10 / total > (count - 1) * 10 / total
}

#[cfg(test)]
mod tests {
    use super::is_tenth;

    #[test]
    fn ten_lines_for_a_long_run_and_none_for_a_short_one() {
        for total in [10, 11, 99, 250] {
            assert_eq!((1..=total).filter(|count| is_tenth(*count, total)).count(), 10);
            assert!(is_tenth(total, total), "the last is shown");
        }
        assert_eq!((1..=9).filter(|count| is_tenth(*count, 9)).count(), 0);
    }
}
