//! The output of a running command, as the client sees it.

use std::path::Path;
use std::sync::Arc;

use attache::agent::{OwnTerminal, TerminalExit, Tool as Call, ToolContent, block};
use attache::wire::v1::{ProtocolVersion, Terminal, ToolCallContent};

use super::{Progress, Result, ToolContext};
use crate::text::{fence_for, head_and_tail};
use crate::workspace::RunningCommand;

/// The most output in one text, in bytes.
pub(super) const MAX_OUTPUT: usize = 30 << 10;

/// Shows the output of a command.
pub(super) enum LiveOutput {
    /// In a terminal of the client, which has it already.
    Client,
    /// In a terminal of the agent, which clients of version 2 show. Holds the output so far.
    Own(Box<OwnTerminal>, String),
    /// As text of the tool call. Holds the output so far.
    Text(String),
}

impl LiveOutput {
    /// Begins to show a command.
    pub(super) async fn open(
        cx: &ToolContext,
        progress: &Progress,
        command: &RunningCommand,
        line: &str,
        cwd: &Path,
    ) -> Self {
        if let Some(id) = command.terminal_id() {
            // TOOL-16: embedded before it is released.
            progress.show(vec![ToolCallContent::Terminal(Terminal::new(id.clone())).into()]).await;
            return LiveOutput::Client;
        }
        let is_v2 = cx.turn.turn().client().version() == ProtocolVersion::V2;
        let call = progress.call.as_ref().filter(|_| is_v2);
        match call {
            Some(call) => match own_terminal(call, line, cwd).await {
                Ok(terminal) => LiveOutput::Own(Box::new(terminal), String::new()),
                // A client that has gone is noticed elsewhere.
                Err(_) => LiveOutput::Text(String::new()),
            },
            None => LiveOutput::Text(String::new()),
        }
    }

    /// Whether a terminal shows the output, so that the call needs no text.
    pub(super) fn is_terminal(&self) -> bool {
        !matches!(self, LiveOutput::Text(_))
    }

    /// Shows the output so far.
    pub(super) async fn refresh(&mut self, command: &RunningCommand, progress: &Progress) -> Result<()> {
        match self {
            LiveOutput::Client => {}
            LiveOutput::Own(terminal, shown) => {
                let now = command.raw_output().await?;
                // A client that has gone is noticed elsewhere.
                let _ = match now.strip_prefix(shown.as_str()) {
                    Some("") => Ok(()),
                    Some(more) => terminal.write(more).await,
                    // The beginning was dropped, or a character is complete now.
                    None => terminal.snapshot(&now).await,
                };
                *shown = now;
            }
            LiveOutput::Text(shown) => {
                let now = command.output().await?.output;
                if now != *shown {
                    progress.show(vec![code_block(&head_and_tail(&now, MAX_OUTPUT))]).await;
                    *shown = now;
                }
            }
        }
        Ok(())
    }

    /// Waits until the client cancels the command alone.
    pub(super) async fn cancelled(&self) {
        match self {
            LiveOutput::Own(terminal, _) => terminal.cancellation().cancelled().await,
            _ => std::future::pending().await,
        }
    }

    /// Reports the end of a command to a terminal of the agent.
    pub(super) async fn finish(mut self, command: &RunningCommand, progress: &Progress) {
        if !matches!(self, LiveOutput::Own(..)) {
            return;
        }
        let _ = self.refresh(command, progress).await;
        let LiveOutput::Own(terminal, _) = self else { return };
        let ended = command.output().await.unwrap_or_default();
        let mut exit = TerminalExit::default();
        exit.code = ended.exit_code.map(i64::from);
        exit.signal = ended.signal;
        let _ = terminal.exit(exit).await;
    }
}

async fn own_terminal(call: &Arc<Call>, line: &str, cwd: &Path) -> attache::Result<OwnTerminal> {
    // The terminal shows the command, so it takes the place of the text that the user has read.
    call.show([]).await?;
    call.terminal(line).cwd(cwd).cancellable().start().await
}

/// Output as text of a tool call.
pub(super) fn code_block(output: &str) -> ToolContent {
    let fence = fence_for(output);
    block(format!("{fence}\n{}\n{fence}", output.trim_end()))
}
