//! Login in the user's terminal: runs the agent's program with the arguments of the method.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use attache::wire::v1::AuthMethodTerminal;

use crate::agents::{Address, AgentSpec};
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::runtime::Interrupts;

/// How often the program is looked at.
const EVERY: Duration = Duration::from_millis(30);
/// How long the program may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether the agent's program has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// Gives the terminal back.
struct TerminalHandover;

impl TerminalHandover {
    fn begin() -> TerminalHandover {
        TAKEN.store(true, Ordering::Relaxed);
        TerminalHandover
    }
}

impl Drop for TerminalHandover {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Relaxed);
    }
}

/// Runs the login. It has worked if it ends with status 0.
// AUTH-12
pub(super) async fn login(spec: &AgentSpec, cwd: &Path, method: &AuthMethodTerminal) -> Result<()> {
    let mut command = command(spec, cwd, method)?;
    let _handover = TerminalHandover::begin();
    let mut child = command.spawn().map_err(|error| {
        Failure::runtime(format_args!("the agent's program cannot be started to log in: {error}"))
    })?;
    // Keys like Ctrl-C reach the program as well as us, and it is the program that they are meant
    // for.
    let mut interrupts = Interrupts::new();
    let mut interrupted_at: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait().context("the login")? {
            break status;
        }
        if interrupted_at.is_some_and(|interrupted_at| interrupted_at.elapsed() > PATIENCE) {
            let _ = child.kill();
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = interrupts.next() => interrupted_at = interrupted_at.or(Some(Instant::now())),
        }
    };
    if interrupted_at.is_some() && !status.success() {
        return Err(Failure::interrupted());
    }
    if status.success() { Ok(()) } else { Err(failed(spec, status)) }
}

fn failed(spec: &AgentSpec, status: ExitStatus) -> Failure {
    let how = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    };
    Failure::runtime(format_args!("the login of `{}` did not succeed ({how})", spec.name))
        .detail(DetailCode::AuthFailed)
}

/// The program and the arguments that the agent is started with, then the method's; its
/// variables win.
// AUTH-11
fn command(spec: &AgentSpec, cwd: &Path, method: &AuthMethodTerminal) -> Result<Command> {
    let Address::Command { command, args } = &spec.address else {
        return Err(Failure::runtime("this login runs the agent's program, and only its address is known"));
    };
    let program = match command.contains(std::path::is_separator) {
        true => std::path::absolute(command).unwrap_or_else(|_| PathBuf::from(command)),
        false => PathBuf::from(command),
    };
    let mut command = Command::new(program);
    command.args(args).args(method.args.iter().flatten());
    command.current_dir(spec.cwd.as_deref().unwrap_or(cwd));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("ATTACHE_AUTH_")) {
            command.env_remove(name);
        }
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.envs(method.env.iter().flatten());
    Ok(command)
}
