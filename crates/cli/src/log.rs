//! Logs: events of the program and its libraries through `tracing`, and the messages on the wire.
//! Secrets are masked.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use attache::{Flow, Link};
use attache_conn::private;
use attache_host::secrets::Mask;
use parking_lot::RwLock;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::error::{Context as _, Failure, Result};
use crate::output::{Mark, Output};

/// The variable that selects events: a level, or levels by target, as in `warn,attache_conn=debug`.
pub(crate) const FILTER: &str = "ATTACHE_LOG";

/// The filter of a log file without [`FILTER`]: problems, all messages on the wire, and who decided
/// what on a hub.
const FILE_FILTER: &str = "warn,attache::wire=trace,attache_hub::audit=info";

/// How much of a message `-v` shows; the log has all of it.
const SHOWN: usize = 2000;

/// The values that are masked in every event.
static MASK: LazyLock<RwLock<Mask>> = LazyLock::new(|| RwLock::new(Mask::from_env()));

/// The log file of this process.
static LOG_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Whether [`FILTER`] asks for a log.
pub(crate) fn is_requested() -> bool {
    std::env::var_os(FILTER).is_some_and(|filter| !filter.is_empty())
}

/// Starts the log if a file, `-` for stderr, or [`FILTER`] asks for one. Without a file it goes to
/// stderr.
pub(crate) fn init(destination: Option<&Path>) -> Result<()> {
    let filter = match std::env::var(FILTER) {
        Ok(filter) if !filter.is_empty() => filter,
        _ if destination.is_some() => FILE_FILTER.to_owned(),
        _ => return Ok(()),
    };
    let filter: Targets =
        filter.parse().map_err(|error| Failure::usage(format_args!("environment {FILTER}: {error}")))?;
    let file = match destination.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let file = private::append(path).context("the log")?;
            let _ = LOG_FILE.set(path.to_owned());
            Some(file)
        }
        None => None,
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(MaskedWriter(file)));
    // Fails only if there is a log already.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
    Ok(())
}

/// The file that the log is written to, if it is one.
pub(crate) fn file() -> Option<&'static Path> {
    LOG_FILE.get().map(PathBuf::as_path)
}

/// Masks further values in all later events.
pub(crate) fn mask_values(secrets: impl IntoIterator<Item = String>) {
    let mut mask = MASK.write();
    *mask = mask.clone().with(secrets);
}

/// Whether the messages on the wire are logged.
pub(crate) fn logs_wire() -> bool {
    tracing::enabled!(target: "attache::wire", tracing::Level::TRACE)
}

/// Logs the messages of a link, if they are logged at all.
pub(crate) fn tap(link: Link) -> Link {
    match logs_wire() {
        true => {
            let mut log = WireLog::new(false, []);
            link.tap(move |flow, line| log.line(flow, line))
        }
        false => link,
    }
}

/// Writes events to a file, or to stderr, without secrets. An event that cannot be written is
/// dropped.
struct MaskedWriter(Option<File>);

impl Write for MaskedWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let masked = MASK.read().text(&text).into_owned();
        let _ = match &mut self.0 {
            Some(file) => file.write_all(masked.as_bytes()),
            // An event may quote the agent: a terminal gets it without control characters.
            None => {
                Output::plain().tell_row(masked.trim_end_matches('\n'));
                Ok(())
            }
        };
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows the messages on the wire with `-v` and logs them at trace level.
#[derive(Debug)]
pub(crate) struct WireLog {
    mask: Mask,
    /// Show on stderr.
    verbose: bool,
}

impl WireLog {
    /// `secrets` are masked wherever they appear.
    pub(crate) fn new(verbose: bool, secrets: impl IntoIterator<Item = String>) -> WireLog {
        WireLog { mask: Mask::from_env().with(secrets), verbose }
    }

    /// Whether messages are shown or logged at all.
    pub(crate) fn is_on(&self) -> bool {
        self.verbose || logs_wire()
    }

    pub(crate) fn line(&mut self, flow: Flow, line: &[u8]) {
        if !self.is_on() {
            return;
        }
        let arrow = if flow == Flow::Out { "->" } else { "<-" };
        let text = String::from_utf8_lossy(line);
        let text = self.mask.frame(&text);
        tracing::trace!(target: "attache::wire", "{arrow} {text}");
        if self.verbose {
            let cut = text.char_indices().nth(SHOWN).map(|(at, _)| at);
            let shown = cut.and_then(|at| text.get(..at)).unwrap_or(&text);
            let dots = if cut.is_some() { format!(" … ({} bytes)", text.len()) } else { String::new() };
            Output::plain().tell_line(&Mark::Note.then(format!("{arrow} {shown}{dots}")));
        }
    }
}
