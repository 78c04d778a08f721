//! Commands in terminals: the client's if it provides them, else pseudo terminals of this machine.

use std::sync::Arc;
use std::time::Duration;

use attache::agent::{ClientTerminal, DetachedTurn};
use attache::client::Terminal as _;
use attache::wire::v1::{CreateTerminalRequest, EnvVariable, TerminalExitStatus, TerminalId};
use attache::{Error, Result};
use attache_host::policy::{Guard, Mode, Policy};
use attache_host::terminals::{PtyTerminal, PtyTerminals};

use super::Workspace;

/// Bytes of output that a terminal keeps; the model gets less.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How long a client may take to kill a command or to release a terminal.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running command. Dropping it kills the command.
// TERM-05
pub(crate) enum RunningCommand {
    /// In a terminal of the client, which shows it.
    Client(ClientTerminal),
    /// In a pseudo terminal of ours.
    Local(PtyTerminal),
}

/// Output of a command so far, and how it ended if it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandOutput {
    pub(crate) output: String,
    /// Whether the beginning of the output is missing.
    pub(crate) truncated: bool,
    pub(crate) exit_code: Option<u32>,
    pub(crate) signal: Option<String>,
    pub(crate) ended: bool,
}

impl Workspace {
    /// Starts a program in a terminal. In the client's if it provides any.
    // TERM-01
    pub(crate) async fn start(
        &self,
        turn: &DetachedTurn,
        argv: Vec<String>,
        cwd: &std::path::Path,
        env: &[(String, String)],
    ) -> Result<RunningCommand> {
        let mut words = argv.into_iter();
        let program = words.next().ok_or_else(|| Error::invalid_params("the command is empty"))?;
        if let Some(terminals) = turn.turn().terminals() {
            let mut command = terminals.command(program).args(words).cwd(cwd).output_limit(OUTPUT_LIMIT);
            for (name, value) in env {
                command = command.env(name, value);
            }
            return command.start().await.map(RunningCommand::Client);
        }
        self.start_local(turn, program, words.collect(), cwd, env).await
    }

    /// Starts a program in a terminal of the agent, which ends with the agent.
    pub(crate) async fn start_local(
        &self,
        turn: &DetachedTurn,
        program: String,
        args: Vec<String>,
        cwd: &std::path::Path,
        env: &[(String, String)],
    ) -> Result<RunningCommand> {
        let env = env.iter().map(|(name, value)| EnvVariable::new(name, value)).collect::<Vec<_>>();
        let request = CreateTerminalRequest::new(turn.turn().session_id().clone(), program)
            .args(args)
            .env(env)
            .cwd(cwd.to_string_lossy().into_owned())
            .output_byte_limit(OUTPUT_LIMIT);
        // The agent's own policy has allowed it.
        let guard = Guard::new(Arc::new(Policy::new(Mode::APPROVE_ALL)));
        let started = PtyTerminals::new(guard).create_in(None, self.roots(), request).await;
        started.map(RunningCommand::Local)
    }
}

impl RunningCommand {
    /// The client's terminal, to be embedded in a tool call.
    // TOOL-16
    pub(crate) fn terminal_id(&self) -> Option<&TerminalId> {
        match self {
            RunningCommand::Client(terminal) => Some(terminal.id()),
            RunningCommand::Local(_) => None,
        }
    }

    /// Releases the terminal. A client's is released before its tool call ends, unless
    /// the client does not answer.
    // TERM-05
    pub(crate) async fn release(self) {
        if let RunningCommand::Client(terminal) = self {
            let _ = tokio::time::timeout(CLIENT_TIMEOUT, terminal.release()).await;
        }
    }

    /// Waits for the end of the command. Dropping the future does not kill it.
    pub(crate) async fn wait(&self) -> Result<()> {
        match self {
            RunningCommand::Client(terminal) => terminal.wait().await.map(drop),
            RunningCommand::Local(terminal) => terminal.wait_for_exit().await.map(drop),
        }
    }

    /// The output so far, and how the command ended if it has.
    pub(crate) async fn output(&self) -> Result<CommandOutput> {
        let output = match self {
            RunningCommand::Client(terminal) => terminal.output().await,
            RunningCommand::Local(terminal) => terminal.output().await,
        }?;
        let ended = output.exit_status.is_some();
        let TerminalExitStatus { exit_code, signal, .. } = output.exit_status.unwrap_or_default();
        let (text, truncated) = (plain(&output.output), output.truncated);
        Ok(CommandOutput { output: text, truncated, exit_code, signal, ended })
    }

    /// The output so far, with its control sequences.
    pub(crate) async fn raw_output(&self) -> Result<String> {
        let output = match self {
            RunningCommand::Client(terminal) => terminal.output().await,
            RunningCommand::Local(terminal) => terminal.output().await,
        };
        Ok(output?.output)
    }

    /// Kills the command; its output stays.
    pub(crate) async fn kill(&self) {
        // It may have ended by itself.
        let _ = match self {
            RunningCommand::Client(terminal) => {
                tokio::time::timeout(CLIENT_TIMEOUT, terminal.kill()).await.unwrap_or(Err(Error::Cancelled))
            }
            RunningCommand::Local(terminal) => terminal.kill().await,
        };
        // Its exit status arrives a moment later.
        let _ = tokio::time::timeout(CLIENT_TIMEOUT, self.wait()).await;
    }
}

/// Output as plain text: without colours, and with LF at the end of lines.
fn plain(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut chars = output.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_sequence(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            // A lone carriage return overwrites the line: progress bars.
            '\r' => text.truncate(text.rfind('\n').map_or(0, |at| at + 1)),
            '\u{8}' => drop(text.pop()),
            '\n' | '\t' => text.push(char),
            char if char.is_control() => {}
            char => text.push(char),
        }
    }
    text
}

/// Behind an escape: `[` … up to a final letter, `]` … up to a notifier or another escape, or one
/// character.
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
