//! Terminals of the agent: commands that it runs itself and whose output the client shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use attache_conn::CancelToken;
use attache_wire::v1::{SessionUpdate, ToolCallUpdate};
use attache_wire::v2::TerminalId;
use attache_wire::{Patch, v2 as wire_v2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, Serializer};

use super::client::Recordable;
use super::content::{self, Kind, MAX_KEPT, ToolContent};
use super::shared::CancelKey;
use super::tool::ToolShared;
use super::v2::{self, MessageIds};
use crate::check::absolute;
use crate::id::unique_id;
use crate::task::lock;
use crate::{Error, Result};

/// A terminal before it is reported. Made by [`Tool::terminal`](super::Tool::terminal).
///
/// Example: [`OwnTerminal`].
#[must_use = "nothing is reported before `start`"]
pub struct OwnTerminalBuilder {
    tool: Arc<ToolShared>,
    command: String,
    cwd: Option<PathBuf>,
    size: Option<(u16, u16)>,
    cancellable: bool,
}

impl OwnTerminalBuilder {
    pub(super) fn new(tool: Arc<ToolShared>, command: String) -> Self {
        OwnTerminalBuilder { tool, command, cwd: None, size: None, cancellable: false }
    }

    /// Sets the working directory, an absolute path.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets the size in characters, at least 1 each.
    pub fn size(mut self, cols: u16, rows: u16) -> Self {
        self.size = Some((cols, rows));
        self
    }

    /// Lets the client cancel the command alone: then [`OwnTerminal::cancellation`] is raised, and
    /// the agent ends the command and reports its [exit](OwnTerminal::exit). Version 1 can only
    /// cancel the turn.
    // V2-30
    pub fn cancellable(mut self) -> Self {
        self.cancellable = true;
        self
    }

    /// Reports the terminal and appends it to the content of its call.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the directory is not absolute or the size is 0.
    pub async fn start(self) -> Result<OwnTerminal> {
        let OwnTerminalBuilder { tool, command, cwd, size, cancellable } = self;
        let cwd = cwd.as_deref().map(|cwd: &Path| absolute(cwd)).transpose()?.map(str::to_owned);
        let size = size.map(checked_size).transpose()?;
        let id: TerminalId = unique_id("term");
        let text = Arc::new(TerminalText { id, command, output: Mutex::default() });
        let sender = tool.sender();
        let token = if cancellable { CancelToken::new() } else { tool.token.clone() };
        if cancellable {
            let weak = Arc::downgrade(&text);
            let own = token.clone();
            tool.token.on_cancel(move || {
                if weak.upgrade().is_some() {
                    own.cancel();
                }
            });
            sender.shared().add_cancellable(CancelKey::Terminal(text.id.clone()), token.clone());
        }
        let terminal = OwnTerminal { text, tool, token, cancellable, exited: AtomicBool::new(false) };
        if sender.is_v2() {
            let mut update = wire_v2::TerminalUpdate::new(terminal.id().clone());
            update.command = Patch::Set(terminal.text.command.clone());
            update.cwd = cwd.map_or(Patch::Keep, Patch::Set);
            update.size = size.map_or(Patch::Keep, Patch::Set);
            if cancellable {
                let cancel = wire_v2::TerminalCancelCapabilities::new();
                update.capabilities = Patch::Set(wire_v2::TerminalCapabilities::new().cancel(cancel));
            }
            sender.send(&TerminalChange::only_v2(update)).await?;
        }
        terminal.tool.append(ToolContent(Kind::Terminal(terminal.text.clone()))).await?;
        Ok(terminal)
    }
}

fn checked_size((cols, rows): (u16, u16)) -> Result<wire_v2::TerminalSize> {
    match cols.min(rows) {
        0 => Err(Error::Invalid("a terminal has at least one column and one row".to_owned())),
        _ => Ok(wire_v2::TerminalSize::new(cols, rows)),
    }
}

/// A command that the agent runs, and its output. End it with [`exit`](OwnTerminal::exit); dropped
/// before, it is reported to have ended.
///
/// Version 2 shows it as a terminal. Version 1 shows it as text of the tool call, which is sent
/// whole with every change and holds the last mebibyte of output; it is never a terminal of the
/// client.
///
/// ```
/// use attache::agent::{TerminalExit, Tool};
///
/// async fn run(tool: &Tool) -> attache::Result<()> {
///     let terminal = tool.terminal("make test").cwd("/project").start().await?;
///     terminal.write(b"3 tests passed\n").await?;
///     terminal.exit(TerminalExit::code(0)).await
/// }
/// ```
pub struct OwnTerminal {
    text: Arc<TerminalText>,
    tool: Arc<ToolShared>,
    token: CancelToken,
    cancellable: bool,
    exited: AtomicBool,
}

/// How a command ended.
///
/// Example: [`OwnTerminal`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalExit {
    /// Its exit code, if it exited.
    pub code: Option<i64>,
    /// The signal that ended it, if one did.
    pub signal: Option<String>,
}

impl TerminalExit {
    /// An exit with a code.
    pub fn code(code: impl Into<i64>) -> Self {
        TerminalExit { code: Some(code.into()), signal: None }
    }

    /// An end by a signal, such as `SIGTERM`.
    pub fn signal(signal: impl Into<String>) -> Self {
        TerminalExit { code: None, signal: Some(signal.into()) }
    }
}

impl OwnTerminal {
    /// The terminal's id.
    pub fn id(&self) -> &TerminalId {
        &self.text.id
    }

    /// Appends output, which need not end at a character.
    // V2-32
    pub async fn write(&self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        lock(&self.text.output).append(bytes);
        let sender = self.tool.sender();
        let chunk = TerminalChunk { id: self.id(), bytes, v1: self.v1(sender.is_v2()) };
        sender.send(&chunk).await
    }

    /// Replaces all output so far.
    // V2-32
    pub async fn snapshot(&self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        {
            let mut output = lock(&self.text.output);
            output.bytes.clear();
            output.append(bytes);
        }
        let mut update = self.change();
        update.output = Patch::Set(wire_v2::TerminalOutput::new(STANDARD.encode(bytes)));
        self.send(update).await
    }

    /// Reports a new size in characters. Version 1 does not show it.
    pub async fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        let size = checked_size((cols, rows))?;
        let sender = self.tool.sender();
        if !sender.is_v2() {
            return Ok(());
        }
        let mut update = self.change();
        update.size = Patch::Set(size);
        sender.send(&TerminalChange::only_v2(update)).await
    }

    /// Reports that the command has ended. Sent even if the turn was cancelled.
    // V2-31: confirms that the command was cancelled.
    pub async fn exit(self, exit: TerminalExit) -> Result<()> {
        match self.exit_now(exit) {
            true => Ok(()),
            false => Err(Error::Cancelled),
        }
    }

    /// The token that is raised when the client cancels the command, or the tool call that runs it.
    pub fn cancellation(&self) -> &CancelToken {
        &self.token
    }

    fn exit_now(&self, exit: TerminalExit) -> bool {
        self.exited.store(true, Ordering::Relaxed);
        let sender = self.tool.sender();
        let mut update = self.change();
        let status = wire_v2::TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal.clone());
        update.exit_status = Patch::Set(status);
        lock(&self.text.output).exit = Some(exit);
        let v1 = self.v1(sender.is_v2());
        let sent = sender.send_now(&TerminalChange { update, v1 });
        if self.cancellable {
            sender.shared().remove_cancellable(&CancelKey::Terminal(self.id().clone()));
        }
        sent
    }

    fn change(&self) -> wire_v2::TerminalUpdate {
        wire_v2::TerminalUpdate::new(self.id().clone())
    }

    async fn send(&self, update: wire_v2::TerminalUpdate) -> Result<()> {
        let sender = self.tool.sender();
        let v1 = self.v1(sender.is_v2());
        sender.send(&TerminalChange { update, v1 }).await
    }

    /// The tool call with its whole content.
    fn v1(&self, in_v2: bool) -> Option<SessionUpdate> {
        let content = self.tool.touched_content(!in_v2)?;
        let update = ToolCallUpdate::new(self.tool.id.clone()).content(content::to_v1(&content));
        Some(SessionUpdate::ToolCallUpdate(Box::new(update)))
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        if !self.exited.load(Ordering::Relaxed) {
            self.exit_now(TerminalExit::default());
        }
    }
}

impl fmt::Debug for OwnTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnTerminal").field(self.id()).finish()
    }
}

/// The output of a terminal as a client of version 1 sees it.
#[derive(Debug)]
pub(super) struct TerminalText {
    pub(super) id: TerminalId,
    command: String,
    output: Mutex<Output>,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    exit: Option<TerminalExit>,
}

impl Output {
    /// Keeps the last mebibyte. The buffer holds up to twice as much, so that a byte is moved once
    /// at most.
    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * MAX_KEPT {
            self.bytes.drain(..self.bytes.len() - MAX_KEPT);
        }
    }

    fn tail(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(MAX_KEPT)..]
    }
}

impl PartialEq for TerminalText {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl TerminalText {
    /// A code block with the command and its output, and the exit status unless it is success.
    pub(super) fn to_text(&self) -> String {
        let output = lock(&self.output);
        let shown = String::from_utf8_lossy(output.tail());
        let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        let end = if shown.is_empty() || shown.ends_with('\n') { "" } else { "\n" };
        let mut text = format!("{fence}\n$ {}\n{shown}{end}{fence}", self.command);
        match &output.exit {
            Some(TerminalExit { signal: Some(signal), .. }) => text += &format!("\n(killed by {signal})"),
            Some(TerminalExit { code: Some(code), .. }) if *code != 0 => {
                text += &format!("\n(exit code {code})")
            }
            _ => {}
        }
        text
    }
}

/// A changed terminal.
struct TerminalChange {
    update: wire_v2::TerminalUpdate,
    v1: Option<SessionUpdate>,
}

impl TerminalChange {
    fn only_v2(update: wire_v2::TerminalUpdate) -> Self {
        TerminalChange { update, v1: None }
    }
}

impl Recordable for TerminalChange {
    fn to_update(&self) -> Option<SessionUpdate> {
        None // recorded with the next update of the call
    }
    fn serialize_v2<S: Serializer>(&self, _: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        wire_v2::SessionUpdate::from(self.update.clone()).serialize(serializer)
    }
}

impl Serialize for TerminalChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.v1.serialize(serializer)
    }
}

/// Output that is appended.
struct TerminalChunk<'a> {
    id: &'a TerminalId,
    bytes: &'a [u8],
    v1: Option<SessionUpdate>,
}

impl Recordable for TerminalChunk<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        None
    }
    fn serialize_v2<S: Serializer>(&self, _: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        v2::terminal_chunk(self.id, self.bytes, serializer)
    }
}

impl Serialize for TerminalChunk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.v1.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_long_output_is_kept() {
        let mut output = Output::default();
        for _ in 0..5 {
            output.append(&[b'x'; MAX_KEPT / 2]);
        }
        output.append(b"end");
        assert!(output.bytes.len() <= 2 * MAX_KEPT);
        assert_eq!((output.tail().len(), output.tail().ends_with(b"xend")), (MAX_KEPT, true));
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        let text = TerminalText { id: "t".into(), command: "cat a.md".to_owned(), output: Mutex::default() };
        lock(&text.output).append(b"````\ncode\n````");
        assert_eq!(text.to_text(), "`````\n$ cat a.md\n````\ncode\n````\n`````");
    }
}
