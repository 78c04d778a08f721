//! `-v` and `--log`: the messages on the wire, without secrets.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use attache::Flow;
use attache_conn::private;
use attache_host::secrets::Mask;

use crate::error::{Context as _, Result};
use crate::output::{Mark, Output};

/// How much of a message `-v` shows; the file has all of it.
const SHOWN: usize = 2000;

/// Where the wire is written to.
#[derive(Debug)]
pub(crate) struct Log {
    mask: Mask,
    /// Show on stderr.
    verbose: bool,
    file: Option<File>,
}

impl Log {
    /// `secrets` are values that are hidden wherever they appear.
    pub(crate) fn new(
        verbose: bool,
        file: Option<&Path>,
        secrets: impl IntoIterator<Item = String>,
    ) -> Result<Log> {
        let file = match file {
            None => None,
            Some(path) => Some(private::append(path).context("the log")?),
        };
        Ok(Log { mask: Mask::from_env().with(secrets), verbose, file })
    }

    /// Whether lines are of interest at all.
    pub(crate) fn is_on(&self) -> bool {
        self.verbose || self.file.is_some()
    }

    /// A line went over the wire.
    pub(crate) fn line(&mut self, flow: Flow, line: &[u8]) {
        let arrow = if flow == Flow::Out { "->" } else { "<-" };
        self.write(arrow, &String::from_utf8_lossy(line));
    }

    fn write(&mut self, arrow: &str, text: &str) {
        if !self.is_on() {
            return;
        }
        let text = self.mask.frame(text);
        if let Some(file) = &mut self.file {
            // A full disk is no reason to end a turn.
            let _ = file.write_all(format!("{} {arrow} {text}\n", crate::time::now()).as_bytes());
        }
        if self.verbose {
            let cut = text.char_indices().nth(SHOWN).map(|(at, _)| at);
            let shown = cut.and_then(|at| text.get(..at)).unwrap_or(&text);
            let dots = if cut.is_some() { format!(" … ({} bytes)", text.len()) } else { String::new() };
            Output::plain().tell_line(&Mark::Note.then(format!("{arrow} {shown}{dots}")));
        }
    }
}
