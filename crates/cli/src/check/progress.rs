//! One line on stderr that says how far a run is, where somebody looks at it.

use std::io::{self, IsTerminal as _, Write as _};

use attache_check::run::Progress;

use crate::cx::Cx;
use crate::output::Format;

pub(super) struct Line {
    shown: bool,
    failures: usize,
}

impl Line {
    pub(super) fn new(cx: &Cx) -> Line {
        let shown = io::stderr().is_terminal() && cx.output.format != Format::Quiet && !cx.output.strict;
        Line { shown, failures: 0 }
    }

    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        let Progress::Ended(scene, count, total) = progress else { return };
        self.failures += scene.failures;
        if self.shown {
            let failures =
                if self.failures > 0 { format!(", {} failures", self.failures) } else { String::new() };
            self.write(&format!("\r\x1b[2K{count} of {total} scenarios{failures}: {}", scene.name));
        }
    }

    pub(super) fn clear(&self) {
        if self.shown {
            self.write("\r\x1b[2K");
        }
    }

    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}
