//! The good client, or a variant of it, with an agent that it starts: `mutant-client [--protocol
//! VERSION] [--act ACT] [--variant VARIANT] [--prompt TEXT] [--cwd DIR] [--session ID] [--root
//! DIR]… AGENT`.
//!
//! `AGENT` is a line for the shell. An interrupt cancels the turn.

use crate::client::{Relaunch, Setup, client};
use attache_conn::Link;
use attache_conn::process::{Command, Stderr};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Runs the program.
pub fn run() -> std::io::Result<ExitCode> {
    let (setup, agent) = read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let link = Link::command(shell(&format!("exec {agent}")).stderr(Stderr::Inherit))?;
        let relaunch = relaunch(agent);
        let setup = Setup { cues: Some(interrupts()), relaunch: Some(relaunch), processes: true, ..setup };
        Ok(ExitCode::from(client(link, setup).await))
    })
}

fn read(mut args: impl Iterator<Item = String>) -> std::io::Result<(Setup, String)> {
    let mut setup = Setup { act: "prompt".to_owned(), cwd: std::env::current_dir()?, ..Setup::default() };
    let mut agent = None;
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| std::io::Error::other(format!("{arg} needs a value")));
        match arg.as_str() {
            "--protocol" => setup.protocol = value()?.parse().map_err(std::io::Error::other)?,
            "--act" => setup.act = value()?,
            "--variant" => setup.variant = Some(value()?),
            "--prompt" => setup.prompt = value()?,
            "--cwd" => setup.cwd = value()?.into(),
            "--session" => setup.session = Some(value()?),
            "--root" => setup.roots.push(value()?.into()),
            _ => agent = Some(arg),
        }
    }
    agent.map(|agent| (setup, agent)).ok_or_else(|| std::io::Error::other("say which agent to start"))
}

fn shell(line: &str) -> Command {
    Command::new("sh").arg("-c").arg(line)
}

/// The agent's line once more, with words and variables added.
fn relaunch(agent: String) -> Relaunch {
    Arc::new(move |args, env| {
        let line = format!("exec {agent} \"$@\"");
        Box::pin(async move {
            let mut command = tokio::process::Command::new("sh");
            command.arg("-c").arg(line).arg("agent").args(args).envs(env);
            command.status().await.is_ok_and(|status| status.success())
        })
    })
}

/// `cancel` for each interrupt.
fn interrupts() -> mpsc::Receiver<String> {
    let (cue, cues) = mpsc::channel(4);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if cue.send("cancel".to_owned()).await.is_err() {
                break;
            }
        }
    });
    cues
}
