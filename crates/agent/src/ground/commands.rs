//! Commands in terminals: the client's if it lends them, else pseudo terminals of this machine.

use std::sync::Arc;
use std::time::Duration;

use attache::agent::{ClientTerminal, DetachedTurn};
use attache::client::Terminal as _;
use attache::wire::v1::{CreateTerminalRequest, TerminalExitStatus, TerminalId};
use attache_host::policy::{Guard, Mode, Policy};
use attache_host::terminals::{PtyTerminal, PtyTerminals};

use super::Ground;

/// How much output is kept; the model gets less.
const KEPT: u64 = 1 << 20;

/// How long a client may take to end a command or to take a terminal back.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that runs. Dropping it ends the command (TERM-05).
pub(crate) enum Running {
    /// In a terminal of the client, which shows it.
    Lent(ClientTerminal),
    /// In one of ours.
    Own(PtyTerminal),
}

/// What a command has come to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    pub(crate) output: String,
    /// The beginning of the output is missing.
    pub(crate) cut: bool,
    pub(crate) exit_code: Option<u32>,
    pub(crate) signal: Option<String>,
}

impl Ground {
    /// Starts a program in a terminal. TERM-01: in the client's if it lends any.
    pub(crate) async fn start(
        &self,
        turn: &DetachedTurn,
        argv: Vec<String>,
        cwd: &std::path::Path,
    ) -> Result<Running, String> {
        let mut words = argv.into_iter();
        let program = words.next().ok_or("the command is empty")?;
        if let Some(terminals) = turn.turn().terminals() {
            let command = terminals.command(program).args(words).cwd(cwd).output_limit(KEPT);
            return command.start().await.map(Running::Lent).map_err(|error| error.to_string());
        }
        let request = CreateTerminalRequest::new(turn.turn().session_id().clone(), program)
            .args(words.collect::<Vec<_>>())
            .cwd(cwd.to_string_lossy().into_owned())
            .output_byte_limit(KEPT);
        // Whether it may run was decided before, by this agent's own rules.
        let guard = Guard::new(Arc::new(Policy::new(Mode::APPROVE_ALL)));
        let started = PtyTerminals::new(guard).create_in(None, self.roots(), request).await;
        started.map(Running::Own).map_err(|error| error.to_string())
    }
}

impl Running {
    /// The client's terminal, to be shown inside of a tool call (TOOL-16).
    pub(crate) fn terminal_id(&self) -> Option<&TerminalId> {
        match self {
            Running::Lent(terminal) => Some(terminal.id()),
            Running::Own(_) => None,
        }
    }

    /// Gives the terminal back (TERM-05). A client's is free before the call that used it is over, unless the client says nothing.
    pub(crate) async fn release(self) {
        if let Running::Lent(terminal) = self {
            let _ = tokio::time::timeout(PATIENCE, terminal.release()).await;
        }
    }

    /// Waits for its end. Giving up the wait does not end it.
    pub(crate) async fn wait(&self) -> Result<(), String> {
        match self {
            Running::Lent(terminal) => terminal.wait().await.map(drop).map_err(|error| error.to_string()),
            Running::Own(terminal) => {
                terminal.wait_for_exit().await.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    /// What it has printed so far, and how it ended if it has.
    pub(crate) async fn so_far(&self) -> Result<Ended, String> {
        let output = match self {
            Running::Lent(terminal) => terminal.output().await,
            Running::Own(terminal) => terminal.output().await,
        };
        let output = output.map_err(|error| error.to_string())?;
        let TerminalExitStatus { exit_code, signal, .. } = output.exit_status.unwrap_or_default();
        Ok(Ended { output: plain(&output.output), cut: output.truncated, exit_code, signal })
    }

    /// Ends it; its output stays.
    pub(crate) async fn kill(&self) {
        // There is nobody to tell if it has ended by itself.
        let _ = match self {
            Running::Lent(terminal) => tokio::time::timeout(PATIENCE, terminal.kill())
                .await
                .unwrap_or(Err(attache::Error::Cancelled)),
            Running::Own(terminal) => terminal.kill().await,
        };
        // How it ended is known a moment later.
        let _ = tokio::time::timeout(PATIENCE, self.wait()).await;
    }
}

/// Output as text: terminals end lines with CR LF, and colours are nothing for a model.
fn plain(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut chars = output.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_sequence(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            // A lone carriage return starts the line again: progress bars.
            '\r' => text.truncate(text.rfind('\n').map_or(0, |at| at + 1)),
            '\u{8}' => drop(text.pop()),
            '\n' | '\t' => text.push(char),
            char if char.is_control() => {}
            char => text.push(char),
        }
    }
    text
}

/// Behind an escape: `[` … up to a final letter, `]` … up to a bell or another escape, or one character.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => while chars.next().is_some_and(|char| !('\u{40}'..='\u{7e}').contains(&char)) {},
        Some(']') => {
            while let Some(char) = chars.next() {
                match char {
                    '\u{7}' => break,
                    '\u{1b}' => {
                        chars.next();
                        break;
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_made_plain() {
        assert_eq!(plain("\u{1b}[1;31mred\u{1b}[0m\r\n\u{1b}]0;title\u{7}x\u{8}y\r\n"), "red\ny\n");
        assert_eq!(plain("10%\r50%\r100%\ndone\u{1b}"), "100%\ndone");
    }
}
