//! A tap between a client and an agent: forwards every byte unchanged and records every line.
//!
//! The recording never blocks the conversation: bytes are forwarded as they arrive, half lines too,
//! and if the disk is full the conversation continues without it. A line is recorded before its
//! last byte is forwarded, by one write to a file opened for appending, so after a crash only the
//! last line may be incomplete.
//!
//! Memory is constant: a line longer than [`PIECE`] is written in pieces. Masking needs whole
//! lines, so with a mask a line is held up to [`MASKED_PIECE`].

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use attache_conn::process::Child;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::Role;
use crate::trace::{Entry, EntryKind, Header, LineEnd, piece_line};

/// The longest piece of a line in one entry.
pub const PIECE: usize = 1 << 20;
/// The same while secrets are taken out.
pub const MASKED_PIECE: usize = 64 << 20;
/// How long an agent may be silent after its client has gone.
const SILENCE: Duration = Duration::from_secs(10);

/// Takes secrets out of a line.
pub type Mask = Box<dyn Fn(&str) -> Cow<'_, str> + Send + Sync>;

/// Writes a recording.
pub struct Recorder {
    out: Mutex<Out>,
    started: Instant,
    mask: Option<Mask>,
}

struct Out {
    file: Box<dyn Write + Send>,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
    /// How many entries there were, written or not.
    count: u64,
}

impl Recorder {
    /// Begins a recording. `file` should pass on each write at once: a plain file, opened for
    /// appending.
    ///
    /// # Errors
    /// When the head cannot be written.
    pub fn new(
        mut file: impl Write + Send + 'static,
        head: &Header,
        mask: Option<Mask>,
    ) -> io::Result<Recorder> {
        file.write_all(format!("{}\n", head.to_line()).as_bytes())?;
        Ok(Recorder {
            out: Mutex::new(Out { file: Box::new(file), failed: None, count: 0 }),
            started: Instant::now(),
            mask,
        })
    }

    /// Writes an entry down.
    pub fn note(&self, kind: EntryKind) {
        let kind = match (kind, &self.mask) {
            (EntryKind::Line { from, text, end }, Some(_)) => {
                EntryKind::Line { from, text: self.masked(&text).into_owned(), end }
            }
            (EntryKind::Stderr(text), Some(_)) => EntryKind::Stderr(self.masked(&text).into_owned()),
            (kind, _) => kind,
        };
        self.write(&Entry { at: self.started.elapsed(), kind }.to_line());
    }

    /// Writes the beginning of a line down whose rest is still to come.
    fn piece(&self, from: Role, text: &[u8]) {
        self.write(&piece_line(self.started.elapsed(), from, &self.masked(text)));
    }

    /// Why the recording has stopped, if it has.
    pub fn failure(&self) -> Option<String> {
        self.out.lock().failed.as_ref().map(ToString::to_string)
    }

    fn masked<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(mask) = &self.mask else { return Cow::Borrowed(bytes) };
        match std::str::from_utf8(bytes).map(mask) {
            Ok(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
            Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            // Bytes that are no text stay between the texts that are.
            Err(_) => {
                let parts = bytes.utf8_chunks();
                let masked = parts.flat_map(|part| [mask(part.valid()).as_bytes(), part.invalid()].concat());
                Cow::Owned(masked.collect())
            }
        }
    }

    fn write(&self, line: &str) {
        let mut out = self.out.lock();
        out.count += 1;
        if out.failed.is_none() {
            out.failed = out.file.write_all(format!("{line}\n").as_bytes()).err();
        }
    }

    fn limit(&self) -> usize {
        if self.mask.is_some() { MASKED_PIECE } else { PIECE }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

/// Makes lines of what one role sends.
struct Lines<'a> {
    recorder: &'a Recorder,
    from: Role,
    held: Vec<u8>,
}

impl Lines<'_> {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.held.extend_from_slice(&bytes[..at]);
            bytes = &bytes[at + 1..];
            let mut text = std::mem::take(&mut self.held);
            let end = if text.last() == Some(&b'\r') { LineEnd::CrLf } else { LineEnd::Lf };
            text.truncate(text.len() - usize::from(end == LineEnd::CrLf));
            self.recorder.note(EntryKind::Line { from: self.from, text, end });
        }
        self.held.extend_from_slice(bytes);
        while self.held.len() > self.recorder.limit() {
            let cut = cut(&self.held, self.recorder.limit());
            self.recorder.piece(self.from, &self.held[..cut]);
            self.held.drain(..cut);
        }
    }

    fn end(&mut self) {
        if !self.held.is_empty() {
            let text = std::mem::take(&mut self.held);
            self.recorder.note(EntryKind::Line { from: self.from, text, end: LineEnd::Open });
        }
        self.recorder.note(EntryKind::Closed { from: self.from });
    }
}

/// Where to cut: not inside of a character, and not between a carriage return and what follows.
fn cut(bytes: &[u8], limit: usize) -> usize {
    let near = (limit.saturating_sub(4)..=limit).rev();
    near.into_iter().find(|at| bytes[*at] & 0xc0 != 0x80 && bytes[*at - 1] != b'\r').unwrap_or(limit)
}

/// Forwards and records the conversation between a client on `input` and `output` and the agent
/// `child`. Returns when the agent has exited and all its children are gone.
pub async fn relay(
    child: Child,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    recorder: &Recorder,
) -> ExitStatus {
    let Child { stdin, stdout, guard } = child;
    let sent = async {
        let mut lines = Lines { recorder, from: Role::Client, held: Vec::new() };
        // An agent that no longer reads is not the end: it may still have something to say.
        let _ = carry(input, stdin, &mut lines).await;
        lines.end();
    };
    let received = async {
        let mut lines = Lines { recorder, from: Role::Agent, held: Vec::new() };
        let carried = carry(stdout, output, &mut lines).await;
        lines.end();
        carried
    };
    tokio::pin!(sent, received);
    tokio::select! {
        _ = &mut received => {}
        () = &mut sent => finish(&mut received, recorder).await,
    }
    let status = guard.shutdown().await;
    recorder.note(exit(status));
    status
}

/// The client has closed its side: the agent finishes what it does, and is ended if it goes silent
/// instead.
async fn finish(received: &mut (impl Future<Output = io::Result<()>> + Unpin), recorder: &Recorder) {
    let written = |recorder: &Recorder| recorder.out.lock().count;
    loop {
        let before = written(recorder);
        match tokio::time::timeout(SILENCE, &mut *received).await {
            Ok(_) => return,
            Err(_) if written(recorder) == before => {
                return recorder.note(EntryKind::Note("the agent did not end after its input did".into()));
            }
            Err(_) => {}
        }
    }
}

/// Copies until the end of `from`, and reports each piece to `lines` before it continues.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    lines: &mut Lines<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        lines.push(&buffer[..count]);
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
    }
}

/// How a process ended, as an entry.
fn exit(status: ExitStatus) -> EntryKind {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    EntryKind::Exit { code: status.code(), signal }
}

#[cfg(all(test, unix))]
#[path = "record_tests.rs"]
mod tests;
