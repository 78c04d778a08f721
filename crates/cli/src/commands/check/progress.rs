//! One line on stderr with the progress of a run, on a terminal.

use attache_check::run;

use crate::cx::Cx;
use crate::output::{Format, StatusLine};

pub(super) struct Progress {
    line: Option<StatusLine>,
    failures: usize,
}

impl Progress {
    pub(super) fn new(cx: &Cx) -> Progress {
        let wanted = cx.output.format != Format::Quiet && !cx.output.strict;
        Progress { line: if wanted { StatusLine::new(cx.output.stderr) } else { None }, failures: 0 }
    }

    pub(super) fn show(&mut self, progress: &run::Progress<'_>) {
        let run::Progress::Ended(scene, count, total) = progress else { return };
        self.failures += scene.failures;
        if let Some(line) = &mut self.line {
            let failures =
                if self.failures > 0 { format!(", {} failures", self.failures) } else { String::new() };
            line.show(&format!("{count} of {total} scenarios{failures}: {}", scene.name));
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(line) = &mut self.line {
            line.clear();
        }
    }
}
