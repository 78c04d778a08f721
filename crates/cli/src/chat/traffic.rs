//! Lines of the connection, for the log, the history of a saved session and, with `-v`, the screen.

use std::collections::VecDeque;
use std::time::Duration;

use attache::Flow;
use attache_check::Role;
use attache_check::show;
use attache_check::trace::{Entry, EntryKind, LineEnd};
use attache_host::secrets::Mask;
use tokio::sync::mpsc;

use crate::log::WireLog;
use crate::session_store::Recorder;
use crate::wire::{Lines, Wire};

/// Lines that are shown.
pub(crate) const SHOWN: usize = 6;
/// The longest visible part of a line.
const LONGEST: usize = 400;

/// Receives the lines of the connection.
pub(crate) struct Traffic {
    wire: Wire,
    lines: Lines,
    log: Option<WireLog>,
    recorder: Option<Recorder>,
    /// Whether the saved session is the one on the screen.
    pub(crate) recording: bool,
    mask: Mask,
    /// Lines of the agent's stderr for the screen; `None` without `-v`.
    stderr: Option<mpsc::Receiver<String>>,
    /// The newest lines.
    pub(crate) last: VecDeque<String>,
}

impl Traffic {
    pub(crate) fn new(
        wire: Wire,
        log: Option<WireLog>,
        recorder: Option<Recorder>,
        stderr: Option<mpsc::Receiver<String>>,
        mask: Mask,
    ) -> Traffic {
        let (lines, last) = (Lines::default(), VecDeque::new());
        Traffic { wire, lines, log, recorder, recording: true, mask, stderr, last }
    }

    /// Records what follows, or nothing.
    pub(crate) fn record(&mut self, recorder: Option<Recorder>) {
        self.take();
        self.recording = true;
        self.recorder = recorder;
    }

    /// Waits for new lines.
    pub(crate) async fn changed(&mut self) {
        let stderr = async {
            match &mut self.stderr {
                Some(stderr) => stderr.recv().await,
                None => None,
            }
        };
        tokio::select! {
            Some(line) = stderr => {
                let line = self.mask.text(&line);
                remember(&mut self.last, format!("!! {line}"));
            }
            () = self.wire.changed() => {}
        }
    }

    /// Takes all lines that have arrived.
    pub(crate) fn take(&mut self) {
        self.wire.take(&mut self.lines);
        for (flow, line) in self.lines.iter() {
            if let Some(log) = &mut self.log {
                log.line(flow, line);
            }
            if let Some(recorder) = self.recorder.as_mut().filter(|_| self.recording) {
                recorder.line(flow, line, crate::time::now);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            // A full disk must not end the chat; the history is incomplete then.
            let _ = recorder.flush();
        }
        if self.stderr.is_some() {
            let count = self.lines.iter().count();
            for (flow, line) in self.lines.iter().skip(count.saturating_sub(SHOWN)) {
                let arrow = if flow == Flow::Out { "->" } else { "<-" };
                let line = self.mask.frame(&String::from_utf8_lossy(line)).into_owned();
                remember(&mut self.last, format!("{arrow} {}", short(flow, line.as_bytes())));
            }
        }
    }
}

/// A message as `attache trace --lines` shows it, without the time and the sender.
fn short(flow: Flow, line: &[u8]) -> String {
    let from = if flow == Flow::Out { Role::Client } else { Role::Agent };
    let kind = EntryKind::Line { from, text: line.to_vec(), end: LineEnd::Lf };
    let text = show::line(&Entry { at: Duration::ZERO, kind }, usize::MAX);
    text.split_once(" → ").map_or_else(|| text.clone(), |(_, message)| message.to_owned())
}

fn remember(last: &mut VecDeque<String>, mut line: String) {
    if let Some((at, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(at);
    }
    if last.len() >= SHOWN {
        last.pop_front();
    }
    last.push_back(line);
}
